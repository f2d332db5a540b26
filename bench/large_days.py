"""A day of 2.5 M events, a season of 20 M and a day of 100 M on every engine in one run: seconds and peak memory.

Run: `python -m bench.large_days [FOLDER]` (`make bench-large`); it writes bench/LARGE.md. A folder that holds the
lakes already saves four minutes. Every measurement is a process of its own; its memory is the largest sum of
resident bytes of it and of all that it started.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from pathlib import Path

import duckdb
import pyarrow as pa

from bench.data import day_of_events
from bench.harness import Result, show
from bench.page import write_page
from bench.processes import Cost, watched
from daybreak import clock
from daybreak.events import ITEM_EVENT
from daybreak.settings import load
from daybreak.windows import day_bounds, days_between, to_micros
from jobs.items import daily_counts, hourly_counts, top_lists
from jobs.items.check import recount_differences
from jobs.run.pin import pin
from jobs.run.run import Run, load_state
from lakehouse.opening import open_engine
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables import registry as tables

FIRST = date(2026, 3, 1)
BATCHES_PER_COMMIT = 10

PLAIN = """
select day, item_id, sum(weight) as count, count(*) as event_count
from (
    select distinct on (day, event_id) occurred_at::date as day, item_id, weight, event_id from event_rows
    where epoch_us(occurred_at) >= getvariable('start_us') and epoch_us(occurred_at) < getvariable('end_us')
)
group by all
"""
"""The least that gives the days' counts: any copy of an event, no hours, no look-back."""

WHY = (
    "Profiled on 28 M events (processor seconds, two cores share them): keys of all events read and hashed 5.6, keys "
    "that occur twice found 4.5, events of other keys counted 12.7 (8.6 of them without any deduplication), the rest "
    "put in order and counted 7.9, parts merged 2.1. Ordering every event takes 58 for the same."
)


ONCE = "Each number is one process's, run once after the other; its memory is of all processes that it started."
SLOWEST = """
## The slowest plan

The slowest, beside DuckDB's plain query, is the hours of a range on Spark. Its plan reads the Parquet files twice (the
days, and the look-back slice before each) and unites them; exchanges every event by (counted day, hash of its id modulo
16); sorts each part by id and order key; a window keeps each id's first copy; a partial sum, an exchange of its rows by
(day, hour, item), the final sum, and the write. Of 89 processor seconds of the season's 20.8 M events (Spark's event
log), reading and writing 1.4 GB of shuffle took 23.5, the sort with the window and the partial sum 57.6 (3.5 GB of
sorted rows spilled), the exchange of 7.8 M partial sums with the final sum and the write 8.3. So two thirds are the
exact choice of the first copy, which the plain query beside it does not make: it keeps any. No step runs in a single
task: the window's parts are sixteenths of days. Above `night.part_rows` events only those are sorted whose id's hash
occurs twice, which is why a day of 100 M costs less per event than a season of 20 M on either engine.
"""


@dataclass(frozen=True)
class Range:
    """Days in a row with as many events each, the day before them smaller."""

    name: str
    days: int
    rows: int
    rows_before: int

    @property
    def last(self) -> date:
        return FIRST + timedelta(days=self.days - 1)


SMALL = Range("a day of 2.5 M", 1, 2_500_000, 2_500_000)
DAY = Range("a day of 100 M", 1, 100_000_000, 300_000)
SEASON = Range("a season of 40 x 0.5 M", 40, 500_000, 500_000)
RANGES = {"small": SMALL, "season": SEASON, "day": DAY}
ENGINES = ("sail", "spark")


def home_of(folder: Path, key: str) -> Path:
    """A home whose lake holds the range, made batch by batch unless it is there."""
    home, days = folder / key, RANGES[key]
    whole = home / "made"
    if not whole.exists():
        store = DeltaRsStore(home / "lake")
        before = FIRST - timedelta(days=1)
        for day in days_between(before, days.last):
            made = day_of_events(day, days.rows_before if day == before else days.rows)
            while part := list(islice(made, BATCHES_PER_COMMIT)):
                store.append(tables.ITEM_EVENTS, pa.RecordBatchReader.from_batches(ITEM_EVENT, batches_of(part)))
        whole.touch()
    return home


def batches_of(made: list[pa.Table]) -> Iterator[pa.RecordBatch]:
    """The batches of all tables."""
    for table in made:
        yield from table.to_batches()


def night_of(home: Path, key: str, engine: str) -> Run:
    """A night over the range: the one that staged before, or else a new one."""
    conf = load({"DAYBREAK_HOME": str(home), "DAYBREAK_ENGINE": engine})
    store, run_id, last = DeltaRsStore(conf.lake_root), f"bench-{engine}", RANGES[key].last
    if (conf.staging_root / run_id / "run.json").exists():
        state = load_state(conf, run_id)
    else:
        state = pin(store, conf, clock.now, run_id, FIRST, last, allow_incomplete=True)
    return Run(conf, store, clock.now, state, open_engine(conf))


def run_jobs(home: Path, key: str, engine: str) -> dict[str, float]:
    """Seconds of each job; the engine's start is a step of its own."""
    run = night_of(home, key, engine)
    run.save()
    try:
        return timed(
            {
                "start": lambda: run.engine.spark,
                "hours": lambda: hourly_counts.stage(run),
                "days": lambda: daily_counts.stage(run),
                "lists": lambda: top_lists.stage(run),
            }
        )
    finally:
        run.engine.stop()


def run_recount(home: Path, key: str, engine: str) -> dict[str, float]:
    """Seconds of DuckDB's recount of what the engine staged; it must find no difference."""
    run = night_of(home, key, engine)

    def recount() -> None:
        found = recount_differences(run)
        assert not found, found

    return timed({"recount": recount})


def run_plain(home: Path, key: str, engine: str) -> dict[str, float]:
    """Seconds of DuckDB's distinct, group-by and write; its counts must be those that the engine staged."""
    run = night_of(home, key, engine)
    duck = duckdb.connect(":memory:", config={"preserve_insertion_order": False})
    duck.execute("set timezone = 'UTC'")
    duck.execute("set temp_directory = $1", [str(home / "spill")])
    files = run.store.files(tables.ITEM_EVENTS, run.pin.read_version, run.pin.first, run.pin.last)
    duck.read_parquet(files, hive_partitioning=False).create_view("event_rows")
    start, end = day_bounds(run.pin.first)[0], day_bounds(run.pin.last)[1]
    for name, instant in (("start_us", start), ("end_us", end)):
        duck.execute(f"set variable {name} = {to_micros(instant)}")
    out = home / "plain.parquet"
    steps = timed({"plain": lambda: duck.sql(PLAIN).write_parquet(str(out))})
    columns = "day, item_id, count::bigint as count, event_count::bigint as event_count"
    ours = duckdb.read_parquet(run.staged_files(tables.DAILY_COUNTS)).select(columns)
    theirs = duckdb.read_parquet(str(out)).select(columns)
    assert not ours.except_(theirs).limit(1).fetchall()
    assert not theirs.except_(ours).limit(1).fetchall()
    return steps


WORK: dict[str, Callable[[Path, str, str], dict[str, float]]] = {
    "jobs": run_jobs,
    "plain": run_plain,
    "recount": run_recount,
}


def timed(tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of each task, one after the other."""
    seconds = {}
    for name, task in tasks.items():
        began = time.perf_counter()
        task()
        seconds[name] = time.perf_counter() - began
    return seconds


def cost(work: str, home: Path, key: str, engine: str) -> Cost:
    """One piece of work in a fresh process."""
    words = ["-m", "bench.large_days", "--work", work, str(home), key, engine]
    return watched([sys.executable, *words], home / work)


def gb(cost: Cost) -> float:
    """Peak memory in GB."""
    return cost.peak_bytes / 1e9


def results(key: str, jobs: dict[str, Cost], plain: Cost, recount: Cost) -> list[Result]:
    """What was measured of a range, in the order of the page."""
    what, to = RANGES[key].name, "DuckDB's distinct, group-by and write"
    found = []
    for engine, cost in jobs.items():
        seconds, memory = ("<= 60 s", "<= 10 GB") if (engine, key) == ("sail", "day") else ("", "")
        working = cost.seconds - cost.steps["start"]
        found += [
            Result(f"{what}, all jobs on {engine}", working, "s", to, working / plain.seconds, seconds, WHY),
            *(Result(f"{engine}, {step}", took, "s") for step, took in cost.steps.items()),
            Result(
                f"{engine}, peak memory", cost.peak_bytes / 1e9, "GB", to, cost.peak_bytes / plain.peak_bytes, memory
            ),
            Result(f"{engine}, processor time", cost.processor_seconds, "s"),
        ]
    for name, other in ((to, plain), ("DuckDB's recount of it all", recount)):
        found += [
            Result(f"{what}, {name}", other.seconds, "s"),
            Result(f"peak memory of {name}", gb(other), "GB"),
            Result(f"processor time of {name}", other.processor_seconds, "s"),
        ]
    return found


def measure(folder: Path, key: str) -> list[Result]:
    """The jobs on each engine over one range, DuckDB's plain counts beside them, and the recount of what was staged.

    Every engine's rows are recounted; the recount's cost is that of the last.
    """
    home = home_of(folder, key)
    shutil.rmtree(home / "staging", ignore_errors=True)
    jobs = {engine: cost("jobs", home, key, engine) for engine in ENGINES}
    plain = cost("plain", home, key, ENGINES[0])
    recounts = [cost("recount", home, key, engine) for engine in ENGINES]
    return results(key, jobs, plain, recounts[-1])


def run(folder: Path | None = None) -> dict[str, list[Result]]:
    """All ranges on all engines, in a folder that may hold the lakes already."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return run(Path(made))
    found = {}
    for key in RANGES:
        found[RANGES[key].name] = measure(folder, key)
        show(found[RANGES[key].name])
    return found


def main(words: list[str]) -> None:
    """Measure and write the page; with `--work`, do the work that another process measures."""
    if words[:1] == ["--work"]:
        _, work, home, key, engine = words
        print(json.dumps(WORK[work](Path(home), key, engine)))
        return
    began = time.perf_counter()
    found = run(Path(words[0]) if words else None)
    took, page = time.perf_counter() - began, Path(__file__).parent / "LARGE.md"
    write_page(page, "python -m bench.large_days", took, found, SLOWEST, ONCE)


if __name__ == "__main__":
    main(sys.argv[1:])
