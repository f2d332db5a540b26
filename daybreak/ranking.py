"""The total order of lists, and rank styles. Exact and in plain Python: the other engines agree with it.

Items: count descending, then `item_id` by UTF-8 bytes descending, which is what a plain `ZREVRANGE` gives.
"""

from collections.abc import Sequence
from typing import Any, Literal

from daybreak.errors import UsageError

RankStyle = Literal["competition", "dense", "ordinal"]


def item_order_key(item_id: str, count: int) -> tuple[int, bytes]:
    """Sort key of an item, to be used with `reverse=True`: largest count first, then largest id bytes.

    >>> counts = {"b": 2, "c": 2, "a": 9}
    >>> sorted(counts, key=lambda item: item_order_key(item, counts[item]), reverse=True)
    ['a', 'c', 'b']
    """
    return count, item_id.encode()


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
