"""For any events: the batch path equals the oracle on every engine; the stream is at least the batch."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daybreak.windows import days_between
from lakehouse.engines.engine import Engine
from lakehouse.tables import registry as tables
from streaming.sketches.count_min import CountMinSketch
from tests.builders import event, lake_files
from tests.derivation import LOOKBACK, Row, derive
from tests.oracles import items as oracles

pytestmark = pytest.mark.slow

FIRST, LAST = date(2026, 3, 2), date(2026, 3, 3)
DEPTH = 4
MIDNIGHT = datetime(2026, 3, 3, tzinfo=UTC)
EXAMPLES = {"sail": 25, "spark": 6}
"""Apache Spark takes ten times as long for one; `test_law_engines` draws many days at once."""

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


def test_batch_equals_the_oracle_and_the_recount_agrees(engine: Engine, tmp_path: Path):
    days = days_between(FIRST, LAST)

    @settings(max_examples=EXAMPLES[engine.name], deadline=None)
    @given(rows)
    def law(drawn: list[Row]) -> None:
        events = [event(number, **row) for number, row in enumerate(drawn)]
        folder = Path(mkdtemp(dir=tmp_path))
        found = derive(engine, lake_files(events, folder), folder, FIRST, LAST, DEPTH)
        assert found.rows(tables.HOURLY_COUNTS) == oracles.hourly_counts(events, days)
        assert found.rows(tables.DAILY_COUNTS) == oracles.daily_counts(events, days)
        assert found.rows(tables.TOP_LISTS) == oracles.top_lists(events, days, DEPTH)
        assert found.recounted({day: oracles.day_accounting(events, day)["rows"] for day in days}) == []

    law()


@settings(max_examples=50, deadline=None)
@given(rows, st.integers(2, 40))
def test_the_stream_is_never_below_the_batch(drawn: list[Row], width: int):
    events = [row for row in (event(n, **each) for n, each in enumerate(drawn)) if row["day"] == LAST]
    sketch = CountMinSketch(width, 3)
    if events:
        ids = pa.array([str(row["item_id"]) for row in events])
        sketch.update_ids(ids, pa.array([row["weight"] for row in events], pa.int64()).to_numpy())
    for item, count in oracles.count_day(events, LAST).items():
        assert sketch.estimate_ids([item])[0] >= count


def test_a_list_deeper_than_its_items_holds_the_items_and_no_padding(engine: Engine, tmp_path: Path):
    at = datetime(2026, 3, 3, 10, tzinfo=UTC)
    drawn = [
        {"item_id": item, "occurred_at": at} for item, count in (("x", 25), ("y", 25), ("z", 20)) for _ in range(count)
    ]
    files = lake_files([event(n, **row) for n, row in enumerate(drawn)], tmp_path)
    found = derive(engine, files, tmp_path, FIRST, LAST, DEPTH)
    entries = [row for row in found.rows(tables.TOP_LISTS) if row["window"] == "day"]
    assert [(row["position"], row["rank"], row["item_id"], row["count"]) for row in entries] == [
        (1, 1, "y", 25),
        (2, 1, "x", 25),
        (3, 3, "z", 20),
    ]
    assert {row["population"] for row in entries} == {3}
