"""`python -m daybreak.cli` is the `daybreak` command."""

from daybreak.cli.main import main

if __name__ == "__main__":
    main()
