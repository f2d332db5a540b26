"""The second bookkeeper: DuckDB counts the days from the event files and compares with what was staged.

It shares nothing with the jobs but the event files (`lakehouse.audit.first_copies`). Its memory is bounded: it
counts part by part of event ids, has a limit, and spills beyond it into a folder that goes with the connection.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from daybreak.windows import Bucket, to_micros
from lakehouse.audit.duck import DEFAULT_LIMITS, Limits, Statements, connection, differences_of, relation, set_variables
from lakehouse.audit.first_copies import EPOCH_DAY, CountedDays, choose_part, part_count, place
from lakehouse.tables.registry import DAILY_COUNTS, DERIVED, HOURLY_COUNTS, ITEM_EVENTS, TOP_LISTS

SHARES = 64
COUNTED = ("item_id", "weight")
STATEMENTS = Statements("recount.sql")


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
    days: CountedDays,
    day_rows: Mapping[date, int],
    depth: int,
    full_below: int,
    limits: Limits = DEFAULT_LIMITS,
) -> list[str]:
    """What DuckDB counts differently, in words; empty when all that was staged holds.

    `day_rows` are the rows of each day, copies included, by the log. From `full_below` of them on every total and
    list place is compared, but of the items only a 64th, another one each day. Lists are cut at `depth`.

    Raises:
        LakeFailedError: a file cannot be read.
    """
    rows = sum(day_rows.values())
    share = None if rows < full_below else (days.last - EPOCH_DAY).days % SHARES
    chosen = "" if share is None else f" where hash(item_id) % {SHARES} = {share}"
    with connection(limits) as duck:
        place(duck, ITEM_EVENTS, event_files, COUNTED, days)
        _count(duck, depth, part_count(rows, limits.part_rows))
        for table in DERIVED:
            relation(duck, table.name, staged.get(table.name, ()), table)
        STATEMENTS.run(duck, "staged_hourly", "staged_daily", "staged_lists")
        return [
            *_row_differences(duck, day_rows),
            *_total_differences(duck, "hourly"),
            *_total_differences(duck, "daily"),
            *differences_of(duck, HOURLY_COUNTS, "hourly", chosen),
            *differences_of(duck, DAILY_COUNTS, "daily", chosen),
            *differences_of(duck, TOP_LISTS, "lists"),
        ]


def minute_list(files: Sequence[str], bucket: Bucket, lookback: timedelta, k: int) -> MinuteList:
    """The exact list of one bucket, counted from the event files of its day and the day before.

    Raises:
        LakeFailedError: a file cannot be read.
    """
    with connection() as duck:
        set_variables(duck, start_us=to_micros(bucket.start), end_us=to_micros(bucket.end))
        place(duck, ITEM_EVENTS, files, COUNTED, CountedDays(bucket.day, bucket.day, lookback))
        found = STATEMENTS.run(duck, "minute").fetchall()
    return MinuteList(
        entries=tuple((item, int(count)) for item, count, _ in found[:k]),
        population=len(found),
        total_weight=sum(int(count) for _, count, _ in found),
        events=sum(events for _, _, events in found),
    )


def _count(duck: Any, depth: int, parts: int) -> None:
    set_variables(duck, depth=depth)
    STATEMENTS.run(duck, "hours")
    for part in range(parts):
        choose_part(duck, part, parts)
        STATEMENTS.run(duck, "hourly_next" if part else "hourly")
    if parts > 1:
        STATEMENTS.run(duck, "hourly_merged")
    STATEMENTS.run(duck, "daily", "lists")


def _row_differences(duck: Any, due: Mapping[date, int]) -> list[str]:
    found = dict(STATEMENTS.run(duck, "day_rows").fetchall())
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


def _ints(values: tuple[object, ...] | None) -> str:
    return "nothing" if values is None else str(tuple(int(str(value)) for value in values))
