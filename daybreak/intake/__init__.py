"""One row's way to an accepted event: files are read, rows are judged by the contract."""
