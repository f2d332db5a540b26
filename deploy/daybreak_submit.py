"""The `daybreak` command as the main file of spark-submit; the packages come with `--py-files daybreak.zip`."""

from daybreak.cli.main import main

if __name__ == "__main__":
    main()
