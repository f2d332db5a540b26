"""The lake: its tables, the engines and stores that reach them, the checks that guard them."""
