"""Where the speed layer reads its events from."""
