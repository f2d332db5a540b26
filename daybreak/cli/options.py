"""What commands read from their options, and what they open by the settings: the lake, the lists, a night's context."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from daybreak import clock, settings
from daybreak.cli.output import FORMATS
from daybreak.errors import UsageError, did_you_mean
from daybreak.windows import Window

if TYPE_CHECKING:
    from daybreak.serving.lists import Lists
    from jobs.run.context import Context
    from jobs.run.lake import Lake
    from lakehouse.stores.delta_rs import DeltaRsStore

Format = Annotated[str, typer.Option("--format", help="table, json or csv.", autocompletion=lambda: list(FORMATS))]
DayOption = Annotated[str | None, typer.Option("--day", help="One UTC day, YYYY-MM-DD.")]
From = Annotated[str | None, typer.Option("--from", help="First day of a range.")]
To = Annotated[str | None, typer.Option("--to", help="Last day of a range.")]


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


def store(conf: settings.Settings) -> "DeltaRsStore":
    """The tables of the lake."""
    from lakehouse.stores.delta_rs import DeltaRsStore

    return DeltaRsStore(conf.lake_root, conf.lake.retention)


def lake(conf: settings.Settings) -> "Lake":
    """The lake with its boards, for reading and planning: starts nothing."""
    from daybreak.rules import boards
    from jobs.run.lake import Lake

    return Lake(conf, store(conf), clock.now, boards.load(conf.boards_folder))


def lists(conf: settings.Settings) -> "Lists":
    """The lists in Redis."""
    from daybreak.serving.connection import connect
    from daybreak.serving.lists import Lists

    return Lists(connect(conf), conf.redis)


def night_context() -> "Context":
    """What a night works on."""
    from jobs.run.context import open_context

    return open_context(settings.load())
