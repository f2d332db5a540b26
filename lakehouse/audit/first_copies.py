"""The events that count on given days, found by DuckDB: each on its own day, and of its copies only the first.

It shares nothing with the jobs but the event files: `first_copies.sql` selects by `occurred_at`, keeps the
smallest copy of each event and honours the look-back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from daybreak.events import ORDER_KEY
from lakehouse.audit.duck import Statements, relation, set_variables
from lakehouse.tables.registry import Table

EPOCH_DAY = date(1970, 1, 1)
STATEMENTS = Statements("first_copies.sql")


@dataclass(frozen=True)
class CountedDays:
    """The days `first` to `last`, both included; copies from up to `lookback` before a day take its events away."""

    first: date
    last: date
    lookback: timedelta


def place(duck: Any, table: Table, files: Sequence[str], columns: Sequence[str], days: CountedDays) -> None:
    """Have the views `placed` and `first_copies` hold these events, with `columns` beside their keys.

    The files hold the days and the day before the first. Instants are `occurred_us` and `received_us`, days are
    numbers since 1970: `own_day` that of the event, `counted_day` the one that it counts on.
    """
    relation(duck, "event_rows", files, table, ("event_id", *ORDER_KEY, *columns))
    set_variables(
        duck,
        first_day=(days.first - EPOCH_DAY).days,
        last_day=(days.last - EPOCH_DAY).days,
        lookback_us=days.lookback // timedelta(microseconds=1),
    )
    choose_part(duck, 0, 1)
    STATEMENTS.run(duck, "placed", "events", "first_copies")


def part_count(rows: int, part_rows: int) -> int:
    """Into how many parts of the event ids so many events are cut, none much larger than `part_rows`."""
    return max(1, -(-rows // part_rows))


def choose_part(duck: Any, part: int, parts: int) -> None:
    """Have `first_copies` hold the events of one part alone; all copies of an event are in the same one."""
    set_variables(duck, part=part, parts=parts)
