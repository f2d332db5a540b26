"""What commands read from their options, and how they print.

Rows and the JSON summary go to standard output, everything said about them to standard error.
"""

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any

import typer

from daybreak import clock
from daybreak.errors import UsageError
from daybreak.suggestions import did_you_mean
from daybreak.windows import Window

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


def progress(title: str) -> Any:
    """A spinner on a terminal that names the step at work; a line a step elsewhere."""
    import contextlib

    @contextlib.contextmanager
    def shown() -> Any:
        if not sys.stderr.isatty():
            yield lambda step: say(f"{title}: {step}")
            return
        from rich.console import Console

        with Console(stderr=True).status(title) as spinner:
            yield lambda step: spinner.update(f"{title}: {step}")

    return shown()


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
