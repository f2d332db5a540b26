"""What Redis serves: keys, lists and the embedded server."""
