from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.sketches.candidates import Candidates


def test_the_heap_trace_of_two() -> None:
    candidates, members = Candidates(2), []
    for item, count in [("A", 2), ("B", 1), ("C", 5), ("D", 1), ("E", 3)]:
        candidates.offer([item], [count])
        members.append(set(candidates.ids.to_pylist()))
    assert candidates.top(2) == [("C", 5), ("E", 3)]
    assert not any("D" in each for each in members)


def test_a_new_estimate_replaces_the_old_one_and_the_newest_of_an_offer_counts() -> None:
    candidates = Candidates(3)
    candidates.offer(["a", "b"], [1, 2])
    candidates.offer(["a", "a"], [3, 4])
    assert candidates.top(9) == [("a", 4), ("b", 2)]


def test_top_is_cut_to_what_exists() -> None:
    candidates = Candidates(10)
    assert candidates.top(5) == []
    candidates.offer(["a"], [1])
    assert candidates.top(5) == [("a", 1)]


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcdefghijé"), max_size=80), st.integers(1, 5))
def test_with_true_counts_the_top_is_exact_including_ties(stream: list[str], k: int) -> None:
    candidates, seen = Candidates(k), Counter()
    for item in stream:
        seen[item] += 1
        candidates.offer([item], [seen[item]])
    best = sorted(seen.items(), key=lambda e: (e[1], e[0].encode()), reverse=True)[:k]
    assert Counter(count for _, count in candidates.top(k)) == Counter(count for _, count in best)
    assert all(seen[item] == count for item, count in candidates.top(k))
