"""The few items of a bucket that may be in its list: a bounded set beside a sketch that forgets names."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from daybreak.errors import UsageError
from streaming.sketches.count_min import Counts, Hashes, hash_ids

ID_BYTES = 64
"""What a candidate's id and its two numbers are taken to weigh in memory."""


def best(ids: pa.Array, counts: Counts, k: int) -> tuple[pa.Array, Counts]:
    """The first `k` in the total order: count descending, then id by UTF-8 bytes descending."""
    table = pa.table({"id": ids, "count": counts})
    keys = [("count", "descending"), ("id", "descending")]
    if 4 * k < len(ids):
        least = np.partition(counts, len(counts) - k)[len(counts) - k]
        table = table.filter(pa.array(counts >= least))
    table = table.take(pc.sort_indices(table, sort_keys=keys).slice(0, k))
    return table["id"].combine_chunks(), table["count"].to_numpy().astype(np.int64, copy=False)


class Candidates:
    """At most `capacity` items, those with the highest estimates offered so far.

    An item that falls out comes back when it is offered again with an estimate that suffices; since
    estimates only grow, an item whose last estimate is among the highest is always kept.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise UsageError(f"a capacity of {capacity} candidates is refused; give at least 1")
        self.capacity = capacity
        self._ids: pa.Array = pa.array([], pa.string())
        self._hashes: Hashes = np.empty(0, np.uint64)
        self._estimates: Counts = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> pa.Array:
        return self._ids

    @property
    def hashes(self) -> Hashes:
        """Of `ids`, in their order."""
        return self._hashes

    @property
    def memory_bytes(self) -> int:
        return self.capacity * ID_BYTES

    @property
    def threshold(self) -> int:
        """An estimate below this cannot enter."""
        return int(self._estimates.min()) if len(self) == self.capacity else 0

    def offer(
        self, ids: pa.Array | Sequence[str], estimates: Counts | Sequence[int], hashes: Hashes | None = None
    ) -> None:
        """Consider items, each with its present estimate, which replaces an earlier one."""
        ids = ids if isinstance(ids, pa.Array) else pa.array(ids, pa.string())
        new = np.asarray(estimates, np.int64)
        hashes = hash_ids(ids) if hashes is None else hashes
        worth = new >= self.threshold
        if not worth.all():
            ids, new, hashes = ids.filter(pa.array(worth)), new[worth], hashes[worth]
        if not len(new):
            return
        every = np.concatenate([hashes[::-1], self._hashes])
        _, first = np.unique(every, return_index=True)  # the newest of each: reversed, it comes first
        added = len(new)
        kept = np.where(first < added, added - 1 - first, first)
        joined = pa.concat_arrays([ids.cast(pa.string()), self._ids])
        self._keep(joined.take(pa.array(kept)), np.concatenate([new, self._estimates])[kept], every[first])

    def restate(self, estimates: Counts) -> None:
        """Replace the estimates of `ids`, in their order, by present ones."""
        self._estimates = np.asarray(estimates, np.int64)

    def top(self, k: int) -> list[tuple[str, int]]:
        """The first `k` in the total order, by the estimates as last stated."""
        ids, counts = best(self._ids, self._estimates, k)
        return list(zip(ids.to_pylist(), counts.tolist(), strict=True))

    def _keep(self, ids: pa.Array, estimates: Counts, hashes: Hashes) -> None:
        if len(ids) > self.capacity:
            table = pa.table({"id": ids, "estimate": estimates})
            order = pc.sort_indices(table, sort_keys=[("estimate", "descending"), ("id", "descending")])
            kept = order.slice(0, self.capacity).to_numpy()
            ids, estimates, hashes = ids.take(pa.array(kept)), estimates[kept], hashes[kept]
        self._ids, self._estimates, self._hashes = ids, estimates, hashes
