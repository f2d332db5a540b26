"""What commands work on: the settings with the lake, the lists, a night's place; and the days their options name."""

from typing import TYPE_CHECKING, Annotated

import typer

from daybreak import settings

if TYPE_CHECKING:
    from daybreak.serving.lists import Lists
    from jobs.place import Place
    from lakehouse.delta_rs import DeltaRsStore

DayOption = Annotated[str | None, typer.Option("--day", help="One UTC day, YYYY-MM-DD.")]
From = Annotated[str | None, typer.Option("--from", help="First day of a range.")]
To = Annotated[str | None, typer.Option("--to", help="Last day of a range.")]


def lake() -> "tuple[settings.Settings, DeltaRsStore]":
    """The settings and the lake."""
    from lakehouse.delta_rs import DeltaRsStore

    conf = settings.load()
    return conf, DeltaRsStore(conf.lake_root, conf.lake.retention)


def lists(conf: settings.Settings) -> "Lists":
    """The lists in Redis."""
    from daybreak.serving.lists import Lists
    from daybreak.serving.server import connect

    return Lists(connect(conf), conf.redis)


def night_place() -> "Place":
    """What a night works on."""
    from jobs.place import open_place

    return open_place(settings.load())
