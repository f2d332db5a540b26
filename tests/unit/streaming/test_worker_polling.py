"""A live source that was read to its end: what changed is published, and time closes buckets, none too early."""

import json
from collections import Counter
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from daybreak import metrics
from daybreak.serving.lists import ServedList
from daybreak.settings import Stream
from daybreak.windows import Bucket, Window, bucket_at
from streaming.sketches.count_min import CountMinSketch
from streaming.worker import Accounting, Worker
from tests.unit.streaming.shelf import NOON, Shelf, table

MINUTE = bucket_at(Window.MINUTE, NOON)
HOUR = bucket_at(Window.HOUR, NOON)
DAY = bucket_at(Window.DAY, NOON)
SECOND = timedelta(seconds=1)


class Wall:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.at = NOON + timedelta(hours=5)

    def __call__(self) -> datetime:
        return self.at

    def wait(self, span: timedelta) -> None:
        self.at += span


def fed(*rows: tuple[str, datetime, int]) -> tuple[Wall, Shelf, Worker]:
    """A worker that was fed these rows, five hours after they happened."""
    wall, shelf = Wall(), Shelf()
    worker = Worker(Stream(), shelf, wall)
    worker.feed(table(rows))
    return wall, shelf, worker


def poll_after(span: timedelta, wall: Wall, worker: Worker) -> None:
    wall.wait(span)
    worker.poll()


def test_what_changed_is_published_once_publish_every_has_passed() -> None:
    wall, shelf, worker = fed(("a", NOON, 1))
    poll_after(4 * SECOND, wall, worker)
    assert shelf.calls == []
    poll_after(SECOND, wall, worker)
    assert shelf.calls == [DAY, HOUR, MINUTE]
    assert shelf.entries(Window.MINUTE) == [("a", 1)]


def test_nothing_is_published_again_while_nothing_happens() -> None:
    wall, shelf, worker = fed(("a", NOON, 1))
    poll_after(5 * SECOND, wall, worker)
    calls, served = list(shelf.calls), dict(shelf.lists)
    for _ in range(30):
        poll_after(5 * SECOND, wall, worker)
    assert shelf.calls == calls
    assert shelf.lists == served


def test_a_bucket_is_closed_with_its_sketch_when_its_grace_is_over_and_not_before() -> None:
    wall, shelf, worker = fed(("a", NOON + 10 * SECOND, 1))
    over = timedelta(minutes=3) - 10 * SECOND
    poll_after(over - timedelta(microseconds=1), wall, worker)
    assert shelf.sketches[MINUTE] == (None, None)
    assert worker.metrics[metrics.BUCKETS_CLOSED] == 0
    poll_after(timedelta(microseconds=1), wall, worker)
    assert worker.metrics[metrics.BUCKETS_CLOSED] == 1
    data, late = shelf.sketches[MINUTE]
    assert data is not None
    assert late is None
    assert CountMinSketch.deserialize(data).estimate_ids(["a"]).tolist() == [1]
    assert shelf.lists[MINUTE].meta.complete_through == MINUTE.end
    assert shelf.sketches[HOUR] == shelf.sketches[DAY] == (None, None)


def test_the_clock_counts_from_the_last_feed_and_not_from_the_events() -> None:
    wall, shelf, worker = fed(("a", NOON, 1))
    poll_after(timedelta(minutes=2), wall, worker)
    worker.feed(table([("b", NOON + SECOND, 1)]))
    wall.wait(timedelta(minutes=10))
    worker.feed(table([("c", NOON + SECOND, 1)]))
    worker.poll()
    assert worker.metrics[metrics.BUCKETS_CLOSED] == 0
    poll_after(timedelta(minutes=1), wall, worker)
    assert worker.metrics[metrics.BUCKETS_CLOSED] == 1
    assert dict(shelf.entries(Window.MINUTE)) == {"a": 1, "b": 1, "c": 1}


def test_an_empty_read_is_no_feed_that_starts_the_clock_anew() -> None:
    wall, _, worker = fed(("a", NOON, 1))
    wall.wait(timedelta(minutes=2))
    worker.feed(table([]))
    poll_after(timedelta(minutes=1), wall, worker)
    assert worker.metrics[metrics.BUCKETS_CLOSED] == 1


def test_however_often_it_is_polled_time_goes_on_as_fast_as_the_clock() -> None:
    once, _, one = fed(("a", NOON, 1))
    often, _, other = fed(("a", NOON, 1))
    poll_after(timedelta(minutes=7), once, one)
    for _ in range(420):
        poll_after(SECOND, often, other)
    assert one.metrics[metrics.WATERMARK] == other.metrics[metrics.WATERMARK] == NOON.timestamp() + 420


def test_a_clock_that_is_set_back_and_forth_counts_no_time_twice() -> None:
    wall, _, worker = fed(("a", NOON, 1))
    for minutes in (1, -1, 1, -1, 1):
        poll_after(timedelta(minutes=minutes), wall, worker)
    assert worker.metrics[metrics.WATERMARK] == NOON.timestamp() + 60


def test_an_event_for_a_minute_that_the_clock_closed_is_late_and_the_list_stays() -> None:
    wall, shelf, worker = fed(*[("a", NOON, 1)] * 9)
    poll_after(timedelta(minutes=3), wall, worker)
    closed = shelf.lists[MINUTE]
    worker.feed(table([("b", NOON + SECOND, 5)]))
    poll_after(5 * SECOND, wall, worker)
    assert shelf.lists[MINUTE].entries == closed.entries == (("a", 9),)
    data, late = shelf.sketches[MINUTE]
    assert data is not None
    assert late is not None
    assert CountMinSketch.deserialize(late).estimate_ids(["b", "a"]).tolist() == [5, 0]
    assert json.loads(shelf.lists[MINUTE].meta.accounting) == {"counted": 9, "late": 1, "ahead": 0, "refused": 0}
    assert dict(shelf.entries(Window.DAY)) == {"a": 9, "b": 5}
    worker.close()
    assert worker.accounting == Accounting(read=10, counted=10)


def test_an_event_for_a_day_that_the_clock_closed_is_counted_nowhere() -> None:
    wall, shelf, worker = fed(("a", NOON, 1))
    poll_after(timedelta(hours=12, minutes=30), wall, worker)
    assert worker.metrics[metrics.LIVE_BUCKETS] == 0
    worker.feed(table([("b", NOON + SECOND, 5)]))
    worker.close()
    assert worker.accounting == Accounting(read=2, counted=1, late=1)
    assert shelf.entries(Window.DAY) == [("a", 1)]


def test_before_any_event_there_is_no_time_that_could_go_on() -> None:
    wall, shelf = Wall(), Shelf()
    worker = Worker(Stream(), shelf, wall)
    poll_after(timedelta(days=3), wall, worker)
    worker.feed(table([("a", NOON, 1)]))
    worker.poll()
    assert shelf.calls == []
    assert worker.accounting == Accounting(read=1, counted=1)


def test_after_an_idle_weekend_the_first_event_is_no_jump() -> None:
    wall, shelf, worker = fed(("a", NOON, 1))
    for _ in range(40):
        poll_after(timedelta(hours=1), wall, worker)
    worker.feed(table([("b", NOON + timedelta(hours=40), 1)]))
    assert worker.accounting == Accounting(read=2, counted=2)
    worker.publish(force=True)
    assert shelf.entries(Window.DAY, NOON + timedelta(hours=40)) == [("b", 1)]


def test_held_events_are_counted_as_soon_as_the_clock_has_come_near_them() -> None:
    ahead = NOON + timedelta(hours=27)
    wall, _, worker = fed(("a", NOON, 1), ("b", ahead, 1))
    assert worker.accounting == Accounting(read=2, counted=1, held=1)
    poll_after(timedelta(hours=1), wall, worker)
    assert worker.accounting == Accounting(read=2, counted=2)
    assert worker.metrics[metrics.WATERMARK] == ahead.timestamp()
    poll_after(timedelta(minutes=1), wall, worker)
    assert worker.metrics[metrics.WATERMARK] == ahead.timestamp() + 60


def test_confirmed_jumps_never_turn_time_back() -> None:
    near, far = NOON + timedelta(hours=27), NOON + timedelta(days=400)
    wall, shelf, worker = fed(("a", NOON, 1), ("b", near, 1), ("c", far, 1))
    poll_after(timedelta(hours=60), wall, worker)
    assert worker.accounting.held == 2
    worker.close()
    assert worker.accounting == Accounting(read=3, counted=2, late=1)
    assert CountMinSketch.deserialize(shelf.sketches[bucket_at(Window.DAY, near)][1] or b"").total_weight == 1


Step = tuple[list[tuple[str, int]], int]


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from(["a", "b", "é"]), st.integers(-20_000, 20_000)), max_size=6),
            st.sampled_from([0, 1, 5, 60, 200, 700, 4000, 90_000]),
        ),
        max_size=25,
    ),
    st.booleans(),
)
def test_however_feeds_and_polls_alternate_every_event_is_in_one_place(steps: list[Step], force_cells: bool) -> None:
    wall, shelf = Wall(), Once()
    worker = Worker(Stream(force_cells=force_cells), shelf, wall)
    truth: dict[Bucket, Counter[str]] = {}
    for drawn, seconds in steps:
        rows = [(item, wall.at + timedelta(seconds=offset), 1) for item, offset in drawn]
        if rows:
            worker.feed(table(rows))
        for item, at, weight in rows:
            for window in Window:
                truth.setdefault(bucket_at(window, at), Counter())[item] += weight
        poll_after(timedelta(seconds=seconds), wall, worker)
        got = worker.accounting
        assert got.counted + got.late + got.ahead + got.refused + got.held == got.read
    worker.close()
    assert worker.accounting.ahead == worker.accounting.held == 0, "20,000 s and less are no jump"
    assert set(shelf.lists) == set(truth)
    for bucket, counts in truth.items():
        data, late = shelf.sketches[bucket]
        assert data is not None
        upper = CountMinSketch.deserialize(data)
        if late is not None:
            upper.merge(CountMinSketch.deserialize(late))
        assert upper.estimate_ids(list(counts)).tolist() == list(counts.values())


class Once(Shelf):
    """A shelf on which the list of a bucket never loses weight."""

    def publish_provisional(self, bucket: Bucket, entries, meta, sketch=None, late_sketch=None) -> bool:
        before: ServedList | None = self.lists.get(bucket)
        assert before is None or meta.total_weight >= before.meta.total_weight
        return super().publish_provisional(bucket, entries, meta, sketch, late_sketch)
