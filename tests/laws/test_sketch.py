"""Laws of the sketch, of grouping and of the watermark, against plain Python."""

import itertools
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.counting.watermark import Watermark, micros_of
from streaming.sketches import kernels
from streaming.sketches.count_min import CountMinSketch, hash_ids, row_constants

ids = st.lists(st.text(max_size=80), max_size=60)
events = st.lists(st.tuples(st.text("abcdefgh", min_size=1, max_size=2), st.integers(1, 2**32)), max_size=80)


def sketch_of(rows: list[tuple[str, int]], width: int = 7, depth: int = 3) -> CountMinSketch:
    sketch = CountMinSketch(width, depth)
    sketch.update_ids(pa.array([i for i, _ in rows], pa.string()), np.array([w for _, w in rows], np.int64))
    return sketch


def plain_cells(rows: list[tuple[str, int]], width: int, depth: int) -> list[list[int]]:
    cells = [[0] * width for _ in range(depth)]
    for item, weight in rows:
        h = xxhash.xxh64(item.encode(), seed=42).intdigest()
        for row, constant in enumerate(row_constants(42, depth).tolist()):
            cells[row][((h * constant % 2**64 >> 32) * width) >> 32] += weight
    return cells


@settings(deadline=None)  # the first call compiles
@given(ids, st.integers(0, 5))
def test_hashes_are_xxh64_with_seed_42_of_the_bytes(values: list[str], skip: int) -> None:
    expected = [xxhash.xxh64(v.encode(), seed=42).intdigest() for v in values][skip:]
    assert hash_ids(pa.array(values, pa.string()).slice(skip)).tolist() == expected
    assert hash_ids(pa.array(values, pa.large_string()).slice(skip)).tolist() == expected


@settings(deadline=None)  # the first call compiles
@given(events)
def test_cells_are_those_of_plain_python(rows: list[tuple[str, int]]) -> None:
    assert sketch_of(rows).cells.tolist() == plain_cells(rows, 7, 3)


@settings(deadline=None)  # the first call compiles
@given(events)
def test_an_estimate_is_never_below_the_truth(rows: list[tuple[str, int]]) -> None:
    truth: Counter[str] = Counter()
    for item, weight in rows:
        truth[item] += weight
    estimates = sketch_of(rows).estimate_ids(list(truth))
    assert all(e >= truth[i] for i, e in zip(truth, estimates.tolist(), strict=True))


@settings(deadline=None)  # the first call compiles
@given(events, events)
def test_merging_equals_seeing_both_and_subtracting_undoes_it(one: list, two: list) -> None:
    merged = sketch_of(one)
    merged.merge(sketch_of(two))
    both = sketch_of(two + one)
    assert merged.cells.tolist() == both.cells.tolist()
    assert merged.total_weight == both.total_weight
    merged.subtract(sketch_of(two))
    assert merged.cells.tolist() == sketch_of(one).cells.tolist()
    assert merged.total_weight == sum(w for _, w in one)


@settings(deadline=None)  # the first call compiles
@given(events)
def test_bytes_round_trip(rows: list[tuple[str, int]]) -> None:
    sketch = sketch_of(rows)
    again = CountMinSketch.deserialize(sketch.serialize())
    assert again.cells.tolist() == sketch.cells.tolist()
    assert (again.seed, again.total_weight) == (sketch.seed, sketch.total_weight)


def test_the_bound_holds_as_often_as_promised() -> None:
    failures = trials = 0
    for seed in range(20):
        sketch = CountMinSketch.from_error(0.01, 0.95, seed)
        draws = np.random.default_rng(seed).zipf(1.2, 20_000) % 5_000
        items, counts = np.unique(draws, return_counts=True)
        hashes = hash_ids(pa.array(items).cast(pa.string()))
        sketch.update(hashes, counts)
        failures += int(np.count_nonzero(sketch.estimate(hashes) - counts > sketch.error_bound))
        trials += len(items)
    assert failures / trials <= 0.05


def test_rows_are_independent() -> None:
    """Items that collide in one row collide in another only as often as chance has it."""
    width, items = 50, 4_000
    hashes = hash_ids(pa.array([f"item-{n}" for n in range(items)]))
    constants = row_constants(42, 2)
    places = [((hashes * c >> np.uint64(32)) * np.uint64(width)) >> np.uint64(32) for c in constants]
    joint = np.bincount((places[0] * np.uint64(width) + places[1]).astype(int), minlength=width * width)
    expected = items / width**2
    chi_square = float(((joint - expected) ** 2 / expected).sum())
    freedom = width**2 - 1
    assert abs(chi_square - freedom) < 6 * math.sqrt(2 * freedom)


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(1, 9)), max_size=50))
def test_grouping_equals_a_counter(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array(c, np.int64) for c in zip(*rows, strict=True)] or [np.empty(0, np.int64)] * 3
    codes, sums, starts, count = kernels.group(*columns, 5, 7)
    expected: Counter[tuple[int, int]] = Counter()
    for bucket, code, weight in rows:
        expected[bucket, code] += weight
    got = {(b, int(codes[i])): int(sums[i]) for b in range(5) for i in range(int(starts[b]), int(starts[b + 1]))}
    assert got == dict(expected)
    assert count.tolist() == [sum(b == n for b, _, _ in rows) for n in range(5)]


def plain_watermark(times: list[int], jump: int) -> tuple[list[tuple[int, int]], list[int]]:
    """(admitted (time, watermark met), ahead), one event at a time."""
    at, held, admitted, ahead = None, [], [], []
    queue, ended = list(times), False
    while queue or held:
        if not queue or len(held) == 16:
            ended = ended or not queue
            at, queue, held = min(held), held + queue, []
            continue
        one = queue.pop(0)
        at = one if at is None else at
        if one - at > jump:
            held.append(one)
            continue
        if held:
            ahead += held
            held = []
        admitted.append((one, at))
        at = max(at, one)
    return admitted, ahead


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([0, 1, 2, 5, 40, 41, 90, 1000]), max_size=90), st.lists(st.integers(0, 90), max_size=4))
def test_the_watermark_is_the_same_however_the_stream_is_cut(times: list[int], cuts: list[int]) -> None:
    table = pa.table({"occurred_at": pa.array(times, pa.timestamp("us", tz="UTC"))})
    mark, admitted, ahead = Watermark(30), [], []
    edges = sorted({0, len(times), *(c for c in cuts if c < len(times))})
    for start, end in itertools.pairwise(edges):
        admitted += mark.admit(table.slice(start, end - start))
    admitted += mark.confirm()
    ahead = [t for part in mark.ahead for t in micros_of(part).tolist()]
    got = [pair for a in admitted for pair in zip(micros_of(a.rows).tolist(), a.seen.tolist(), strict=True)]
    assert (got, ahead) == plain_watermark(times, 30)


@pytest.mark.parametrize("shape", [(8, 3, 42), (7, 4, 42), (7, 3, 43)])
def test_another_shape_or_seed_refuses_to_merge(shape: tuple[int, int, int]) -> None:
    with pytest.raises(Exception, match="cannot be combined"):
        CountMinSketch(7, 3, 42).merge(CountMinSketch(*shape))
