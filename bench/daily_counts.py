"""Exact daily counts of a 2.5 M-event day on Sail against DuckDB, and in a long lake against a short one.

Run: `python -m bench.daily_counts`.
"""

import tempfile
from functools import partial
from pathlib import Path

import duckdb

from bench.harness import Result, interleaved, show
from bench.lakes import DAY, few_days, many_days, opened_files
from daybreak import clock
from daybreak.settings import Settings
from daybreak.windows import day_bounds, to_micros
from jobs.items import daily_counts, hourly_counts
from jobs.run.pin import pin
from jobs.run.run import Run
from lakehouse.opening import open_engine
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables import registry as tables

ROUNDS = 5

PLAIN = """
select item_id, sum(weight) as count, count(*) as event_count
from (
    select distinct on (event_id) item_id, weight from event_rows
    where epoch_us(occurred_at) >= getvariable('start_us') and epoch_us(occurred_at) < getvariable('end_us')
)
group by item_id
"""
"""The least that gives the day's counts: any copy of an event, no hours, no look-back."""

HOURLY = """
create or replace temp table hourly as
select hour(occurred_at) as hour, item_id, sum(weight) as count, count(*) as event_count,
    min(occurred_at) as first_occurred_at, max(occurred_at) as last_occurred_at
from (
    select distinct on (event_id) item_id, weight, occurred_at from event_rows
    where epoch_us(occurred_at) >= getvariable('start_us') - 3600000000
      and epoch_us(occurred_at) < getvariable('end_us')
    order by event_id, occurred_at, received_at, source, "partition", "offset"
)
where epoch_us(occurred_at) >= getvariable('start_us')
group by all
"""
DAILY = """
select item_id, sum(count) as count, sum(event_count) as event_count,
    min(first_occurred_at) as first_occurred_at, max(last_occurred_at) as last_occurred_at
from hourly group by all
"""
"""What the jobs do: the copy that comes first, the look-back, hours and days with their instants."""

WHY_SLOWER = (
    "Profiled on two cores (2026-12-01): the hours' job takes nearly all of it, 3.6 s, of which 0.5 s are the scan, "
    "0.3 s the grouping and the write, and 2.8 s finding first copies: a sort of every event by its id, seven "
    "columns wide. DuckDB's plain query hashes ids instead, keeps any copy, and writes no hours; asked for the "
    "same tables by the same rule (order key, look-back) it takes about as long as the jobs. A trial that looks "
    "for ids whose 64-bit hash occurs twice, and orders only their events, took 2.6 s for the hours; it holds one "
    "hash entry per event, which the sort was chosen to avoid on very large days."
)
WHY_LONGER = (
    "The same data files are opened, so what is left is the log, which `pin` and `files` replay anew at each look; "
    "the table has the time of `pin` in both lakes."
)


def started(home: Path) -> Run:
    """A night over the large day of the lake in `home`, its engine not yet at work."""
    conf = Settings(home=home)
    store = DeltaRsStore(conf.lake_root)
    return Run(
        conf, store, clock.now, pin(store, conf, clock.now, "bench", DAY, DAY, allow_incomplete=True), open_engine(conf)
    )


def pin_day(run: Run) -> None:
    """Pin the day anew."""
    run.state = pin(run.store, run.settings, run.clock, "bench", DAY, DAY, allow_incomplete=True)


def count_day(run: Run) -> None:
    """Pin the day anew, then stage its hours and the day."""
    pin_day(run)
    hourly_counts.stage(run)
    daily_counts.stage(run)


def event_files(run: Run) -> list[str]:
    """The files that the jobs read."""
    return run.store.files(tables.ITEM_EVENTS, run.pin.lake_version, DAY - (DAY.resolution), DAY)


def duckdb_on(files: list[str]) -> duckdb.DuckDBPyConnection:
    """A DuckDB that knows the files and the day."""
    duck = duckdb.connect(":memory:", config={"preserve_insertion_order": False})
    duck.execute("set timezone = 'UTC'")
    duck.read_parquet(files, hive_partitioning=False).create_view("event_rows")
    start, end = day_bounds(DAY)
    for name, instant in (("start_us", start), ("end_us", end)):
        duck.execute(f"set variable {name} = {to_micros(instant)}")
    return duck


def plain(duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """DuckDB's distinct, group-by and write."""
    duck.sql(PLAIN).write_parquet(str(folder / "plain.parquet"))


def alike(duck: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """DuckDB doing what the jobs do."""
    duck.execute(HOURLY)
    duck.table("hourly").write_parquet(str(folder / "hourly.parquet"))
    duck.sql(DAILY).write_parquet(str(folder / "daily.parquet"))


def require_equal(run: Run, folder: Path) -> None:
    """Passes when both counted the same."""
    ours = duckdb.read_parquet(run.staged_files(tables.DAILY_COUNTS)).select("item_id, count, event_count")
    for file in ("plain.parquet", "daily.parquet"):
        theirs = duckdb.read_parquet(str(folder / file)).select("item_id, count::bigint as count, event_count::bigint")
        for one, other in ((ours, theirs), (theirs, ours)):
            assert not one.except_(other).limit(1).fetchall(), file


def against_duckdb(folder: Path) -> list[Result]:
    """The jobs against DuckDB, both started before."""
    run = started(few_days(folder))
    try:
        duck = duckdb_on(event_files(run))
        count_day(run)
        seconds = interleaved(
            {
                "jobs": partial(count_day, run),
                "hours": partial(hourly_counts.stage, run),
                "plain": partial(plain, duck, folder),
                "alike": partial(alike, duck, folder),
            },
            rounds=ROUNDS,
        )
        require_equal(run, folder)
    finally:
        run.engine.stop()
    ours, least, same = seconds["jobs"], seconds["plain"], seconds["alike"]
    return [
        Result(
            "exact counts of a day of 2.5 M, hours and day staged",
            ours,
            "s",
            "DuckDB's distinct, group-by and write",
            ours / least,
            "<= 1.5 x",
            WHY_SLOWER,
        ),
        Result("of these, hours", seconds["hours"], "s"),
        Result("DuckDB's distinct, group-by and write", least, "s"),
        Result("DuckDB with order key, look-back, hours and day", same, "s", "jobs to it", ours / same),
    ]


def data_read(run: Run) -> tuple[set[str], int, int]:
    """(data files opened, their bytes, bytes that Sail's process read) by counting the day once."""
    root = run.store.path(tables.ITEM_EVENTS)
    before = bytes_read(run.engine.pid)
    with opened_files(root) as opened:
        count_day(run)
    return opened, sum((root / file).stat().st_size for file in opened), bytes_read(run.engine.pid) - before


def bytes_read(pid: int) -> int:
    """Bytes that a process has read so far, by Linux's count."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def long_against_short(folder: Path) -> list[Result]:
    """The day in a lake of 64 days against one of 8: what is opened, and the time."""
    short, long = started(few_days(folder)), started(many_days(folder))
    try:
        for run in (short, long):
            count_day(run)
        tasks = {
            f"{name} {task.__name__}": partial(task, run)
            for task in (count_day, pin_day)
            for name, run in (("short", short), ("long", long))
        }
        seconds = interleaved(tasks, rounds=ROUNDS)
        (few, few_bytes, few_read), (many, many_bytes, many_read) = data_read(short), data_read(long)
    finally:
        short.engine.stop()
        long.engine.stop()
    same = "a lake of 8 days"

    def compared(name: str, task: str, target: str) -> Result:
        there, here = seconds[f"long {task}"], seconds[f"short {task}"]
        return Result(name, there, "s", same, there / here, target, WHY_LONGER)

    return [
        Result("other data files opened in a lake of 64 days", len(many ^ few), "files", target="<= 0"),
        Result("data files opened there", len(many), "files", same, len(many) / len(few), "<= 1 x"),
        Result("bytes of these files", many_bytes / 1e6, "MB", same, many_bytes / few_bytes, "<= 1 x"),
        Result("bytes that Sail's process read there", many_read / 1e6, "MB", same, many_read / few_read),
        compared("counts of the day there", "count_day", "<= 1.2 x"),
        compared("of these, pin", "pin_day", ""),
    ]


def run(folder: Path | None = None) -> list[Result]:
    """Both comparisons, in a folder that may hold the lakes already."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return run(Path(made))
    return [*against_duckdb(folder), *long_against_short(folder)]


if __name__ == "__main__":
    show(run())
