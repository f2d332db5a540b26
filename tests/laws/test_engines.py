"""For any events Sail, Apache Spark, DuckDB and plain Python give equal rows.

One drawn example is many small days, each with its own trouble, so that few runs of the engines see much.
"""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daybreak.events import WEIGHT_MAX
from lakehouse.audit import checks
from lakehouse.tables.registry import DERIVED
from tests.builders import event, lake_files
from tests.derivation import Derived, Row, derive
from tests.engines import NAMES, Engines
from tests.oracles import items as oracles

pytestmark = pytest.mark.slow

LAST_MICRO = timedelta(days=1) - timedelta(microseconds=1)
TIMES = [
    timedelta(0),
    timedelta(microseconds=1),
    timedelta(hours=12),
    timedelta(hours=23) - timedelta(microseconds=1),
    timedelta(hours=23),
    timedelta(hours=23, minutes=30),
    LAST_MICRO,
]
"""Where days, hours and the look-back begin and end."""

DAYS = [
    date(1, 1, 1),
    date(1, 1, 2),
    date(1582, 10, 14),  # exists in the calendar of ISO dates only
    date(1677, 9, 21),  # the first day that nanoseconds in 64 bits reach
    date(1969, 12, 31),
    date(1970, 1, 1),
    date(2026, 2, 28),
    date(2026, 3, 1),
    date(2026, 3, 2),
    date(2262, 4, 12),
    date(9999, 12, 30),
    date(9999, 12, 31),
]
RANGES = [
    (date.min, date.max),
    (date.min, date.max),
    (date(2026, 3, 1), date(2026, 3, 2)),
    (date(1970, 1, 1), date(2026, 3, 1)),
    (date.min, date.min),
    (date.max, date.max),
]
ITEMS = [
    "a",
    "A",
    " a",
    "a ",
    "0",
    "00",
    "007",
    "7",
    "é",
    "e\u0301",
    "🚀",
    "ש\u200f",
    "\u0000",
    "'",
    '"',
    "\\",
    "\n",
    "ﬀ",
    "\uffff",
]
PARTS: dict[str, Callable[[Row], object]] = {
    "one file a day": lambda row: None,
    "one item a file": lambda row: row["item_id"],
    "one event id a file": lambda row: row["event_id"],
    "one region a file": lambda row: row["region"],
    "two files a day": lambda row: row["offset"] % 2,
}

copies = st.fixed_dictionaries(
    {
        "day": st.sampled_from(DAYS),
        "time": st.sampled_from(TIMES) | st.integers(0, 86_400_000_000 - 1).map(lambda us: timedelta(microseconds=us)),
        "event_id": st.sampled_from(["e", "E", "é", "e\u0301", "1", "01", "🚀", " "]) | st.text(min_size=1, max_size=3),
        "item_id": st.sampled_from(ITEMS) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3),
        "weight": st.sampled_from([1, 1, 2, WEIGHT_MAX, WEIGHT_MAX - 1]),
        "received_at": st.sampled_from([datetime(2026, 3, 5, tzinfo=UTC), datetime(2026, 3, 5, 1, tzinfo=UTC)]),
        "user_id": st.sampled_from([None, None, "", "u"]),
        "region": st.sampled_from([None, "", "ü"]),
        "category": st.none(),
        "extra": st.sampled_from([None, [], [("k", None)], [("k", "v"), ("", "")]]),
        "source": st.sampled_from(["s", "S", "ß"]),
        "partition": st.sampled_from([0, 1, 2**31 - 1]),
    }
)
lakes = st.lists(copies, min_size=40, max_size=160)


def placed(drawn: list[Row]) -> list[Row]:
    """The drawn copies as events of the lake; offsets tell copies apart that nothing else does."""
    rows = []
    for offset, each in enumerate(drawn):
        fields = {name: value for name, value in each.items() if name not in ("day", "time")}
        rows.append(event(0, occurred_at=oracles.start_of(each["day"]) + each["time"], offset=offset, **fields))
    return rows


def within(rows: list[Row], first: date, last: date) -> list[Row]:
    """The events that a night of these days is given: theirs, and those of the day before."""
    reach = first - timedelta(days=1) if first > date.min else first
    return [row for row in rows if reach <= row["day"] <= last]


def agreed(
    engines: Engines, rows: list[Row], folder: Path, first: date, last: date, part_of: Callable[[Row], object]
) -> dict[str, Derived]:
    """What the days give, after demanding that every engine, the recount and the oracle say the same."""
    files = lake_files(rows, folder, part_of)
    depth = 3
    days = sorted({row["day"] for row in rows if first <= row["day"] <= last})
    due = {
        "hourly_counts": oracles.hourly_counts(rows, days),
        "daily_counts": oracles.daily_counts(rows, days),
        "top_lists": oracles.top_lists(rows, days, depth),
    }
    in_day = Counter(row["day"] for row in rows if first <= row["day"] <= last)
    found = {name: derive(engines[name], files, folder, first, last, depth) for name in NAMES}
    for name, derived in found.items():
        assert derived.all_rows() == due, name
        assert derived.recounted(dict(in_day)) == [], name
    return found


@settings(max_examples=8, deadline=None)
@given(lakes, st.sampled_from(RANGES), st.sampled_from(sorted(PARTS)))
def law(engines: Engines, home: Path, drawn: list[Row], days: tuple[date, date], parts: str) -> None:
    rows = within(placed(drawn), *days)
    agreed(engines, rows, Path(mkdtemp(dir=home)), *days, PARTS[parts])


def test_engines_recount_and_oracle_give_equal_rows_for_any_events(engines: Engines, tmp_path: Path) -> None:
    law(engines, tmp_path)


def test_every_day_at_every_edge_and_what_its_profile_says(engines: Engines, tmp_path: Path) -> None:
    """Nothing drawn: each item at each edge of each day, with a copy of another item and weight an instant later."""
    rows = []
    for day, time, item in product(DAYS, TIMES, ("a", "é", "e\u0301")):
        for copy in range(2):
            at = oracles.start_of(day) + time
            name = f"{item}{time}{day.toordinal() // 2}"  # the days 1 and 2 of each pair share their ids
            rows.append(
                event(0, event_id=name, item_id=item * (1 + copy), occurred_at=at, offset=len(rows), weight=1 + copy)
            )
    found = agreed(engines, rows, tmp_path, date.min, date.max, PARTS["one file a day"])
    profiles = [
        {t.name: checks.profile(engines[name], engines[name].read(each.files[t.name], t.schema), t) for t in DERIVED}
        for name, each in found.items()
    ]
    assert profiles[0] == profiles[1]


@pytest.mark.parametrize("days", [RANGES[2], RANGES[4], RANGES[5]], ids=str)
def test_a_range_without_an_event_gives_no_rows(engines: Engines, tmp_path: Path, days: tuple[date, date]) -> None:
    before = [event(0, occurred_at="2026-02-28 23:59")] if days[0] == RANGES[2][0] else []
    assert agreed(engines, before, tmp_path, *days, PARTS["one file a day"])["sail"].all_rows() == {
        table.name: [] for table in DERIVED
    }


@pytest.mark.parametrize("day", [date(1582, 10, 5), date(1582, 10, 14), date(1582, 10, 15)], ids=str)
def test_days_begin_where_the_calendar_of_old_dates_ends(engines: Engines, tmp_path: Path, day: date) -> None:
    """Bounds that Spark hands to the files went through a calendar that lacks ten days of that October."""
    at = [oracles.start_of(day) + time for time in (timedelta(hours=-1), *TIMES, timedelta(days=1))]
    rows = [event(0, event_id=str(time), occurred_at=time, offset=number) for number, time in enumerate(at)]
    found = agreed(engines, rows, tmp_path, day, day, PARTS["one event id a file"])
    assert len(found["spark"].all_rows()["daily_counts"]) == 1
