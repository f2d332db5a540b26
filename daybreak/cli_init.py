"""The commands of the first hour: a new deployment, a look at what is missing, the demo, and the end of it all."""

from typing import Annotated

import typer

from daybreak import settings
from daybreak.terminal import Format, say, show


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `app`."""
    app.command(epilog="Example: daybreak doctor --warm")(doctor)
    app.command(epilog="Example: daybreak demo")(demo)
    app.command(epilog="Example: daybreak down")(down)


def doctor(
    warm: Annotated[bool, typer.Option("--warm", help="Fetch Delta's jars for Spark first.")] = False,
    format_: Format = "table",
) -> None:
    """Look at everything a night needs and say what is missing."""
    from jobs import doctor as job

    conf = settings.load()
    if warm:
        say(job.warm(conf))
    found = job.examine(conf)
    show(["what", "ok", "detail"], found, format_)
    if not all(row["ok"] for row in found):
        raise typer.Exit(1)


def demo() -> None:
    """Replay a real day of flights, correct it overnight and show the error."""
    from rich.console import Console

    from jobs import demo as job

    job.run(settings.load(), Console())


def down() -> None:
    """Stop the embedded Redis; what it holds stays on disk."""
    from daybreak.serving.server import EmbeddedServer

    stopped = EmbeddedServer(settings.load().home).stop()
    say("embedded Redis stopped" if stopped else "no embedded Redis was running")
