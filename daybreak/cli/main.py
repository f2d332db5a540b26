"""The `daybreak` command: the composition root. Every command imports what it needs when it runs.

Rows and the JSON summary go to standard output, everything said about them to standard error.
"""

import os
import sys

import typer

from daybreak.cli import analyst, board_changes, events, lists, night
from daybreak.cli.output import say
from daybreak.cli.setup import commands
from daybreak.errors import DaybreakError

app = typer.Typer(
    help="Approximate while the day runs, exact by daybreak.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
for part in (events, night, lists, analyst, commands):
    part.add_to(app)
app.add_typer(board_changes.app, name="board")


def main() -> None:
    """Run the command; a refusal is one line on standard error and its exit code."""
    os.environ["TZ"] = "UTC"
    try:
        app()
    except DaybreakError as error:
        say(f"daybreak: {' '.join(str(error).split())}")
        sys.exit(error.exit_code)
