"""The total order of lists, rank styles, and merging. Exact and in plain Python: the other engines agree with it.

Items: count descending, then `item_id` by UTF-8 bytes descending, which is what a plain `ZREVRANGE` gives.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from daybreak.errors import UsageError

RankStyle = Literal["competition", "dense", "ordinal"]


@dataclass(frozen=True)
class Entry:
    """One place of a list: `position` runs 1..N without gaps, `rank` is shared on ties (1 1 3)."""

    position: int
    rank: int
    item_id: str
    count: int


def item_order_key(item_id: str, count: int) -> tuple[int, bytes]:
    """Sort key of an item, to be used with `reverse=True`: largest count first, then largest id bytes.

    >>> counts = {"b": 2, "c": 2, "a": 9}
    >>> sorted(counts, key=lambda item: item_order_key(item, counts[item]), reverse=True)
    ['a', 'c', 'b']
    """
    return count, item_id.encode()


def top(counts: Mapping[str, int], k: int) -> list[Entry]:
    """The first `k` items in total order; all of them, without padding, when there are fewer.

    Guarantee: a top-k is a prefix of every longer one (tests/laws/test_ranking.py).

    >>> [(entry.position, entry.rank, entry.item_id) for entry in top({"a": 25, "b": 25, "c": 20}, 3)]
    [(1, 1, 'b'), (2, 1, 'a'), (3, 3, 'c')]

    Raises:
        UsageError: k is negative.
    """
    if k < 0:
        raise UsageError(f"a list of {k} entries is impossible; give k >= 0")
    best = heapq.nlargest(k, counts.items(), key=lambda pair: item_order_key(*pair))
    places = ranks([count for _, count in best], "competition")
    return [
        Entry(position, rank, item_id, count)
        for position, (rank, (item_id, count)) in enumerate(zip(places, best, strict=True), 1)
    ]


def ranks(values: Sequence[Any], style: RankStyle) -> list[int]:
    """The rank of each value; `values` come best first, equal ones side by side.

    >>> ranks([25, 25, 20], "competition"), ranks([25, 25, 20], "dense"), ranks([25, 25, 20], "ordinal")
    ([1, 1, 3], [1, 1, 2], [1, 2, 3])

    Raises:
        UsageError: the style is none of the three.
    """
    if style not in ("competition", "dense", "ordinal"):
        raise UsageError(f"rank style {style!r} is not known; use competition, dense or ordinal")
    found: list[int] = []
    for position, value in enumerate(values, 1):
        if style == "ordinal" or position == 1:
            found.append(position)
        elif value == values[position - 2]:
            found.append(found[-1])
        else:
            found.append(position if style == "competition" else found[-1] + 1)
    return found


def merge(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The sum of several counts. Give it counts, never cut lists: an item just below every cut would vanish.

    >>> merge([{"C": 5, "E": 3}, {"C": 1}])["C"]
    6
    """
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return total
