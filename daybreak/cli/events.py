"""The commands that take events: into the lake, and into the provisional lists."""

from pathlib import Path
from typing import Annotated, Any

import typer

from daybreak import clock, settings
from daybreak.cli.options import lists, parse_day, parse_mapping, store
from daybreak.cli.output import reading, say, summarise
from daybreak.errors import UsageError
from daybreak.events import Kind
from daybreak.windows import Window

Files = Annotated[list[Path], typer.Argument(help="JSON lines, CSV or Parquet files.")]
Map = Annotated[list[str] | None, typer.Option("--map", help="Rename a column: SOURCE=NAME, e.g. ts=occurred_at.")]
Zone = Annotated[str | None, typer.Option(help="Zone of timestamps that carry none, e.g. UTC or Europe/London.")]


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `app`."""
    example = "daybreak ingest events.parquet --map ts=occurred_at --complete-through 2011-12-09"
    app.command(epilog=f"Example: {example}")(ingest)
    app.command(epilog="Example: daybreak stream events.jsonl --until-idle")(stream)


def ingest(
    files: Files,
    kind: Annotated[Kind, typer.Option(help="What the files hold.")] = Kind.ITEMS,
    mapping: Map = None,
    default_timezone: Zone = None,
    complete_through: Annotated[
        str | None, typer.Option(help="Declare that every event up to the end of this day is in.")
    ] = None,
) -> None:
    """Take files of events into the lake; each row is accepted or refused with a reason."""
    from jobs import ingest as job

    through = parse_day(complete_through) if complete_through else None
    conf = settings.load()
    lake = store(conf)
    totals = {"read": 0, "accepted": 0, "refused": 0, "skipped_files": 0}
    with reading(files) as shown:
        for path in files:
            done = job.ingest_file(
                lake,
                conf,
                clock.now,
                path,
                kind=kind,
                mapping=parse_mapping(mapping),
                default_timezone=default_timezone,
                progress=shown.rows,
            )
            shown.file_done(path)
            if done.skipped:
                say(f"{path}: taken in before (same content), skipped")
                totals["skipped_files"] += 1
                continue
            reasons = ", ".join(f"{count} {code}" for code, count in sorted(done.refused_by_code.items()))
            sums = f"{done.accepted} accepted + {done.refused} refused = {done.read} read"
            say(f"{path}: {sums} ({reasons})" if reasons else f"{path}: {sums}")
            for name in ("read", "accepted", "refused"):
                totals[name] += getattr(done, name)
    if through:
        job.declare_complete(lake, clock.now, kind, through)
        say(f"{kind.value} are complete through {through}")
    summarise("ingest", totals)


def stream(
    files: Files,
    until_idle: Annotated[bool, typer.Option("--until-idle", help="End when the files are read.")] = False,
    mapping: Map = None,
    default_timezone: Zone = None,
    relative_error: Annotated[float | None, typer.Option(help="Trial: this relative error for every window.")] = None,
    force_cells: Annotated[
        bool, typer.Option("--force-cells", help="Trial: sketch cells from the first event.")
    ] = False,
) -> None:
    """Count events as they come and publish provisional lists in Redis."""
    from streaming.sources.files import stream_files
    from streaming.worker import Worker

    if not until_idle:
        raise UsageError("files end, so say --until-idle; endless sources come with Redis Streams and Kafka")
    conf = settings.load()
    worker = Worker(trial_of(conf.stream, relative_error, force_cells), lists(conf), clock.now)
    with reading() as shown:
        renamed = parse_mapping(mapping)
        for taken in stream_files(files, conf, clock.now, mapping=renamed, default_timezone=default_timezone):
            worker.feed(taken.accepted, taken.refused.num_rows)
            shown.rows(taken.read)
        worker.close()
    counted = worker.accounting.as_dict()
    say("{counted} counted + {late} late + {ahead} ahead + {refused} refused = {read} read".format(**counted))
    summarise("stream", counted)


def trial_of(conf: settings.Stream, relative_error: float | None, force_cells: bool) -> settings.Stream:
    """The settings with what a trial changes in them."""
    changed: dict[str, Any] = {"force_cells": force_cells or conf.force_cells}
    if relative_error is not None:
        if not 0 < relative_error < 1:
            raise UsageError(f"--relative-error {relative_error} is not between 0 and 1; try 0.01")
        for window in Window:
            target = getattr(conf, window.value)
            changed[window.value] = target.model_copy(update={"relative_error": relative_error})
    return conf.model_copy(update=changed)
