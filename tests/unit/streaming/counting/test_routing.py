"""Every row is in one group of each window, and late only where the bucket's grace was over."""

from collections import Counter
from datetime import datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from daybreak.windows import Bucket, Window, bucket_at, to_micros
from streaming.counting.routing import DENSE_SPAN, group_by_bucket
from streaming.counting.watermark import Admitted
from tests.unit.streaming.shelf import NOON, table

GRACES = {Window.MINUTE: 120_000_000, Window.HOUR: 600_000_000, Window.DAY: 1_800_000_000}
Found = dict[tuple[Bucket, bool], tuple[dict[str, int], int]]


def found(rows: list[tuple[str, datetime, int]], seen: list[datetime], parts: int = 1) -> Found:
    """By (bucket, late): the weights of its items and the number of its events."""
    admitted = [
        Admitted(table(rows[part::parts]), np.array([to_micros(at) for at in seen[part::parts]], np.int64))
        for part in range(parts)
    ]
    groups = list(group_by_bucket(admitted, GRACES))
    named = {
        (group.bucket, group.is_late): (
            dict(zip(group.ids.take(group.codes).to_pylist(), group.weights.tolist(), strict=True)),
            group.event_count,
        )
        for group in groups
    }
    assert len(named) == len(groups)
    return named


def test_no_rows_are_no_groups() -> None:
    assert list(group_by_bucket([], GRACES)) == []


def test_a_row_is_late_from_the_instant_at_which_its_grace_is_over() -> None:
    over = NOON + timedelta(minutes=3)
    rows = [("a", NOON, 1), ("b", NOON, 2)]
    got = found(rows, [over - timedelta(microseconds=1), over])
    minute, hour = bucket_at(Window.MINUTE, NOON), bucket_at(Window.HOUR, NOON)
    assert got[minute, False] == ({"a": 1}, 1)
    assert got[minute, True] == ({"b": 2}, 1)
    assert got[hour, False] == ({"a": 1, "b": 2}, 2)


def test_buckets_far_apart_are_not_all_made() -> None:
    far = NOON + timedelta(minutes=10 * DENSE_SPAN)
    got = found([("a", NOON, 1), ("a", far, 1), ("a", far, 1)], [NOON] * 3)
    assert got[bucket_at(Window.MINUTE, far), False] == ({"a": 2}, 2)
    assert sum(bucket.window is Window.MINUTE for bucket, _ in got) == 2


@hypothesis_settings(deadline=None)  # the first call compiles
@given(
    st.lists(
        st.tuples(st.sampled_from("abcé"), st.integers(0, 100_000), st.integers(1, 2**32), st.integers(0, 100_000)),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 3),
)
def test_for_any_rows_the_groups_are_counters(drawn: list[tuple[str, int, int, int]], parts: int) -> None:
    rows = [(item, NOON + timedelta(seconds=s), weight) for item, s, weight, _ in drawn]
    seen = [NOON + timedelta(seconds=s) for *_, s in drawn]
    weights: dict[tuple[Bucket, bool], Counter[str]] = {}
    events: Counter[tuple[Bucket, bool]] = Counter()
    for (item, at, weight), met in zip(rows, seen, strict=True):
        for window in Window:
            bucket = bucket_at(window, at)
            name = bucket, met >= bucket.end + timedelta(microseconds=GRACES[window])
            weights.setdefault(name, Counter())[item] += weight
            events[name] += 1
    assert found(rows, seen, parts) == {name: (dict(weights[name]), events[name]) for name in weights}
