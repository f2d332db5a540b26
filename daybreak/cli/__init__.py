"""The `daybreak` command; `main` puts it together."""
