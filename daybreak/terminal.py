"""What commands read from their options, and how they print.

Rows and the JSON summary go to standard output, everything said about them to standard error.
"""

import csv
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daybreak import clock
from daybreak.errors import UsageError
from daybreak.suggestions import did_you_mean
from daybreak.windows import Window

if TYPE_CHECKING:
    from rich.progress import Progress

FORMATS = ("table", "json", "csv")
Format = Annotated[str, typer.Option("--format", help="table, json or csv.", autocompletion=lambda: list(FORMATS))]


def parse_window(text: str) -> Window:
    """The window of that name."""
    if text not in [*Window]:
        raise UsageError(f"no window {text!r}{did_you_mean(text, Window)}; the windows are {', '.join(Window)}")
    return Window(text)


WindowOption = Annotated[
    Window,
    typer.Option(
        "--window",
        parser=parse_window,
        metavar=f"[{'|'.join(Window)}]",
        help="Which window.",
        autocompletion=lambda: [window.value for window in Window],
    ),
]


def parse_day(text: str) -> date:
    """A UTC day from `YYYY-MM-DD`."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a day; write it as 2011-12-05") from None


def parse_span(day: str | None, first: str | None, last: str | None) -> tuple[date, date]:
    """The first and last day meant by --day, or --from and --to."""
    if day and (first or last):
        raise UsageError("--day goes alone; for a range use --from and --to")
    if day:
        return parse_day(day), parse_day(day)
    if not (first and last):
        raise UsageError("a range needs both --from and --to")
    start, end = parse_day(first), parse_day(last)
    if start > end:
        raise UsageError(f"--from {start} is after --to {end}; swap them")
    return start, end


def parse_instant(text: str | None, option: str = "--at") -> datetime:
    """A UTC instant from `2011-12-05`, `2011-12-05T17:24` or with a zone; now without text."""
    if text is None:
        return clock.now()
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text!r} is not a time; write it as 2011-12-05T17:24") from None
    return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)


def parse_mapping(pairs: Sequence[str] | None) -> Mapping[str, str]:
    """{source column: contract column} from `SOURCE=NAME` options."""
    mapping = {}
    for pair in pairs or ():
        source, separator, name = pair.partition("=")
        if not (source and separator and name):
            raise UsageError(f"--map {pair!r} is not SOURCE=NAME; write it as --map ts=occurred_at")
        mapping[source] = name
    return mapping


@contextmanager
def steps(title: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal that fills step by step; a line a step elsewhere."""
    if not sys.stderr.isatty():
        yield lambda step: say(f"{title}: {step}")
        return
    with bar() as shown:
        task = shown.add_task(title, total=total, note="")
        begun = count()
        yield lambda step: shown.update(task, completed=next(begun), note=step)


class Reading:
    """How far the reading of files is. `shown` is None where nobody looks."""

    def __init__(self, files: Sequence[Path] = (), shown: "Progress | None" = None) -> None:
        self.read = 0
        self.shown = shown
        if shown:
            total = sum(file.stat().st_size for file in files if file.is_file()) if len(files) > 1 else None
            self.task = shown.add_task("reading", total=total, note="")

    def rows(self, more: int) -> None:
        """Rows that were read since."""
        self.read += more
        if self.shown:
            self.shown.update(self.task, note=f"{self.read:,} rows")

    def file_done(self, file: Path) -> None:
        """A file was read."""
        if self.shown:
            self.shown.advance(self.task, file.stat().st_size)


@contextmanager
def reading(files: Sequence[Path] = ()) -> Iterator[Reading]:
    """A bar on a terminal with the rows read so far, which fills file by file of those named; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield Reading()
        return
    with bar() as shown:
        yield Reading(files, shown)


@contextmanager
def working(title: str) -> Iterator[None]:
    """A sign of life on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    with bar() as shown:
        shown.add_task(title, total=None, note="")
        yield


def bar() -> "Progress":
    """A bar that leaves nothing behind. Standard output stays what it is: rows may be read by a program."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(30), TextColumn("{task.fields[note]}"))
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, redirect_stdout=False)


def show(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], format_: str) -> None:
    """Rows on standard output as a table, JSON lines or CSV."""
    match format_:
        case "csv":
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([row[name] for name in columns] for row in rows)
        case "json":
            for row in rows:
                print(json.dumps(row, default=str, ensure_ascii=False))
        case "table":
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text

            table = Table(*columns)
            for row in rows:
                table.add_row(*(Text("" if row[name] is None else str(row[name])) for name in columns))
            Console(width=None if sys.stdout.isatty() else 200).print(table)
        case _:
            near = did_you_mean(format_, FORMATS)
            raise UsageError(f"--format {format_!r} is not known{near}; use table, json or csv")


def say(line: str) -> None:
    """A line for the person, on standard error."""
    print(line, file=sys.stderr)


def summarise(command: str, values: Mapping[str, Any]) -> None:
    """The run's last line: JSON on standard output."""
    print(json.dumps({"command": command, "at": clock.now().isoformat(), **values}, default=str))


def command_line(*words: str) -> str:
    """A command as it can be copied into this shell: `daybreak` with its folder where the shell would find none."""
    program = [daybreak_command()] if words[0] == "daybreak" else [typed(words[:1])]
    return " ".join([*program, *([typed(words[1:])] if words[1:] else [])])


def typed(arguments: Sequence[str]) -> str:
    """The arguments as one would type them: in double quotes where that reads better.

    >>> print(typed(["sql", "SELECT day FROM runs WHERE outcome = 'committed'"]))
    sql "SELECT day FROM runs WHERE outcome = 'committed'"
    """
    plain = re.compile(r"""[^"$`\\!]*'[^"$`\\!]*""")
    return " ".join(f'"{each}"' if plain.fullmatch(each) else shlex.quote(each) for each in arguments)


def daybreak_command() -> str:
    """The command as this shell finds it, or with its folder where the shell finds none or another."""
    own = Path(sys.executable).with_name("daybreak")
    found = shutil.which("daybreak")
    if found and own.exists() and Path(found).samefile(own):
        return "daybreak"
    return typed([str(own)] if own.exists() else [sys.executable, "-m", "daybreak.cli"])
