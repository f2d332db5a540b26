"""Each measure of a list's error, worked by hand."""

import pytest

from daybreak.accuracy import measure
from daybreak.errors import UsageError
from tests.builders import counts

EXACT = {"a": 10, "b": 8, "c": 6, "d": 4, "e": 2}


def test_a_perfect_list() -> None:
    found = measure([("a", 10), ("b", 8)], EXACT, 2, 0.0)
    assert (found.recall, found.precision, found.missed, found.intruders) == (1.0, 1.0, (), ())
    assert (found.max_rank_shift, found.max_overcount, found.mean_relative_error) == (0, 0, 0.0)
    assert (found.bound_coverage, found.below_truth, found.k) == (1.0, 0, 2)


def test_an_intruder_and_what_it_pushed_out() -> None:
    # exact first three: a10 b8 c6; served: a, e (estimate 9 for 2), b
    found = measure([("a", 11), ("e", 9), ("b", 8)], EXACT, 3, 1.0)
    assert found.recall == pytest.approx(2 / 3)
    assert found.precision == pytest.approx(2 / 3)
    assert found.missed == ("c",)
    assert found.intruders == ("e",)
    assert found.max_rank_shift == 3  # e stands at 2, its place is 5
    assert found.mean_rank_shift == pytest.approx((0 + 3 + 1) / 3)
    assert found.max_overcount == 7
    assert found.mean_overcount == pytest.approx((1 + 7 + 0) / 3)
    assert found.mean_relative_error == pytest.approx((1 / 10 + 7 / 2 + 0) / 3)
    assert found.bound_coverage == pytest.approx(2 / 3)


@pytest.mark.parametrize("second", ["x", "y", "z"])
def test_any_member_of_the_tie_across_place_k_is_right(second: str) -> None:
    exact = {"a": 9, "x": 5, "y": 5, "z": 5, "w": 1}
    found = measure([("a", 9), (second, 5)], exact, 2, 0.0)
    assert (found.recall, found.precision, found.missed, found.intruders) == (1.0, 1.0, (), ())
    assert found.max_rank_shift == 0


def test_a_tie_does_not_hide_a_missed_item_above_it() -> None:
    exact = {"a": 9, "x": 5, "y": 5, "z": 5}
    found = measure([("x", 5), ("y", 5)], exact, 2, 0.0)
    assert found.missed == ("a",)
    assert found.recall == 0.5, "both served tie at the one place that a leaves; only one of them can fill it"


def test_order_inside_a_tie_is_no_shift() -> None:
    exact = {"a": 5, "b": 5, "c": 5, "d": 1}
    assert measure([("a", 5), ("c", 5), ("b", 5)], exact, 3, 0.0).max_rank_shift == 0


def test_estimates_below_the_truth_are_counted() -> None:
    found = measure([("a", 9), ("b", 8)], EXACT, 2, 5.0)
    assert found.below_truth == 1
    assert found.max_overcount == 0
    assert found.mean_relative_error == pytest.approx(0.05)


def test_an_item_that_never_occurred_is_an_intruder() -> None:
    found = measure([("a", 10), ("ghost", 3)], {"a": 10}, 2, 1.0)
    assert found.k == 1
    assert found.recall == 1.0
    assert found.intruders == ("ghost",)
    assert found.mean_relative_error == pytest.approx(1.5)


def test_empty_lists_are_defined() -> None:
    nothing = measure([], {}, 10, 0.0)
    assert (nothing.k, nothing.recall, nothing.precision, nothing.bound_coverage) == (0, 1.0, 1.0, 1.0)
    unserved = measure([], EXACT, 2, 0.0)
    assert (unserved.recall, unserved.precision, unserved.missed) == (0.0, 1.0, ("a", "b"))
    unfounded = measure([("a", 1)], {}, 2, 0.0)
    assert (unfounded.recall, unfounded.precision, unfounded.intruders) == (1.0, 0.0, ("a",))


def test_a_short_list_misses_the_rest() -> None:
    found = measure([("a", 10)], EXACT, 3, 0.0)
    assert (found.recall, found.precision, found.missed) == (pytest.approx(1 / 3), 1.0, ("b", "c"))


def test_a_table_of_counts_gives_the_same() -> None:
    served = [("a", 11), ("e", 9), ("b", 8)]
    assert measure(served, counts(**EXACT), 3, 1.0) == measure(served, EXACT, 3, 1.0)


def test_nonsense_is_refused() -> None:
    with pytest.raises(UsageError, match="k=0"):
        measure([], EXACT, 0, 0.0)
    with pytest.raises(UsageError, match="twice"):
        measure([("a", 1), ("a", 1)], EXACT, 2, 0.0)
