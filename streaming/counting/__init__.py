"""From events to the counts of buckets: routing, event time, the state of a bucket."""
