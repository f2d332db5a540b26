"""The vocabulary both paths share: events, windows, order, lists, settings. No Spark, no Delta."""
