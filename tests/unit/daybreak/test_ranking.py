"""The total order, the rank styles, and why counts are merged and lists are not."""

import doctest
from collections import Counter
from types import ModuleType

import pytest

from daybreak import ranking, windows
from daybreak.errors import UsageError
from daybreak.ranking import Entry
from tests.oracles import items as oracles


def test_ties_go_to_the_larger_id_bytes_as_zrevrange_has_it() -> None:
    counts = {"a": 1, "B": 1, "é": 1, "z": 1, "😀": 1, "\uffff": 1}
    order = [entry.item_id for entry in ranking.top(counts, 10)]
    assert order == ["😀", "\uffff", "é", "z", "a", "B"]
    assert [entry.rank for entry in ranking.top(counts, 10)] == [1] * 6


def test_rank_styles_of_25_25_20() -> None:
    assert ranking.ranks([25, 25, 20], "competition") == [1, 1, 3]
    assert ranking.ranks([25, 25, 20], "dense") == [1, 1, 2]
    assert ranking.ranks([25, 25, 20], "ordinal") == [1, 2, 3]
    assert ranking.ranks([], "dense") == []


def test_competition_rank_is_one_plus_those_strictly_better() -> None:
    values = [9, 9, 7, 7, 7, 1]
    assert ranking.ranks(values, "competition") == [1 + sum(v > own for v in values) for own in values]
    assert ranking.ranks(values, "dense") == [1 + len({v for v in values if v > own}) for own in values]


def test_k_above_the_number_of_items_gives_the_items_and_no_padding() -> None:
    assert ranking.top({"a": 2}, 5) == [Entry(1, 1, "a", 2)]
    assert ranking.top({}, 5) == []
    assert ranking.top({"a": 2}, 0) == []


def test_merging_counts_finds_what_merging_lists_would_lose() -> None:
    parts = [{"C": 5, "E": 3}, {"G": 7, "F": 6}, {"M": 4, "K": 3}]
    assert [(e.item_id, e.count) for e in ranking.top(ranking.merge(parts), 2)] == [("G", 7), ("F", 6)]
    firsts = [{e.item_id: e.count for e in ranking.top(part, 1)} for part in parts]
    assert "F" not in ranking.merge(firsts)


def test_four_minutes_whose_hour_is_led_by_an_item_that_seldom_leads_a_minute() -> None:
    minutes = ["111223", "344455", "366677", "388899"]
    hour = ranking.merge(Counter(minute) for minute in minutes)
    assert ranking.top(hour, 2)[0] == Entry(1, 1, "3", 4)
    lists = [{e.item_id: e.count for e in ranking.top(Counter(minute), 2)} for minute in minutes]
    assert ranking.merge(lists)["3"] == 0


def test_three_weights_of_2_147_483_647_do_not_overflow() -> None:
    assert ranking.merge([{"a": 2_147_483_647}] * 3)["a"] == 6_442_450_941


def test_top_agrees_with_the_oracle() -> None:
    counts = Counter({f"i{n}": n * 7919 % 13 for n in range(200)})
    assert [(e.position, e.rank, e.item_id, e.count) for e in ranking.top(counts, 50)] == oracles.top(counts, 50)


def test_nonsense_is_refused() -> None:
    with pytest.raises(UsageError, match="-1"):
        ranking.top({}, -1)
    with pytest.raises(UsageError, match="standard"):
        ranking.ranks([1], "standard")


@pytest.mark.parametrize("module", [ranking, windows])
def test_examples_run(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
