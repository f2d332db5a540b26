"""Laws of the order and of what is built on it: both paths cut the same list from the same counts."""

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from daybreak.accuracy import measure
from daybreak.ranking import item_order_key, ranks
from streaming.sketches.candidates import best
from tests.oracles import items as oracles

ITEMS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=3)
COUNTS = st.dictionaries(ITEMS, st.integers(1, 6), max_size=30)
Entries = list[tuple[str, int]]


def top(counts: dict[str, int], k: int) -> Entries:
    """The first `k` as the oracle has them."""
    return [(item, count) for _, _, item, count in oracles.top(Counter(counts), k)]


def streamed(pairs: Entries, k: int) -> Entries:
    """The first `k` as the speed layer cuts them."""
    ids, counts = best(pa.array([i for i, _ in pairs], pa.string()), np.array([n for _, n in pairs], np.int64), k)
    return list(zip(ids.to_pylist(), counts.tolist(), strict=True))


@given(COUNTS)
def test_the_order_is_the_oracles(counts: dict[str, int]) -> None:
    ordered = sorted(counts.items(), key=lambda pair: item_order_key(*pair), reverse=True)
    assert ordered == top(counts, len(counts))
    assert ranks([count for _, count in ordered], "competition") == [
        rank for _, rank, _, _ in oracles.top(Counter(counts), len(counts))
    ]


@given(COUNTS, st.randoms(), st.integers(1, 40))
def test_input_order_does_not_matter(counts: dict[str, int], random, k: int) -> None:
    shuffled = list(counts.items())
    random.shuffle(shuffled)
    assert streamed(shuffled, k) == streamed(list(counts.items()), k) == top(counts, k)


@given(COUNTS, st.integers(1, 40), st.integers(0, 40))
def test_a_list_is_a_prefix_of_a_longer_one(counts: dict[str, int], k: int, more: int) -> None:
    pairs = list(counts.items())
    assert streamed(pairs, k + more)[:k] == streamed(pairs, k)


@given(COUNTS, COUNTS, st.integers(1, 20))
def test_recall_equals_the_oracle_and_is_one_for_the_exact_list(
    exact: dict[str, int], sketchy: dict[str, int], k: int
) -> None:
    served = top(sketchy, k)
    found = measure(served, exact, k, 0.0)
    assert found.recall == oracles.recall_at([item for item, _ in served], Counter(exact), k)
    assert len(found.missed) == round((1 - found.recall) * found.k)
    perfect = measure(top(exact, k), exact, k, 0.0)
    assert (perfect.recall, perfect.precision, perfect.missed, perfect.intruders) == (1.0, 1.0, (), ())
    assert (perfect.max_rank_shift, perfect.max_overcount, perfect.below_truth) == (0, 0, 0)
