"""How wrong a served list was, against the exact counts of its whole bucket."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from daybreak.errors import UsageError
from daybreak.ranking import item_order_key, ranks


@dataclass(frozen=True)
class ListAccuracy:
    """The measures of one list at one K.

    Ties count as sets: every member of the tie that crosses place K is right, and together they fill the places
    that the items above the tie leave, no more. Errors of estimates are over all K served entries, in total weight.
    """

    k: int
    """K, cut to the number of items that exist."""
    recall: float
    """Right entries / places to fill; 1.0 when there is nothing to find."""
    precision: float
    """Right entries / entries served; 1.0 when none was served."""
    missed: tuple[str, ...]
    """Items of the exact list that should have been served, best first."""
    intruders: tuple[str, ...]
    """Served items that are in no exact list of K, as served."""
    max_rank_shift: int
    """Places that an entry stood away from where its exact tie allows, at most."""
    mean_rank_shift: float
    max_overcount: int
    """Estimate - count, at most; never below 0 here, see `below_truth`."""
    mean_overcount: float
    mean_relative_error: float
    """Mean of |estimate - count| / max(count, 1)."""
    bound_coverage: float
    """Share of entries whose overcount is within the error bound; 1.0 when none was served."""
    below_truth: int
    """Entries whose estimate is below the count: of a sketch that lost nothing, always 0."""


def measure(
    served: Sequence[tuple[str, int]],
    exact: pa.Table | Mapping[str, int],
    k: int,
    error_bound: float,
) -> ListAccuracy:
    """The accuracy of the first `k` of `served` (item_id, estimate; best first).

    Args:
        exact: the exact counts of every item of the bucket; a table has columns `item_id` and `count`.
        error_bound: relative_error x total_weight of the bucket.

    Raises:
        UsageError: k is below 1, or `served` names an item twice.
    """
    if k < 1:
        raise UsageError(f"accuracy at k={k} is not defined; give k >= 1")
    counts = _as_counts(exact)
    order = sorted(counts.items(), key=lambda pair: item_order_key(*pair), reverse=True)
    places = min(k, len(order))
    entries = list(served[:k])
    if len({item for item, _ in entries}) != len(entries):
        raise UsageError("the served list names an item twice; serve each item once")
    cut = order[places - 1][1] if places else 0
    above = [item for item, count in order[:places] if count > cut]
    right = {item for item, _ in entries if places and item in counts and counts[item] >= cut}
    filled = len(right & set(above)) + min(len(right - set(above)), places - len(above))
    intruders = tuple(item for item, _ in entries if item not in right)
    shifts = _rank_shifts(entries, order)
    errors = [estimate - counts.get(item, 0) for item, estimate in entries]
    relative = [abs(error) / max(counts.get(item, 0), 1) for error, (item, _) in zip(errors, entries, strict=True)]
    over = [max(error, 0) for error in errors]
    return ListAccuracy(
        k=places,
        recall=filled / places if places else 1.0,
        precision=len(right) / len(entries) if entries else 1.0,
        missed=_missed(order[:places], right, places - filled),
        intruders=intruders,
        max_rank_shift=max(shifts, default=0),
        mean_rank_shift=_mean(shifts),
        max_overcount=max(over, default=0),
        mean_overcount=_mean(over),
        mean_relative_error=_mean(relative),
        bound_coverage=_mean([error <= error_bound for error in errors]) if errors else 1.0,
        below_truth=sum(error < 0 for error in errors),
    )


def _as_counts(exact: pa.Table | Mapping[str, int]) -> dict[str, int]:
    if isinstance(exact, Mapping):
        return dict(exact)
    return dict(zip(exact["item_id"].to_pylist(), exact["count"].to_pylist(), strict=True))


def _missed(first: Sequence[tuple[str, int]], right: set[str], unfilled: int) -> tuple[str, ...]:
    """The absent items of the exact list's places, best first; of a tie only as many as places stayed unfilled."""
    return tuple(item for item, _ in first if item not in right)[:unfilled]


def _rank_shifts(entries: Sequence[tuple[str, int]], order: Sequence[tuple[str, int]]) -> list[int]:
    """How far each served entry that exists stands from the places of its exact tie."""
    first = dict(zip([i for i, _ in order], ranks([c for _, c in order], "competition"), strict=True))
    sizes: dict[int, int] = {}
    for rank in first.values():
        sizes[rank] = sizes.get(rank, 0) + 1
    shifts = []
    for position, (item, _) in enumerate(entries, 1):
        if item in first:
            start, end = first[item], first[item] + sizes[first[item]] - 1
            shifts.append(max(start - position, position - end, 0))
    return shifts


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
