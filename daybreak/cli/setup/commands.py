"""The commands of the first hour: a new deployment, a look at what is missing, the demo, and the end of it all."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from daybreak import settings
from daybreak.cli.options import Format
from daybreak.cli.output import command_line, say, show, working
from daybreak.errors import UsageError

TEMPLATE = ("base.toml", "boards.toml", "seasons.toml")
IGNORED = "# What `daybreak` writes by default.\n/.daybreak/\n"


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `app`."""
    app.command(epilog="Example: daybreak init counts")(init)
    app.command(epilog="Example: daybreak doctor --warm")(doctor)
    app.command(epilog="Example: daybreak demo")(demo)
    app.command(epilog="Example: daybreak down")(down)


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder; made when it is not there.")],
) -> None:
    """Make a new deployment: a folder with a commented conf, to run commands in."""
    conf = folder / "conf"
    try:
        conf.mkdir(parents=True)
        for name in TEMPLATE:
            text = (files("daybreak.cli.setup") / "template" / name).read_text(encoding="utf-8")
            (conf / name).write_text(text, encoding="utf-8")
        if not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text(IGNORED, encoding="utf-8")
    except FileExistsError as error:
        raise UsageError(f"{error.filename} is there already and stays as it is; name another folder") from None
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be made ({error.strerror}); name another folder") from None
    say(f"{conf} holds base.toml, boards.toml and seasons.toml; all in them is commented out and explained. Next:")
    for line in (
        command_line("cd", str(folder)),
        command_line("daybreak", "doctor"),
        f"{command_line('daybreak', 'ingest')} EVENTS.jsonl --complete-through DAY",
        f"{command_line('daybreak', 'nightly', '--day')} DAY",
    ):
        say(f"    {line}")


def doctor(
    warm: Annotated[bool, typer.Option("--warm", help="Fetch Delta's jars for Spark first.")] = False,
    format_: Format = "table",
) -> None:
    """Look at everything a night needs and say what is missing."""
    from daybreak.cli.setup import doctor as job

    conf = settings.load()
    if warm:
        with working("fetching Delta's jars"):
            done = job.warm(conf)
        say(done)
    with working(f"starting engine {conf.engine} and Redis"):
        found = job.examine(conf)
    show(["what", "ok", "detail"], found, format_)
    if not all(row["ok"] for row in found):
        raise typer.Exit(1)


def demo() -> None:
    """Replay a real day of flights, correct it overnight and show the error."""
    from rich.console import Console

    from daybreak.cli.setup import demo as job

    job.run(settings.load(), Console())


def down() -> None:
    """Stop the embedded Redis; what it holds stays on disk."""
    from daybreak.serving.embedded import EmbeddedServer

    stopped = EmbeddedServer(settings.load().home).stop()
    say("embedded Redis stopped" if stopped else "no embedded Redis was running")
