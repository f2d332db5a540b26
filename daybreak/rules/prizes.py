"""Who wins what when a period is closed: the prize table of a board, and what equals at its edges get.

Guarantees (tests/unit/daybreak/rules/test_prizes.py):

- Under `tie_break` and `share` a rank range gives away exactly one prize for each of its places.
- The order in which players are given does not matter.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Literal

from daybreak.errors import UsageError
from daybreak.rules.boards import Prize, PrizeTies


@dataclass(frozen=True)
class Finalist:
    """One player of a final board; equals have one rank and one percentile, positions run 1..N."""

    player_id: str
    position: int
    rank: int
    percentile: float


@dataclass(frozen=True)
class Award:
    """A player's part of a prize: `slots / among` of one; whole ones are 1 of 1."""

    player_id: str
    prize: str
    slots: int
    among: int


def award(ranked: Sequence[Finalist], prizes: Sequence[Prize], ties: PrizeTies) -> list[Award]:
    """What each player wins, by position. The first row of `prizes` that fits counts, for each player or place.

    `all`: the rank decides, and equals all get a whole prize. `tie_break`: the position decides. `share`: each place
    has its prize, and equals share those of the places that they fill. A percentile never parts equals, so those who
    win by it all win. Where ranks are ordinal nobody is equal, and the three are one.

    >>> players = [Finalist("ana", 1, 1, 50.0), Finalist("ben", 2, 1, 50.0), Finalist("cai", 3, 3, 25.0)]
    >>> cup = [Prize(prize="cup", ranks=(1, 1))]
    >>> [(each.player_id, each.slots, each.among) for each in award(players, cup, "share")]
    [('ana', 1, 2), ('ben', 1, 2)]
    >>> [each.player_id for each in award(players, cup, "all")]
    ['ana', 'ben']
    >>> [each.player_id for each in award(players, cup, "tie_break")]
    ['ana']

    Raises:
        UsageError: the policy is none of the three.
    """
    if all(each.ranks for each in prizes):  # whoever stands behind the last range needs no look
        last = max((each.ranks[1] for each in prizes if each.ranks), default=0)
        ranked = [each for each in ranked if each.rank <= last]
    places = sorted(ranked, key=attrgetter("position"))
    match ties:
        case "all":
            return list(_whole(places, prizes, "rank"))
        case "tie_break":
            return list(_whole(places, prizes, "position"))
        case "share":
            return list(_shared(places, prizes))
    raise UsageError(f"prize_ties {ties!r} is not known; use all, share or tie_break")


def won(prizes: Sequence[Prize], place: int, percentile: float) -> str | None:
    """The prize of the first row that fits a rank or position and a percentile; None when no row does."""
    for each in prizes:
        if each.ranks and each.ranks[0] <= place <= each.ranks[1]:
            return each.prize
        if each.percentile and each.percentile[0] <= percentile < each.percentile[1]:
            return each.prize
    return None


def _whole(places: Sequence[Finalist], prizes: Sequence[Prize], by: Literal["rank", "position"]) -> Iterator[Award]:
    for each in places:
        if prize := won(prizes, getattr(each, by), each.percentile):
            yield Award(each.player_id, prize, 1, 1)


def _shared(places: Sequence[Finalist], prizes: Sequence[Prize]) -> Iterator[Award]:
    for _, equals in groupby(places, key=attrgetter("rank")):
        group = list(equals)
        slots = Counter(prize for each in group if (prize := won(prizes, each.position, each.percentile)))
        for each in group:
            for prize, count in slots.items():
                yield Award(each.player_id, prize, *((1, 1) if count == len(group) else (count, len(group))))
