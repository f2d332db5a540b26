"""What comes for a closed bucket adds to its late sketch and its account, and leaves its list as it is served."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from daybreak.settings import Stream
from daybreak.windows import Bucket, Window, bucket_at
from streaming import late_events
from streaming.sketches.count_min import CountMinSketch
from streaming.worker import Worker
from tests.unit.streaming.shelf import NOON, Shelf, table

MINUTE = bucket_at(Window.MINUTE, NOON)


def closed(shelf: Shelf, now: list[datetime]) -> Worker:
    """A worker that has closed the minute of noon, with `a` in it."""
    worker = Worker(Stream(), shelf, lambda: now[0], run_id="first")
    worker.feed(table([("a", NOON, 1), ("b", NOON + timedelta(minutes=3), 1)]))
    return worker


def late(shelf: Shelf, bucket: Bucket = MINUTE) -> CountMinSketch:
    data = shelf.sketches[bucket][1]
    assert data is not None
    return CountMinSketch.deserialize(data)


def test_late_events_of_several_publications_add_up_beside_the_list() -> None:
    shelf, now = Shelf(), [NOON]
    worker = closed(shelf, now)
    before, sketch = shelf.lists[MINUTE], shelf.sketches[MINUTE][0]
    for weight in (5, 7):
        now[0] += timedelta(seconds=5)
        worker.feed(table([("c", NOON, weight)]))
    account = json.dumps(json.loads(before.meta.accounting) | {"late": 2})
    assert shelf.lists[MINUTE] == replace(before, meta=replace(before.meta, accounting=account, as_of=now[0]))
    assert shelf.sketches[MINUTE][0] == sketch
    assert late(shelf).estimate_ids(["c", "a"]).tolist() == [12, 0]


def test_an_exact_list_is_left_alone() -> None:
    shelf = Shelf()
    worker = closed(shelf, [NOON])
    served = shelf.lists[MINUTE]
    shelf.lists[MINUTE] = replace(served, meta=replace(served.meta, state="exact"))
    calls = len(shelf.calls)
    worker.feed(table([("c", NOON, 5)]))
    worker.publish(force=True)
    assert MINUTE not in shelf.calls[calls:]


def test_a_list_that_redis_has_lost_comes_back_with_the_late_events_alone() -> None:
    shelf = Shelf()
    worker = closed(shelf, [NOON])
    del shelf.lists[MINUTE], shelf.sketches[MINUTE]
    worker.feed(table([("c", NOON, 5)]))
    worker.publish(force=True)
    assert shelf.entries(Window.MINUTE) == []
    assert late(shelf).total_weight == 5


def test_no_late_sketch_where_the_sketch_is_missing_or_of_another_shape() -> None:
    for sketch in (None, CountMinSketch(3, 2).serialize()):
        shelf = Shelf()
        worker = closed(shelf, [NOON])
        shelf.sketches[MINUTE] = (sketch, None)
        worker.feed(table([("c", NOON, 5)]))
        worker.publish(force=True)
        assert shelf.sketches[MINUTE] == (None, None)
        assert json.loads(shelf.lists[MINUTE].meta.accounting)["late"] == 1


def test_late_events_of_many_buckets_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_events, "PENDING_BUCKETS", 2)
    shelf = Shelf()
    worker = Worker(Stream(), shelf, lambda: NOON)
    minutes = [NOON + timedelta(minutes=n) for n in range(3)]
    worker.feed(table([("a", at, 1) for at in [*minutes, NOON + timedelta(minutes=9)]]))
    worker.feed(table([("c", at, 5) for at in minutes]))
    assert [late(shelf, bucket_at(Window.MINUTE, at)).total_weight for at in minutes[:2]] == [5, 5]
    assert shelf.sketches[bucket_at(Window.MINUTE, minutes[2])][1] is None
