"""Prizes: each policy at the edges of a range, and what is given away in all."""

import random
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daybreak.errors import UsageError
from daybreak.ranking import RankStyle, ranks
from daybreak.rules.boards import Prize
from daybreak.rules.prizes import Award, Finalist, PrizeTies, award

TABLE = [Prize(prize="gold", ranks=(1, 1)), Prize(prize="silver", ranks=(2, 3)), Prize(prize="badge", ranks=(4, 5))]


def ranked(*points: int, style: RankStyle = "competition") -> list[Finalist]:
    """Players p1, p2, … with these points, best first."""
    return [
        Finalist(f"p{position}", position, rank, 100 * sum(other < own for other in points) / len(points))
        for position, (rank, own) in enumerate(zip(ranks(points, style), points, strict=True), 1)
    ]


def given_to(awards: list[Award]) -> dict[str, dict[str, Fraction]]:
    found: dict[str, dict[str, Fraction]] = defaultdict(dict)
    for each in awards:
        assert each.prize not in found[each.player_id], "one row per player and prize"
        found[each.player_id][each.prize] = Fraction(each.slots, each.among)
    return dict(found)


def test_without_ties_the_policies_are_one() -> None:
    expected = [
        Award(f"p{n}", prize, 1, 1) for n, prize in enumerate(("gold", "silver", "silver", "badge", "badge"), 1)
    ]
    for ties in ("all", "share", "tie_break"):
        assert award(ranked(60, 50, 40, 30, 20, 10), TABLE, ties) == expected


def test_all_equals_get_the_prize_of_their_rank() -> None:
    awards = award(ranked(50, 50, 50, 40, 40, 40, 10), TABLE, "all")
    assert [(each.player_id, each.prize) for each in awards] == [
        *((f"p{n}", "gold") for n in (1, 2, 3)),
        *((f"p{n}", "badge") for n in (4, 5, 6)),
    ]


def test_tie_breaks_decide_who_is_inside() -> None:
    awards = award(ranked(50, 50, 50, 40, 40, 40, 10), TABLE, "tie_break")
    assert [each.prize for each in awards] == ["gold", "silver", "silver", "badge", "badge"]


def test_equals_share_the_places_that_they_fill() -> None:
    awards = award(ranked(50, 50, 50, 40, 40, 40, 10), TABLE, "share")
    assert awards[:2] == [Award("p1", "gold", 1, 3), Award("p1", "silver", 2, 3)]
    assert awards[-1] == Award("p6", "badge", 2, 3)
    assert len(awards) == 9


def test_equals_inside_one_range_get_whole_prizes() -> None:
    assert award(ranked(50, 40, 40, 30), TABLE, "share")[1:3] == [Award(f"p{n}", "silver", 1, 1) for n in (2, 3)]


def test_rows_with_one_prize_are_one_share_of_it() -> None:
    rows = [Prize(prize="coins", ranks=(1, 1)), Prize(prize="coins", ranks=(2, 2))]
    assert award(ranked(50, 50, 50), rows, "share") == [Award(f"p{n}", "coins", 2, 3) for n in (1, 2, 3)]


def test_percentiles_are_half_open_and_never_part_equals() -> None:
    rows = [Prize(prize="top", percentile=(75, 100)), Prize(prize="half", percentile=(50, 75))]
    players = ranked(4, 3, 2, 1)
    for ties in ("all", "share", "tie_break"):
        assert given_to(award(players, rows, ties)) == {"p1": {"top": 1}, "p2": {"half": 1}}
        assert given_to(award(ranked(4, 4, 2, 1), rows, ties)) == {"p1": {"half": 1}, "p2": {"half": 1}}


def test_the_first_row_that_fits_counts() -> None:
    rows = [Prize(prize="cup", ranks=(1, 1)), Prize(prize="best half", percentile=(50, 100))]
    assert given_to(award(ranked(4, 3, 2, 1), rows, "all")) == {"p1": {"cup": 1}, "p2": {"best half": 1}}
    shared = given_to(award(ranked(4, 4, 2, 1), rows, "share"))
    assert shared == {f"p{n}": {"cup": Fraction(1, 2), "best half": Fraction(1, 2)} for n in (1, 2)}


def test_rank_styles_change_who_is_inside_a_range() -> None:
    points = (50, 50, 30, 30, 10)
    first_two = [Prize(prize="cup", ranks=(1, 2))]
    inside = {style: len(award(ranked(*points, style=style), first_two, "all")) for style in ("competition", "dense")}
    assert inside == {"competition": 2, "dense": 4}
    ordinal = ranked(*points, style="ordinal")
    assert award(ordinal, first_two, "share") == award(ordinal, first_two, "all")


def test_nothing_to_win_and_nobody_to_win_it() -> None:
    assert award(ranked(1, 2), [], "all") == []
    assert award([], TABLE, "share") == []


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(UsageError, match="use all, share or tie_break"):
        award(ranked(1), TABLE, "lottery")


POINTS = st.lists(st.integers(0, 6), max_size=25).map(lambda points: sorted(points, reverse=True))
EDGES = st.lists(st.integers(1, 30), min_size=1, max_size=8, unique=True).map(sorted)
POLICIES = st.sampled_from(["all", "share", "tie_break"])


def ranges(edges: list[int]) -> list[Prize]:
    """Disjoint rank ranges in order, with gaps: every third pair of edges is left out."""
    pairs = zip(edges, [*edges[1:], edges[-1] + 1], strict=True)
    return [Prize(prize=f"row {n}", ranks=(low, high - 1)) for n, (low, high) in enumerate(pairs) if n % 3 < 2]


@given(POINTS, EDGES, st.sampled_from(["share", "tie_break"]))
def test_a_range_gives_away_one_prize_for_each_of_its_places(
    points: list[int], edges: list[int], ties: PrizeTies
) -> None:
    given_away = defaultdict(Fraction)
    for each in award(ranked(*points), ranges(edges), ties):
        given_away[each.prize] += Fraction(each.slots, each.among)
    for row in ranges(edges):
        places = max(0, min(row.ranks[1], len(points)) - row.ranks[0] + 1)
        assert given_away[row.prize] == places


@given(POINTS, EDGES, st.sampled_from(["all", "share"]))
def test_equals_get_the_same(points: list[int], edges: list[int], ties: PrizeTies) -> None:
    players = ranked(*points)
    found = given_to(award(players, ranges(edges), ties))
    for one in players:
        for other in players:
            if one.rank == other.rank:
                assert found.get(one.player_id) == found.get(other.player_id)


@given(POINTS, st.lists(st.integers(1, 30), min_size=1, max_size=6, unique=True).map(sorted), POLICIES)
def test_a_better_place_never_wins_less(points: list[int], lasts: list[int], ties: PrizeTies) -> None:
    rows = [
        Prize(prize=str(len(lasts) - n), ranks=(first, last))
        for n, (first, last) in enumerate(zip([1, *(last + 1 for last in lasts[:-1])], lasts, strict=True))
    ]
    players = ranked(*points)
    found = given_to(award(players, rows, ties))
    worth = [sum(int(prize) * part for prize, part in found.get(each.player_id, {}).items()) for each in players]
    assert worth == sorted(worth, reverse=True)


@given(POINTS, EDGES, POLICIES, st.randoms(use_true_random=False))
def test_the_order_of_the_players_does_not_matter(
    points: list[int], edges: list[int], ties: PrizeTies, order: random.Random
) -> None:
    players = ranked(*points)
    expected = award(players, ranges(edges), ties)
    order.shuffle(players)
    assert award(players, ranges(edges), ties) == expected
