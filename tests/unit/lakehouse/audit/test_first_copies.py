"""Which events DuckDB lets count: the smallest copy, unless one came within the look-back before the day."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakehouse.audit.duck import connection
from lakehouse.audit.first_copies import CountedDays, choose_part, part_count, place
from lakehouse.tables.registry import ITEM_EVENTS
from tests.builders import event, events

DAY = date(2026, 3, 1)
MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = CountedDays(DAY, DAY, timedelta(hours=1))
MICRO = timedelta(microseconds=1)


def counted(folder: Path, rows: Sequence[tuple[str, datetime]], parts: int = 1) -> list[list[int]]:
    """The places of the rows (event id, instant) that count, part by part."""
    file = folder / "events.parquet"
    pq.write_table(
        events(*(event(n, event_id=name, occurred_at=at, offset=n) for n, (name, at) in enumerate(rows))), file
    )
    found = []
    with connection() as duck:
        place(duck, ITEM_EVENTS, [str(file)], (), DAYS)
        for part in range(parts):
            choose_part(duck, part, parts)
            found.append([n for (n,) in duck.execute('select "offset" from first_copies order by 1').fetchall()])
    return found


@pytest.mark.parametrize(("before", "counts"), [(DAYS.lookback, False), (DAYS.lookback + MICRO, True)])
def test_a_copy_takes_an_event_of_the_next_day_away_within_the_look_back(
    before: timedelta, counts: bool, tmp_path: Path
) -> None:
    later = MIDNIGHT + timedelta(hours=20)
    assert counted(tmp_path, [("e", MIDNIGHT - before), ("e", later)]) == [[1] if counts else []]


def test_of_copies_on_one_day_the_smallest_counts_however_far_apart(tmp_path: Path) -> None:
    rows = [("e", MIDNIGHT + timedelta(hours=23)), ("e", MIDNIGHT), ("e", MIDNIGHT), ("other", MIDNIGHT)]
    assert counted(tmp_path, rows) == [[1, 3]]


def test_events_of_other_days_do_not_count(tmp_path: Path) -> None:
    rows = [("early", MIDNIGHT - MICRO), ("late", MIDNIGHT + timedelta(days=1)), ("in", MIDNIGHT)]
    assert counted(tmp_path, rows) == [[2]]


def test_parts_share_the_events_out_and_none_counts_twice(tmp_path: Path) -> None:
    rows = [(f"e{n % 60}", MIDNIGHT + n * timedelta(minutes=7)) for n in range(180)]
    ((whole,), parts) = counted(tmp_path, rows), counted(tmp_path, rows, 4)
    assert sorted(n for part in parts for n in part) == whole
    assert all(parts)


def test_a_part_holds_no_more_events_than_it_may() -> None:
    assert [part_count(rows, 10) for rows in (0, 1, 10, 11, 30)] == [1, 1, 1, 2, 3]
