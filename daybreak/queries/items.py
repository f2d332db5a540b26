"""Lists and counts of items, answered from Redis or else from the lake.

Reads   Redis                  lists that are served, each with its meta, and sketches of closed buckets
        what `items_in_lake` does
"""

from collections.abc import Sequence
from dataclasses import dataclass

from daybreak.errors import UsageError
from daybreak.queries.items_in_lake import counts_from_lake, list_from_lake
from daybreak.serving.lists import Lists, ServedList
from daybreak.windows import Bucket, Window
from jobs.run.lake import Lake


@dataclass(frozen=True)
class Counts:
    """Counts or estimates by item, and what is known of them."""

    by_item: dict[str, int]
    state: str
    """provisional or exact"""
    error_bound: float


@dataclass(frozen=True)
class Items:
    """All reading of lists of items."""

    lake: Lake
    lists: Lists

    def top(self, bucket: Bucket, k: int) -> ServedList:
        """The list of a bucket: what Redis serves, or for a minute of a corrected day the lake's exact one.

        Raises:
            UsageError: there is none.
        """
        state = self.lists.day_state(bucket.day)
        is_exact = state is not None and state.state == "exact"
        if not (bucket.window is Window.MINUTE and is_exact) and (served := self.lists.read(bucket)):
            return served
        if found := list_from_lake(self.lake, bucket, k):
            return found
        raise UsageError(
            f"no {bucket.window} list for {bucket.start:%Y-%m-%dT%H:%MZ}: stream its events, "
            f"or correct the day with: daybreak nightly --day {bucket.day}"
        )

    def counts(self, bucket: Bucket, items: Sequence[str]) -> Counts:
        """The count of each item in a bucket: the sketch's estimate while it is provisional, exact afterwards.

        Raises:
            UsageError: nothing is counted there, or its sketch is not kept yet.
        """
        served = self.lists.read(bucket)
        if served is None or served.meta.state != "provisional":
            return Counts(counts_from_lake(self.lake, bucket, items), "exact", 0.0)
        sketch, _ = self.lists.read_sketch(bucket)
        if sketch is None:
            raise UsageError(
                f"the sketch of {bucket.label} on {bucket.day} is not kept yet; it is at the bucket's close"
            )
        from streaming.sketches.count_min import CountMinSketch

        estimates = CountMinSketch.deserialize(sketch).estimate_ids(list(items))
        return Counts(dict(zip(items, map(int, estimates), strict=True)), "provisional", served.meta.error_bound)
