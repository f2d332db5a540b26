import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from daybreak import metrics
from daybreak.settings import Stream, WindowTarget
from daybreak.windows import Bucket, Window, bucket_at
from streaming.sketches.count_min import CountMinSketch
from streaming.worker import Accounting, Worker
from tests.unit.streaming.shelf import NOON, Shelf, table

SMALL = WindowTarget(relative_error=0.2, grace=timedelta(minutes=2))


def run(batches: Sequence[pa.Table], **changes: object) -> tuple[Shelf, Worker]:
    shelf = Shelf()
    worker = Worker(Stream(**changes), shelf, lambda: NOON)
    for batch in batches:
        worker.feed(batch)
    worker.close()
    return shelf, worker


def minutes(*lines: str) -> pa.Table:
    return table(
        [
            (item, NOON + timedelta(minutes=m, seconds=s), 1)
            for m, line in enumerate(lines)
            for s, item in enumerate(line.split())
        ]
    )


@pytest.mark.parametrize("force_cells", [False, True])
def test_the_hour_is_counted_not_merged_from_its_minutes_lists(force_cells: bool) -> None:
    rows = minutes("1 1 1 2 2 3", "3 4 4 4 5 5", "3 6 6 6 7 7", "3 8 8 8 9 9")
    shelf, _ = run([rows], list_depth=2, candidate_factor=8, force_cells=force_cells)
    assert shelf.entries(Window.HOUR)[0] == ("3", 4)
    assert shelf.entries(Window.MINUTE) == [("1", 3), ("2", 2)]


def test_weights_beyond_32_bits_sum() -> None:
    shelf, _ = run([table([("a", NOON, 2_147_483_647)] * 3)])
    assert shelf.entries(Window.DAY) == [("a", 6_442_450_941)]
    assert shelf.lists[bucket_at(Window.DAY, NOON)].meta.total_weight == 6_442_450_941


def test_a_closed_bucket_is_published_with_its_sketch_and_a_live_one_without() -> None:
    shelf = Shelf()
    worker = Worker(Stream(), shelf, lambda: NOON)
    worker.feed(table([("a", NOON, 1), ("b", NOON + timedelta(minutes=3), 1)]))
    assert shelf.calls == [bucket_at(Window.MINUTE, NOON)]
    worker.publish(force=True)
    assert shelf.sketches[bucket_at(Window.DAY, NOON)] == (None, None)
    worker.close()
    for bucket in shelf.lists:
        data, late = shelf.sketches[bucket]
        assert data is not None
        assert late is None
        assert CountMinSketch.deserialize(data).total_weight == shelf.lists[bucket].meta.total_weight


@pytest.mark.parametrize("split", [False, True])
def test_late_for_the_minute_counts_in_the_day_and_in_the_minutes_late_sketch(split: bool) -> None:
    rows = [("a", NOON, 1), ("b", NOON + timedelta(minutes=3), 1), ("c", NOON, 5)]
    shelf, worker = run([table([r]) for r in rows] if split else [table(rows)])
    assert worker.accounting == Accounting(read=3, counted=3, late=0, ahead=0, refused=0)
    minute = bucket_at(Window.MINUTE, NOON)
    assert shelf.entries(Window.MINUTE) == [("a", 1)]
    assert dict(shelf.entries(Window.DAY))["c"] == 5
    data, late = shelf.sketches[minute]
    assert data is not None
    assert late is not None
    assert CountMinSketch.deserialize(late).estimate_ids(["c", "a"]).tolist() == [5, 0]
    assert json.loads(shelf.lists[minute].meta.accounting)["late"] == 1


def test_late_for_its_day_is_counted_nowhere() -> None:
    next_day = NOON.replace(day=2, hour=0, minute=30)
    shelf, worker = run([table([("a", NOON, 1), ("b", next_day, 1)]), table([("c", NOON, 1), ("d", NOON, 1)])])
    assert worker.accounting == Accounting(read=4, counted=2, late=2, ahead=0, refused=0)
    assert shelf.entries(Window.DAY) == [("a", 1)]
    late = shelf.sketches[bucket_at(Window.DAY, NOON)][1]
    assert late is not None
    assert CountMinSketch.deserialize(late).total_weight == 2


def test_one_wrong_clock_does_not_make_the_rest_late() -> None:
    wrong = NOON + timedelta(days=400)
    shelf, worker = run([table([("a", NOON, 1), ("x", wrong, 1), ("b", NOON, 1)])])
    assert worker.accounting == Accounting(read=3, counted=2, late=0, ahead=1, refused=0)
    assert dict(shelf.entries(Window.DAY)) == {"a": 1, "b": 1}


def test_a_closed_saturday_is_no_wrong_clock() -> None:
    sunday = NOON + timedelta(hours=40)
    shelf, worker = run([table([("a", NOON, 1)] + [("b", sunday, 1)] * 20), table([("b", sunday, 1)])])
    assert worker.accounting.counted == 22
    assert shelf.entries(Window.DAY, sunday) == [("b", 21)]


def test_refusals_are_accounted() -> None:
    worker = Worker(Stream(), Shelf(), lambda: NOON)
    worker.feed(table([("a", NOON, 1)]), refused=2)
    worker.close()
    assert worker.accounting == Accounting(read=3, counted=1, late=0, ahead=0, refused=2)


def test_pairs_turn_to_cells_when_they_outgrow_them() -> None:
    rows = table([(f"item-{n}", NOON, 1 + n) for n in range(200)])
    shelf, _ = run([rows, rows], day=SMALL, list_depth=10)
    day = shelf.lists[bucket_at(Window.DAY, NOON)]
    hour = shelf.lists[bucket_at(Window.HOUR, NOON)]
    assert (day.meta.provenance, day.meta.items_total) == ("cells", None)
    assert (hour.meta.provenance, hour.meta.items_total) == ("pairs", 200)
    assert hour.entries == tuple((f"item-{n}", 2 * (n + 1)) for n in range(199, 189, -1))


@hypothesis_settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", "é", "z"]), st.integers(0, 20_000), st.integers(1, 2**32)),
        max_size=60,
    ),
    st.integers(1, 30),
    st.booleans(),
)
def test_for_any_events_each_window_is_a_counter_and_nothing_is_dropped(
    events: list[tuple[str, int, int]], size: int, force_cells: bool
) -> None:
    rows = [(item, NOON + timedelta(seconds=s), weight) for item, s, weight in events]
    shelf, worker = run([table(rows[i : i + size]) for i in range(0, len(rows), size)], force_cells=force_cells)
    got = worker.accounting
    assert got.counted + got.late + got.ahead + got.refused == got.read == len(rows)
    truth: dict[Bucket, Counter[str]] = {}
    for item, at, weight in rows:
        for window in Window:
            truth.setdefault(bucket_at(window, at), Counter())[item] += weight
    assert set(truth) == set(shelf.lists)
    for bucket, served in shelf.lists.items():
        data, late = shelf.sketches[bucket]
        assert data is not None
        upper = CountMinSketch.deserialize(data)
        if late is not None:
            upper.merge(CountMinSketch.deserialize(late))
        assert upper.total_weight == sum(truth[bucket].values())
        assert upper.estimate_ids(list(truth[bucket])).tolist() == list(truth[bucket].values())
        if late is None:
            assert dict(served.entries) == truth[bucket]


def test_what_the_worker_measures_is_what_it_did() -> None:
    shelf = Shelf()
    worker = Worker(Stream(), shelf, lambda: NOON)
    worker.feed(table([("a", NOON, 1), ("b", NOON + timedelta(minutes=3), 1)]), refused=2)
    found = worker.metrics
    assert found[metrics.EVENTS_READ] == 4
    assert found[metrics.WATERMARK] == (NOON + timedelta(minutes=3)).timestamp()
    assert (found[metrics.LIVE_BUCKETS], found[metrics.BUCKETS_CLOSED]) == (3, 1)
    assert (found[metrics.LIVE_BYTES] or 0) > 0
    worker.close()
    assert (found[metrics.LIVE_BUCKETS], found[metrics.LIVE_BYTES], found[metrics.BUCKETS_CLOSED]) == (0, 0, 4)
    assert (found[metrics.LISTS_PUBLISHED], found[metrics.LISTS_FENCED]) == (len(shelf.calls), 0)


def test_lists_that_the_fence_kept_out_are_counted_apart() -> None:
    shelf = Shelf()
    shelf.is_exact = True
    worker = Worker(Stream(), shelf, lambda: NOON)
    worker.feed(table([("a", NOON, 1)]))
    worker.close()
    assert (worker.metrics[metrics.LISTS_PUBLISHED], worker.metrics[metrics.LISTS_FENCED]) == (0, 3)
