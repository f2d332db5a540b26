"""A bucket lives from its first event until its grace is over, within the memory allowed."""

from datetime import timedelta

import pytest

from daybreak.errors import UsageError
from daybreak.settings import Stream
from daybreak.windows import Bucket, Window, bucket_at
from streaming.counting.live_buckets import LOOK_EVERY, LiveBuckets, graces
from tests.unit.streaming.shelf import NOON

MINUTE = bucket_at(Window.MINUTE, NOON)
HOUR = bucket_at(Window.HOUR, NOON)
DAY = bucket_at(Window.DAY, NOON)


def opened(*buckets: Bucket) -> LiveBuckets:
    live = LiveBuckets(Stream())
    for bucket in buckets:
        live.open(bucket)
    return live


def test_graces_are_those_of_the_settings_in_microseconds() -> None:
    assert graces(Stream()) == {Window.MINUTE: 120_000_000, Window.HOUR: 600_000_000, Window.DAY: 1_800_000_000}


def test_a_bucket_lives_from_open_to_drop() -> None:
    live = opened(MINUTE, DAY, HOUR)
    assert live.in_order() == [DAY, HOUR, MINUTE]
    live.drop(HOUR)
    assert HOUR not in live
    assert len(live) == 2


def test_it_has_ended_at_the_instant_at_which_its_grace_is_over() -> None:
    live = opened(MINUTE, HOUR)
    over = NOON + timedelta(minutes=3)
    assert live.ended(over - timedelta(microseconds=1)) == []
    assert live.ended(over) == [MINUTE]


def test_a_bucket_beyond_the_memory_limit_is_refused_with_what_to_do() -> None:
    live = LiveBuckets(Stream(memory_limit=1000, force_cells=True))
    minutes = [bucket_at(Window.MINUTE, NOON + timedelta(minutes=n)) for n in range(LOOK_EVERY + 1)]
    for bucket in minutes[:-1]:
        live.open(bucket)
    assert live.memory_bytes > 1000
    with pytest.raises(UsageError, match=r"above stream\.memory_limit = 1,000; raise it"):
        live.open(minutes[-1])
