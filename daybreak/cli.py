"""The `daybreak` command: the composition root. Every command imports what it needs when it runs.

Rows and the JSON summary go to standard output, everything said about them to standard error.
"""

import os
import sys

import typer

from daybreak import cli_analyst, cli_board_deeds, cli_events, cli_init, cli_lists, cli_night
from daybreak.errors import DaybreakError
from daybreak.terminal import say

app = typer.Typer(
    help="Approximate while the day runs, exact by daybreak.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
for part in (cli_events, cli_night, cli_lists, cli_analyst, cli_init):
    part.add_to(app)
app.add_typer(cli_board_deeds.app, name="board")


def main() -> None:
    """Run the command; a refusal is one line on standard error and its exit code."""
    os.environ["TZ"] = "UTC"
    try:
        app()
    except DaybreakError as error:
        say(f"daybreak: {' '.join(str(error).split())}")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
