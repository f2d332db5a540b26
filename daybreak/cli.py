"""The `daybreak` command: the composition root. Every command imports what it needs when it runs.

Rows and the JSON summary go to standard output, everything said about them to standard error.
"""

import json
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daybreak import cli_analyst, cli_board_deeds, clock, settings
from daybreak.errors import DaybreakError, UsageError
from daybreak.events import Kind
from daybreak.terminal import (
    Format,
    parse_day,
    parse_instant,
    parse_mapping,
    parse_span,
    progress,
    say,
    show,
    summarise,
)
from daybreak.windows import Bucket, Window, bucket_at

if TYPE_CHECKING:
    from daybreak.serving.lists import Lists, ServedList
    from jobs.place import Place
    from lakehouse.delta_rs import DeltaRsStore

app = typer.Typer(
    help="Approximate while the day runs, exact by daybreak.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
app.add_typer(cli_board_deeds.app, name="board")
cli_analyst.add_to(app)

Files = Annotated[list[Path], typer.Argument(help="JSON lines, CSV or Parquet files.")]
Map = Annotated[list[str] | None, typer.Option("--map", help="Rename a column: SOURCE=NAME, e.g. ts=occurred_at.")]
Zone = Annotated[str | None, typer.Option(help="Zone of timestamps that carry none, e.g. UTC or Europe/London.")]
DayOption = Annotated[str | None, typer.Option("--day", help="One UTC day, YYYY-MM-DD.")]
From = Annotated[str | None, typer.Option("--from", help="First day of a range.")]
To = Annotated[str | None, typer.Option("--to", help="Last day of a range.")]


@app.command(epilog="Example: daybreak ingest events.parquet --map ts=occurred_at --complete-through 2011-12-09")
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
    conf, store = lake()
    totals = {"read": 0, "accepted": 0, "refused": 0, "skipped_files": 0}
    for path in files:
        done = job.ingest_file(
            store,
            conf,
            clock.now,
            path,
            kind=kind,
            mapping=parse_mapping(mapping),
            default_timezone=default_timezone,
        )
        if done.skipped:
            say(f"{path}: taken in before (same content), skipped")
            totals["skipped_files"] += 1
            continue
        reasons = ", ".join(f"{count} {code}" for code, count in sorted(done.refused_by_code.items()))
        say(
            f"{path}: {done.accepted} accepted + {done.refused} refused = {done.read} read"
            + (f" ({reasons})" if reasons else "")
        )
        for name in ("read", "accepted", "refused"):
            totals[name] += getattr(done, name)
    if through:
        job.declare_complete(store, clock.now, kind, through)
        say(f"{kind.value} are complete through {through}")
    summarise("ingest", totals)


@app.command(epilog="Example: daybreak stream events.jsonl --until-idle")
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
    trial: dict[str, Any] = {"force_cells": force_cells or conf.stream.force_cells}
    if relative_error is not None:
        if not 0 < relative_error < 1:
            raise UsageError(f"--relative-error {relative_error} is not between 0 and 1; try 0.01")
        for window in Window:
            target = getattr(conf.stream, window.value)
            trial[window.value] = target.model_copy(update={"relative_error": relative_error})
    worker = Worker(conf.stream.model_copy(update=trial), lists(conf), clock.now)
    for taken in stream_files(
        files,
        conf,
        clock.now,
        mapping=parse_mapping(mapping),
        default_timezone=default_timezone,
    ):
        worker.feed(taken.accepted, taken.refused.num_rows)
    worker.close()
    counted = worker.accounting.as_dict()
    say("{counted} counted + {late} late + {ahead} ahead + {refused} refused = {read} read".format(**counted))
    summarise("stream", counted)


@app.command(epilog="Example: daybreak nightly --day 2011-12-05")
def nightly(
    day: DayOption = None,
    first: From = None,
    last: To = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Recorrect exactly the days whose events have changed.")
    ] = False,
    allow_incomplete: Annotated[
        bool, typer.Option("--allow-incomplete", help="Count what is there; Redis is left alone.")
    ] = False,
) -> None:
    """Correct days exactly: check, commit, publish and report. Without a day: yesterday (UTC)."""
    from jobs import status as days
    from jobs.night import nightly as run_night

    with night_place() as place:
        if stale:
            if day:
                raise UsageError("--stale finds its days itself; leave --day out, or bound it with --from and --to")
            bounds = [parse_day(bound) if bound else None for bound in (first, last)]
            found = {*days.stale_days(place.store, place.settings, *bounds)}
            found |= {*days.stale_board_days(place.store, place.settings, place.boards, *bounds)}
            spans = list(days.ranges(found))
            if not spans:
                say("no day is stale")
        elif day or first or last:
            spans = [parse_span(day, first, last)]
        else:
            spans = [(clock.now().date() - timedelta(days=1),) * 2]
        for start, end in spans:
            about = f"{start} to {end}" if start != end else str(start)
            with progress(about) as step:
                done = run_night(place, start, end, allow_incomplete=allow_incomplete, progress=step)
            if done.lake_version >= 0:
                say(f"{done.distinct} distinct + {done.duplicate} duplicate = {done.rows} rows of {about}")
                if not done.rows:
                    say(f"warning: no event at all in {about}; explicitly empty lists are published")
            if done.boards:
                say(f"{done.boards} boards of a period ranked for {about}")
            summarise("nightly", done.as_dict())
    if not spans:
        summarise("nightly", {"days": 0})


@app.command(epilog="Example: daybreak run pin --run-id scheduled-1 --day 2011-12-05")
def run(
    step: Annotated[
        str, typer.Argument(help="complete, pin, derive, check, commit, capture, publish, report, boards, optimize")
    ],
    run_id: Annotated[str, typer.Option("--run-id", help="The run that the step belongs to.")],
    day: DayOption = None,
    first: From = None,
    last: To = None,
    allow_incomplete: Annotated[bool, typer.Option("--allow-incomplete")] = False,
) -> None:
    """Run one step of a night; a scheduler retries steps, not nights."""
    from jobs.night import run_step

    start, end = parse_span(day, first, last) if (day or first or last) else (None, None)
    with night_place() as place:
        run_step(place, step, run_id, start, end, allow_incomplete)
    summarise("run", {"step": step, "run_id": run_id})


@app.command(epilog="Example: daybreak status --from 2011-12-01 --to 2011-12-09")
def status(first: From = None, last: To = None, format_: Format = "table") -> None:
    """Say of each day: rows, complete, provisional or exact or stale, generation, lake version."""
    from dataclasses import asdict

    from jobs.status import status as day_states

    conf, store = lake()
    found = day_states(store, conf, lists(conf), parse_day(first) if first else None, parse_day(last) if last else None)
    names = ["day", "rows", "is_complete", "state", "generation", "lake_version"]
    show(names, (asdict(each) for each in found), format_)


@app.command(epilog="Example: daybreak top --window hour --at 2011-12-05T17:00 -k 20")
def top(
    window: Annotated[Window, typer.Option(help="Which window.")] = Window.DAY,
    at: Annotated[
        str | None, typer.Option(help="A time inside the bucket, UTC: 2011-12-05 or 2011-12-05T17:24.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many entries.")] = 20,
    format_: Format = "table",
) -> None:
    """Show a list of the most played items, and whether it is provisional or exact."""
    from daybreak.ranking import ranks

    bucket = bucket_at(window, parse_instant(at))
    conf = settings.load()
    served = served_list(conf, bucket, k)
    entries = served.entries[:k]
    positions = ranks([count for _, count in entries], "competition")
    rows = [
        {"position": position, "rank": rank, "item_id": item_id, "count": count}
        for position, (rank, (item_id, count)) in enumerate(zip(positions, entries, strict=True), 1)
    ]
    meta = served.meta
    about = {
        "state": meta.state,
        "as_of": meta.as_of.isoformat(),
        "error_bound": meta.error_bound,
        "generation": meta.generation,
        "lake_version": meta.lake_version,
        "population": meta.items_total,
    }
    say(" ".join(f"{key}={value}" for key, value in about.items() if value is not None))
    columns = ["position", "rank", "item_id", "count"]
    if format_ == "json":
        rows = [row | {name: about[name] for name in ("state", "as_of", "error_bound")} for row in rows]
    show(columns, rows, format_)


@app.command(epilog="Example: daybreak estimate --window day --at 2011-12-05 22086 85123A")
def estimate(
    items: Annotated[list[str], typer.Argument(metavar="ITEM…")],
    window: Annotated[Window, typer.Option()] = Window.DAY,
    at: Annotated[str | None, typer.Option(help="A time inside the bucket, UTC.")] = None,
    format_: Format = "table",
) -> None:
    """Count of any items: the sketch's estimate while provisional, the exact count afterwards."""
    bucket = bucket_at(window, parse_instant(at))
    conf = settings.load()
    counts, state, bound = item_counts(conf, bucket, items)
    say(f"state={state} error_bound={bound}")
    rows = [{"item_id": item, "count": counts[item], "state": state, "error_bound": bound} for item in items]
    show(["item_id", "count", "state", "error_bound"], rows, format_)


@app.command(epilog="Example: daybreak report --day 2011-12-05")
def report(day: Annotated[str, typer.Option("--day", help="The corrected day.")], format_: Format = "table") -> None:
    """Say how wrong the provisional lists of a corrected day were."""
    from jobs import report as job

    conf, store = lake()
    found = job.report(store, conf, parse_day(day))
    if format_ == "json":
        print(json.dumps(found, default=str))
    elif format_ == "csv":
        show(list(found["lists"][0]) if found["lists"] else [], found["lists"], "csv")
    else:
        for line in job.in_words(found):
            print(line)


@app.command(epilog="Example: daybreak doctor --warm")
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


@app.command(epilog="Example: daybreak down")
def down() -> None:
    """Stop the embedded Redis; what it holds stays on disk."""
    from daybreak.serving.server import EmbeddedServer

    stopped = EmbeddedServer(settings.load().home).stop()
    say("embedded Redis stopped" if stopped else "no embedded Redis was running")


@app.command(epilog="Example: daybreak demo")
def demo() -> None:
    """Replay a real day of flights, correct it overnight and show the error."""
    from rich.console import Console

    from jobs import demo as job

    job.run(settings.load(), Console())


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


def served_list(conf: settings.Settings, bucket: Bucket, k: int) -> "ServedList":
    """The list of a bucket: what Redis serves, or for a minute of a corrected day the lake's exact one.

    Raises:
        UsageError: there is none.
    """
    redis = lists(conf)
    state = redis.day_state(bucket.day)
    is_exact = state is not None and state.state == "exact"
    if not (bucket.window is Window.MINUTE and is_exact) and (served := redis.read(bucket)):
        return served
    from jobs.lookup import list_from_lake

    _, store = lake()
    if found := list_from_lake(store, conf, bucket, k):
        return found
    raise UsageError(
        f"no {bucket.window} list for {bucket.start:%Y-%m-%dT%H:%MZ}: stream its events, "
        f"or correct the day with: daybreak nightly --day {bucket.day}"
    )


def item_counts(conf: settings.Settings, bucket: Bucket, items: Sequence[str]) -> tuple[dict[str, int], str, float]:
    """(count or estimate per item, state, error bound) of a bucket."""
    redis = lists(conf)
    served = redis.read(bucket)
    if served and served.meta.state == "provisional":
        sketch, _ = redis.read_sketch(bucket)
        if sketch is None:
            raise UsageError(
                f"the sketch of {bucket.label} on {bucket.day} is not kept yet; it is at the bucket's close"
            )
        from streaming.sketch import CountMinSketch

        estimates = CountMinSketch.deserialize(sketch).estimate_ids(list(items))
        return dict(zip(items, map(int, estimates), strict=True)), "provisional", served.meta.error_bound
    from jobs.lookup import counts_from_lake

    _, store = lake()
    return counts_from_lake(store, conf, bucket, items), "exact", 0.0


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
