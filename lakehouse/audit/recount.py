"""The second bookkeeper: DuckDB counts the days from the event files and compares with what was staged.

It shares nothing with the jobs but the event files: the queries in `recount.sql` select by `occurred_at`,
keep the smallest copy of each event and honour the look-back. Its memory is bounded: it counts bucket by
bucket of event ids, has a limit, and spills beyond it into a folder that goes with the connection.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from importlib.resources import files as package_files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from daybreak.errors import LakeFailedError
from daybreak.windows import Bucket, to_micros
from lakehouse.tables.registry import DAILY_COUNTS, DERIVED, HOURLY_COUNTS, ITEM_EVENTS, Table

EPOCH_DAY = date(1970, 1, 1)
SHARES = 64
SHOWN = 3
BUCKET_ROWS = 50_000_000
"""Events of a bucket. Each reads the files anew; one of this size passes the limit below and spills some GB."""
MEMORY_LIMIT = 4 * 2**30
"""Bytes that DuckDB may hold before it spills."""


@dataclass(frozen=True)
class MinuteList:
    """The exact list of one minute, cut at k, and what it was cut from."""

    entries: tuple[tuple[str, int], ...]
    population: int
    total_weight: int
    events: int


def differences(
    event_files: Sequence[str],
    staged: Mapping[str, Sequence[str]],
    *,
    first: date,
    last: date,
    lookback: timedelta,
    depth: int,
    rows: int,
    full_below: int,
    day_rows: Mapping[date, int],
    bucket_rows: int = BUCKET_ROWS,
    memory_limit: int = MEMORY_LIMIT,
    spill: Path | None = None,
) -> list[str]:
    """What DuckDB counts differently, in words; empty when all that was staged holds.

    Above `full_below` rows every total and list place is compared, but of the items only a 64th, another
    one each day. What does not fit into `memory_limit` bytes is spilled into a folder of its own, made in
    `spill` or else where the system keeps its temporary files, and removed at the end.

    Raises:
        LakeFailedError: a file cannot be read.
    """
    share = None if rows < full_below else (last - EPOCH_DAY).days % SHARES
    buckets = max(1, -(-rows // bucket_rows))
    with connection(memory_limit, spill) as duck:
        try:
            _count(duck, event_files, first, last, lookback, depth, buckets)
            for table in DERIVED:
                relation(duck, table.name, staged.get(table.name, ()), table)
            for view in ("staged_hourly", "staged_daily", "staged_lists"):
                _run(duck, view)
            return [
                *_row_differences(duck, day_rows),
                *_total_differences(duck, "hourly"),
                *_total_differences(duck, "daily"),
                *_differences(duck, HOURLY_COUNTS, "hourly", share),
                *_differences(duck, DAILY_COUNTS, "daily", share),
                *_differences(duck, DERIVED[2], "lists", None),
            ]
        except duckdb.Error as error:
            raise failed(error) from error


def minute_list(files: Sequence[str], bucket: Bucket, lookback: timedelta, k: int) -> MinuteList:
    """The exact list of one bucket, counted from the event files of its day and the day before."""
    with connection() as duck:
        try:
            set_variables(duck, start_us=to_micros(bucket.start), end_us=to_micros(bucket.end))
            _winners(duck, files, bucket.day, bucket.day, lookback)
            found = _run(duck, "minute").fetchall()
        except duckdb.Error as error:
            raise failed(error) from error
    return MinuteList(
        entries=tuple((item, int(count)) for item, count, _ in found[:k]),
        population=len(found),
        total_weight=sum(int(count) for _, count, _ in found),
        events=sum(events for _, _, events in found),
    )


def _count(
    duck: Any, event_files: Sequence[str], first: date, last: date, lookback: timedelta, depth: int, buckets: int
) -> None:
    set_variables(duck, depth=depth)
    _winners(duck, event_files, first, last, lookback, buckets)
    steps = ["hourly", *["hourly_next"] * (buckets - 1)]
    _run(duck, "hours")
    for bucket, step in enumerate(steps):
        set_variables(duck, bucket=bucket)
        _run(duck, step)
    if buckets > 1:
        _run(duck, "hourly_merged")
    for step in ("daily", "lists"):
        _run(duck, step)


def _winners(duck: Any, files: Sequence[str], first: date, last: date, lookback: timedelta, buckets: int = 1) -> None:
    relation(duck, "event_rows", files, ITEM_EVENTS)
    set_variables(
        duck,
        first_day=(first - EPOCH_DAY).days,
        last_day=(last - EPOCH_DAY).days,
        lookback_us=lookback // timedelta(microseconds=1),
        buckets=buckets,
        bucket=0,
    )
    for view in ("placed", "events", "winners"):
        _run(duck, view)


def _row_differences(duck: Any, due: Mapping[date, int]) -> list[str]:
    found = dict(_run(duck, "day_rows").fetchall())
    return [
        f"item_events: {day} has {found.get(day, 0)} rows by DuckDB's count, {due.get(day, 0)} by the log's"
        for day in sorted({*found, *due})
        if found.get(day, 0) != due.get(day, 0)
    ]


def _total_differences(duck: Any, what: str) -> list[str]:
    sums = "select day, sum(count), sum(event_count), count(*) from {} group by day"
    staged = {day: tuple(rest) for day, *rest in duck.sql(sums.format(f"staged_{what}")).fetchall()}
    counted = {day: tuple(rest) for day, *rest in duck.sql(sums.format(f"recounted_{what}")).fetchall()}
    return [
        f"{what}_counts: {day} is staged with (weight, events, rows) {_ints(staged.get(day))}, "
        f"DuckDB counts {_ints(counted.get(day))}"
        for day in sorted({*staged, *counted})
        if staged.get(day) != counted.get(day)
    ]


def _differences(duck: Any, table: Table, what: str, share: int | None) -> list[str]:
    chosen = "" if share is None else f" where hash(item_id) % {SHARES} = {share}"
    return [f"{table.name}: {_row(row)} {says}, by DuckDB's recount" for says, row in differing(duck, what, chosen)]


def differing(duck: Any, what: str, chosen: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The first rows of `staged_{what}` that `recounted_{what}` lacks, and the other way round."""
    columns = duck.sql(f"select * from recounted_{what} limit 0").columns  # noqa: S608 - names are ours, values none
    names = ", ".join(f'"{name}"' for name in columns)
    staged = f"select {names}, 1 as surplus from staged_{what}{chosen}"  # noqa: S608 - names are ours, values none
    counted = f"select {names}, -1 as surplus from recounted_{what}{chosen}"  # noqa: S608 - names are ours, values none
    duck.execute(
        f"create or replace temp table differing as select {names}, sum(surplus) as surplus "  # noqa: S608 - names are ours, values none
        f"from ({staged} union all {counted}) group by all having sum(surplus) <> 0"
    )
    for says, side in (("is staged", "surplus > 0"), ("is due", "surplus < 0")):
        query = f"select {names} from differing where {side} order by all limit {SHOWN}"  # noqa: S608 - names are ours, values none
        for row in duck.execute(query).fetchall():
            yield says, dict(zip(columns, row, strict=True))


def _row(row: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.items())


def _ints(values: tuple[object, ...] | None) -> str:
    return "nothing" if values is None else str(tuple(int(str(value)) for value in values))


@contextmanager
def connection(memory_limit: int = MEMORY_LIMIT, spill: Path | None = None) -> Iterator[Any]:
    """A DuckDB of its own, bounded; what it spills goes with it."""
    with TemporaryDirectory(prefix="recount-", dir=spill) as folder:
        config = {
            "preserve_insertion_order": False,
            "memory_limit": f"{memory_limit}B",
            "temp_directory": folder,
        }
        with duckdb.connect(":memory:", config=config) as duck:
            yield duck


def relation(duck: Any, name: str, files: Sequence[str], table: Table) -> None:
    """A view of the files' rows; of none when there is no file."""
    if files:
        found = duck.read_parquet(list(files), hive_partitioning=False)
    else:
        found = duck.from_arrow(table.schema.remove_metadata().empty_table())
    found.create_view(name, replace=True)


def set_variables(duck: Any, **variables: int) -> None:
    """Set what the statements ask for by `getvariable`."""
    for name, value in variables.items():
        duck.execute(f"set variable {name} = {int(value)}")


def _run(duck: Any, name: str) -> Any:
    return duck.execute(_statement(name))


def _statement(name: str) -> str:
    text = (package_files("lakehouse.audit") / "recount.sql").read_text()
    return dict(part.split("\n", 1) for part in text.split("-- name: ")[1:])[name]


def failed(error: Exception) -> LakeFailedError:
    """What a recount raises when DuckDB cannot do it."""
    return LakeFailedError(f"DuckDB's recount failed: {str(error).splitlines()[0]}; run the step again")
