"""For any events: the batch path equals the oracle, and DuckDB's recount agrees; the stream is at least the batch."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

import oracles
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import event
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daybreak.events import ITEM_EVENT
from daybreak.windows import days_between
from jobs.daily_counts import daily_counts
from jobs.hourly_counts import hourly_counts
from jobs.top_lists import top_lists
from lakehouse import recount, tables
from lakehouse.sail import SailEngine
from streaming.sketch import CountMinSketch

pytestmark = pytest.mark.slow

FIRST, LAST = date(2026, 3, 2), date(2026, 3, 3)
LOOKBACK = timedelta(hours=1)
DEPTH = 4
MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)

rows = st.lists(
    st.builds(
        dict,
        event_id=st.sampled_from(["e1", "e2", "e3", "e4", "e5", "é"]) | st.uuids().map(str),
        item_id=st.sampled_from(["a", "A", "b", "é", "e\u0301", "🚀", "ש", "0", "00"]),
        occurred_at=st.integers(-36 * 60, 26 * 60).map(lambda m: MIDNIGHT + timedelta(minutes=m))
        | st.sampled_from([MIDNIGHT, MIDNIGHT - timedelta(microseconds=1), MIDNIGHT - LOOKBACK]),
        weight=st.sampled_from([1, 1, 1, 2, 3, 2**32]),
        received_at=st.integers(0, 3).map(lambda m: MIDNIGHT + timedelta(days=2, minutes=m)),
    ),
    max_size=40,
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SailEngine]:
    with SailEngine(tmp_path_factory.mktemp("engine"), memory_pool=2**30) as sail:
        yield sail


def staged(engine: SailEngine, events: list[dict[str, object]], folder: Path) -> tuple[list[str], dict[str, list[str]]]:
    """The events' files, one per day as in the lake, and what the jobs staged from them."""
    files = []
    for day in sorted({row["day"] for row in events}):
        files.append(str(folder / f"{day}.parquet"))
        of_day = [row for row in events if row["day"] == day]
        pq.write_table(pa.Table.from_pylist(of_day, schema=ITEM_EVENT).drop_columns(["day"]), files[-1])
    frames, done = {}, {}
    read = engine.read(files, ITEM_EVENT)
    for table, frame in (
        (tables.HOURLY_COUNTS, lambda: hourly_counts(read, FIRST, LAST, LOOKBACK)),
        (tables.DAILY_COUNTS, lambda: daily_counts(frames["hourly_counts"], [])),
        (tables.TOP_LISTS, lambda: top_lists(frames["hourly_counts"], frames["daily_counts"], DEPTH)),
    ):
        found = engine.stage(frame(), table, folder / table.name)
        done[table.name] = list(found.files)
        frames[table.name] = engine.read(found.files, table.schema)
    return files, done


def rows_of(files: list[str]) -> list[dict[str, object]]:
    return [row for file in files for row in pq.read_table(file).to_pylist()]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows)
def test_batch_equals_the_oracle_and_the_recount_agrees(engine: SailEngine, drawn: list[dict[str, object]]):
    events = [event(number, **row) for number, row in enumerate(drawn)]
    files, done = staged(engine, events, Path(mkdtemp(dir=engine.folder)))
    days = days_between(FIRST, LAST)
    expected = {day: oracles.count_day(events, day) for day in days}
    found: dict[date, Counter[str]] = {day: Counter() for day in days}
    for row in rows_of(done["daily_counts"]):
        found[row["day"]][row["item_id"]] = row["count"]
    assert found == expected
    hours = {(day, h): counts for day in days for h, counts in oracles.count_hours(events, day).items()}
    counted: dict[tuple[date, int], Counter[str]] = {}
    for row in rows_of(done["hourly_counts"]):
        counted.setdefault((row["day"], row["hour"]), Counter())[row["item_id"]] = row["count"]
    assert counted == hours
    lists: dict[tuple[str, datetime], list[tuple[object, ...]]] = {}
    for row in rows_of(done["top_lists"]):
        key = (row["window"], row["bucket_start"])
        lists.setdefault(key, []).append((row["position"], row["rank"], row["item_id"], row["count"]))
    wanted = {("day", oracles.start_of(day)): oracles.top(expected[day], DEPTH) for day in days if expected[day]}
    wanted |= {
        ("hour", oracles.start_of(day) + timedelta(hours=hour)): oracles.top(counts, DEPTH)
        for (day, hour), counts in hours.items()
    }
    assert {key: sorted(entries) for key, entries in lists.items()} == wanted
    due = {day: oracles.day_accounting(events, day)["rows"] for day in days}
    assert (
        recount.differences(
            files,
            done,
            first=FIRST,
            last=LAST,
            lookback=LOOKBACK,
            depth=DEPTH,
            rows=len(events),
            full_below=10**9,
            day_rows=due,
        )
        == []
    )


@settings(max_examples=50, deadline=None)
@given(rows, st.integers(2, 40))
def test_the_stream_is_never_below_the_batch(drawn: list[dict[str, object]], width: int):
    events = [row for row in (event(n, **each) for n, each in enumerate(drawn)) if row["day"] == LAST]
    sketch = CountMinSketch(width, 3)
    if events:
        ids = pa.array([str(row["item_id"]) for row in events])
        sketch.update_ids(ids, pa.array([row["weight"] for row in events], pa.int64()).to_numpy())
    for item, count in oracles.count_day(events, LAST).items():
        assert sketch.estimate_ids([item])[0] >= count


def test_a_list_deeper_than_its_items_holds_the_items_and_no_padding(engine: SailEngine, tmp_path: Path):
    at = datetime(2026, 3, 3, 10, tzinfo=UTC)
    drawn = [
        {"item_id": item, "occurred_at": at} for item, count in (("x", 25), ("y", 25), ("z", 20)) for _ in range(count)
    ]
    _, done = staged(engine, [event(n, **row) for n, row in enumerate(drawn)], tmp_path)
    entries = [row for row in rows_of(done["top_lists"]) if row["window"] == "day"]
    entries.sort(key=lambda row: row["position"])
    assert [(row["position"], row["rank"], row["item_id"], row["count"]) for row in entries] == [
        (1, 1, "y", 25),
        (2, 1, "x", 25),
        (3, 3, "z", 20),
    ]
    assert {row["population"] for row in entries} == {3}
