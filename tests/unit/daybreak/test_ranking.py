"""The total order and the rank styles."""

import doctest
from types import ModuleType

import pytest

from daybreak import ranking, windows
from daybreak.errors import UsageError


def test_ties_go_to_the_larger_id_bytes_as_zrevrange_has_it() -> None:
    items = ["a", "B", "é", "z", "😀", "\uffff"]
    order = sorted(items, key=lambda item: ranking.item_order_key(item, 1), reverse=True)
    assert order == ["😀", "\uffff", "é", "z", "a", "B"]


def test_a_larger_count_goes_before_any_id() -> None:
    assert ranking.item_order_key("a", 2) > ranking.item_order_key("z", 1)


def test_rank_styles_of_25_25_20() -> None:
    assert ranking.ranks([25, 25, 20], "competition") == [1, 1, 3]
    assert ranking.ranks([25, 25, 20], "dense") == [1, 1, 2]
    assert ranking.ranks([25, 25, 20], "ordinal") == [1, 2, 3]
    assert ranking.ranks([], "dense") == []


def test_competition_rank_is_one_plus_those_strictly_better() -> None:
    values = [9, 9, 7, 7, 7, 1]
    assert ranking.ranks(values, "competition") == [1 + sum(v > own for v in values) for own in values]
    assert ranking.ranks(values, "dense") == [1 + len({v for v in values if v > own}) for own in values]


def test_nonsense_is_refused() -> None:
    with pytest.raises(UsageError, match="standard"):
        ranking.ranks([1], "standard")


@pytest.mark.parametrize("module", [ranking, windows])
def test_examples_run(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
