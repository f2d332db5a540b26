"""What the speed layer knows of one bucket: exact pairs while they are small, then a sketch."""

from typing import Final

import numpy as np
import pyarrow as pa

from daybreak.settings import WindowTarget
from streaming.sketches.candidates import Candidates, best
from streaming.sketches.count_min import CountMinSketch, Counts, Hashes, depth_for, sizing, width_for

PAIR_BYTES: Final = 24
"""Hash, count and slots of one pair; its id comes on top."""


class Pairs:
    """Exact (item, weight) pairs, kept by the 64-bit hash of the id, in order of first occurrence.

    Two of n ids share a hash with probability n^2 / 2^65: 3e-8 for a million. They would be counted as one.
    """

    def __init__(self) -> None:
        self._slots = np.full(256, -1, np.int32)
        self._keys: Hashes = np.empty(128, np.uint64)
        self._counts: Counts = np.empty(128, np.int64)
        self._used = 0
        self._ids: list[pa.Array] = []
        self._id_bytes = 0

    def __len__(self) -> int:
        return self._used

    @property
    def memory_bytes(self) -> int:
        return self._used * PAIR_BYTES + self._id_bytes

    @property
    def hashes(self) -> Hashes:
        return self._keys[: self._used]

    @property
    def counts(self) -> Counts:
        return self._counts[: self._used]

    @property
    def ids(self) -> pa.Array:
        if len(self._ids) != 1:
            self._ids = [pa.concat_arrays(self._ids) if self._ids else pa.array([], pa.string())]
        return self._ids[0]

    def add(self, ids: pa.Array, codes: Counts, hashes: Hashes, weights: Counts) -> None:
        """Add weights to the items `ids[codes]`, whose hashes are given."""
        from streaming.sketches import kernels

        self._make_room(len(hashes))
        fresh = np.empty(len(hashes), np.bool_)
        before = self._used
        self._used = kernels.insert(self._slots, self._keys, self._counts, self._used, hashes, weights, fresh)
        if self._used > before:
            named = ids.take(pa.array(codes[fresh]))
            self._ids.append(named)
            self._id_bytes += named.nbytes

    def _make_room(self, more: int) -> None:
        from streaming.sketches import kernels

        room = len(self._keys)
        if self._used + more <= room:
            return
        while room < self._used + more:
            room *= 2
        used = self._used
        keys, counts = self._keys[:used], self._counts[:used]
        self._slots = np.full(2 * room, -1, np.int32)
        self._keys, self._counts = np.empty(room, np.uint64), np.empty(room, np.int64)
        kernels.insert(self._slots, self._keys, self._counts, 0, keys, counts, np.empty(used, np.bool_))


class BucketState:
    """The counts of one bucket; `provenance` says whether they are exact `pairs` or sketch `cells`."""

    def __init__(
        self,
        target: WindowTarget,
        *,
        confidence: float,
        seed: int,
        list_depth: int,
        candidate_factor: int = 4,
        force_cells: bool = False,
    ) -> None:
        self._shape = (width_for(target.relative_error), depth_for(confidence), seed)
        self.relative_error = target.relative_error
        self.list_depth = list_depth
        self.events_total = 0
        self.total_weight = 0
        self.late: CountMinSketch | None = None
        self.late_events = 0
        self._candidates = Candidates(candidate_factor * list_depth)
        self._pairs: Pairs | None = None if force_cells else Pairs()
        self._sketch: CountMinSketch | None = CountMinSketch(*self._shape) if force_cells else None

    @property
    def provenance(self) -> str:
        return "cells" if self._pairs is None else "pairs"

    @property
    def items_total(self) -> int | None:
        """How many items occurred; not known of cells."""
        return None if self._pairs is None else len(self._pairs)

    @property
    def error_bound(self) -> float:
        """relative_error x total_weight."""
        return self.relative_error * self.total_weight

    @property
    def memory_bytes(self) -> int:
        counted = self._sketch.memory_bytes + self._candidates.memory_bytes if self._sketch else 0
        pairs = self._pairs.memory_bytes if self._pairs else 0
        return counted + pairs + (self.late.memory_bytes if self.late else 0)

    def add(self, ids: pa.Array, codes: Counts, hashes: Hashes, weights: Counts, events: int) -> None:
        """Count the items `ids[codes]`, each given once, with its hash and the sum of its weights."""
        self.events_total += events
        self.total_weight += int(weights.sum())
        if self._pairs is not None:
            self._pairs.add(ids, codes, hashes, weights)
            width, depth, _ = self._shape
            if self._pairs.memory_bytes >= sizing(depth, width):
                self._turn_to_cells(self._pairs)
            return
        assert self._sketch is not None
        self._sketch.update(hashes, weights)
        self._offer(ids, codes, hashes, self._sketch)

    def add_late(self, hashes: Hashes, weights: Counts, events: int) -> None:
        """Count events that came after the grace, beside the bucket and not in it."""
        if self.late is None:
            self.late = CountMinSketch(*self._shape)
        self.late.update(hashes, weights)
        self.late_events += events

    def entries(self) -> list[tuple[str, int]]:
        """The best `list_depth` items with their present counts or estimates, in the total order."""
        if self._pairs is not None:
            ids, counts = best(self._pairs.ids, self._pairs.counts, self.list_depth)
            return list(zip(ids.to_pylist(), counts.tolist(), strict=True))
        assert self._sketch is not None
        self._candidates.restate(self._sketch.estimate(self._candidates.hashes))
        return self._candidates.top(self.list_depth)

    def sketch(self) -> CountMinSketch:
        """The bucket's sketch; of pairs, the one that they would have filled."""
        if self._sketch is not None:
            return self._sketch
        assert self._pairs is not None
        sketch = CountMinSketch(*self._shape)
        sketch.update(self._pairs.hashes, self._pairs.counts)
        return sketch

    def _turn_to_cells(self, pairs: Pairs) -> None:
        self._sketch = self.sketch()
        self._pairs = None
        self._candidates.offer(pairs.ids, self._sketch.estimate(pairs.hashes), pairs.hashes)

    def _offer(self, ids: pa.Array, codes: Counts, hashes: Hashes, sketch: CountMinSketch) -> None:
        estimates = sketch.estimate(hashes)
        least = self._candidates.threshold
        worth = np.flatnonzero(estimates >= least)
        if len(worth):
            self._candidates.offer(ids.take(pa.array(codes[worth])), estimates[worth], hashes[worth])
