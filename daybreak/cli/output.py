"""How commands print: rows, lines for the person, bars, the JSON summary.

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
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daybreak import clock
from daybreak.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from rich.progress import Progress

FORMATS = ("table", "json", "csv")


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
