"""One module at a time; the folders mirror the packages, file for file."""
