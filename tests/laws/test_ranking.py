"""Laws of the order: it ignores how the input came, a list is a prefix of a longer one, merging is adding."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from daybreak import ranking
from daybreak.accuracy import measure
from tests.oracles import items as oracles

ITEMS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=3)
COUNTS = st.dictionaries(ITEMS, st.integers(1, 6), max_size=30)


@given(COUNTS, st.randoms(), st.integers(0, 40))
def test_input_order_does_not_matter(counts: dict[str, int], random, k: int) -> None:
    shuffled = list(counts.items())
    random.shuffle(shuffled)
    assert ranking.top(dict(shuffled), k) == ranking.top(counts, k)


@given(COUNTS, st.integers(0, 40), st.integers(0, 40))
def test_a_list_is_a_prefix_of_a_longer_one(counts: dict[str, int], k: int, more: int) -> None:
    assert ranking.top(counts, k + more)[:k] == ranking.top(counts, k)


@given(COUNTS, st.integers(0, 40))
def test_top_equals_the_oracle(counts: dict[str, int], k: int) -> None:
    got = [(entry.position, entry.rank, entry.item_id, entry.count) for entry in ranking.top(counts, k)]
    assert got == oracles.top(Counter(counts), k)


@given(st.lists(COUNTS, max_size=4))
def test_merging_is_adding(parts: list[dict[str, int]]) -> None:
    every = [item for part in parts for item, count in part.items() for _ in range(count)]
    assert ranking.merge(parts) == Counter(every)


@given(COUNTS, COUNTS, st.integers(1, 20))
def test_recall_equals_the_oracle_and_is_one_for_the_exact_list(
    exact: dict[str, int], sketchy: dict[str, int], k: int
) -> None:
    served = [(entry.item_id, entry.count) for entry in ranking.top(sketchy, k)]
    found = measure(served, exact, k, 0.0)
    assert found.recall == oracles.recall_at([item for item, _ in served], Counter(exact), k)
    assert len(found.missed) == round((1 - found.recall) * found.k)
    perfect = measure([(entry.item_id, entry.count) for entry in ranking.top(exact, k)], exact, k, 0.0)
    assert (perfect.recall, perfect.precision, perfect.missed, perfect.intruders) == (1.0, 1.0, (), ())
    assert (perfect.max_rank_shift, perfect.max_overcount, perfect.below_truth) == (0, 0, 0)
