"""Count-Min sketch: a fixed number of cells that answer how often any item occurred, never too low.

Cormode and Muthukrishnan (2005). Guarantees, each held by a test in `tests/laws/test_sketch.py`:

- an estimate is never below the true count, for weights >= 0 and as long as nothing was subtracted;
- with probability >= `confidence`, per item, it is at most `error_bound` above it;
- it is linear: merging two sketches equals seeing both streams, in any order.
"""

import hashlib
import math
import struct
from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import zstandard

from daybreak.errors import CheckFailedError, UsageError

Hashes = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]

MAGIC: Final = b"DBCM"
VERSION: Final = 1
HEADER: Final = struct.Struct("<4sHHQQQ16s")
CELL_BYTES: Final = 8
WEIGHT_LIMIT: Final = 2**63 - 1
MASK: Final = 2**64 - 1


class SketchMismatchError(UsageError):
    """Two sketches of different shape or seed cannot be combined."""


class SketchDamagedError(CheckFailedError):
    """Bytes that are not a sketch, or no longer the one that was written."""


def width_for(relative_error: float) -> int:
    """Cells per row: ceil(e / relative_error).

    >>> [width_for(error) for error in (0.2, 0.1, 0.05, 0.01)]
    [14, 28, 55, 272]
    """
    if not 0 < relative_error < 1:
        raise UsageError(f"a relative error of {relative_error} is refused; give one between 0 and 1")
    return math.ceil(math.e / relative_error)


def depth_for(confidence: float) -> int:
    """Rows: ceil(ln(1 / (1 - confidence))).

    >>> depth_for(0.99)
    5
    """
    if not 0 < confidence < 1:
        raise UsageError(f"a confidence of {confidence} is refused; give one between 0 and 1")
    return max(1, math.ceil(-math.log(round(1 - confidence, 15))))


def sizing(rows: int, width: int, cell_bytes: int = CELL_BYTES) -> int:
    """Bytes that the cells of a sketch take.

    >>> sizing(4, 1_000_000, 4), sizing(4, 2_000_000, 4)
    (16000000, 32000000)
    """
    return rows * width * cell_bytes


def hash_ids(ids: pa.Array) -> Hashes:
    """xxh64 with seed 42 of each id's UTF-8 bytes: the same 64 bits as Spark's `xxhash64`.

    Raises:
        UsageError: ids that are not strings, or a null among them.
    """
    from streaming.sketches import kernels

    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    wide = pa.types.is_large_string(ids.type)
    if not (wide or pa.types.is_string(ids.type)) or ids.null_count:
        raise UsageError(
            f"ids of type {ids.type} with {ids.null_count} nulls cannot be hashed; give strings, none null"
        )
    out = np.empty(len(ids), np.uint64)
    if not len(ids):
        return out
    _, offsets, data = ids.buffers()
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[ids.offset : ids.offset + len(ids) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    kernels.hash_strings(text, ends, out)
    return out


def row_constants(seed: int, depth: int) -> Hashes:
    """One odd 64-bit multiplier per row, drawn from `seed` by splitmix64."""
    state, constants = seed & MASK, []
    for _ in range(depth):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        x = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        constants.append((x ^ (x >> 31)) | 1)
    return np.array(constants, np.uint64)


class CountMinSketch:
    """`depth` rows of `width` 64-bit cells; row r keeps hash h in cell `(h * a_r >> 32) * width >> 32`."""

    def __init__(self, width: int, depth: int, seed: int = 42) -> None:
        if not (1 <= width < 2**32 and 1 <= depth < 2**16 and 0 <= seed <= MASK):
            raise UsageError(
                f"a sketch of {width} x {depth} cells with seed {seed} is refused; give a width from 1 to "
                "2^32 - 1, a depth from 1 to 65,535 and a seed from 0 to 2^64 - 1"
            )
        self.seed = seed
        self.total_weight = 0
        self._cells: Counts = np.zeros((depth, width), np.int64)
        self._constants = row_constants(seed, depth)

    @classmethod
    def from_error(cls, relative_error: float, confidence: float, seed: int = 42) -> Self:
        """The smallest sketch with this guarantee."""
        return cls(width_for(relative_error), depth_for(confidence), seed)

    @property
    def width(self) -> int:
        return int(self._cells.shape[1])

    @property
    def depth(self) -> int:
        return int(self._cells.shape[0])

    @property
    def relative_error(self) -> float:
        """e / width."""
        return math.e / self.width

    @property
    def confidence(self) -> float:
        """1 - e^-depth."""
        return 1 - math.exp(-self.depth)

    @property
    def error_bound(self) -> float:
        """What an estimate exceeds the true count by at most, with probability >= `confidence`."""
        return self.relative_error * self.total_weight

    @property
    def memory_bytes(self) -> int:
        return self._cells.nbytes

    @property
    def cells(self) -> Counts:
        """The cells (depth, width), read-only."""
        view = self._cells.view()
        view.flags.writeable = False
        return view

    def update(self, hashes: Hashes, weights: Counts | None = None) -> None:
        """Count each hash once, or with its weight.

        Raises:
            UsageError: lengths that differ, a negative weight, or a total that passes 2^63 - 1.
        """
        from streaming.sketches import kernels

        hashes = np.ascontiguousarray(hashes, np.uint64)
        if weights is None:
            self._grow(len(hashes))
            kernels.add_ones(self._cells, self._constants, hashes)
            return
        weights = np.ascontiguousarray(weights, np.int64)
        if len(weights) != len(hashes):
            raise UsageError(f"{len(weights)} weights for {len(hashes)} ids are refused; give one for each")
        if len(weights) and int(weights.min()) < 0:
            raise UsageError(f"the weight {weights.min()} is refused; use subtract() to take counts away")
        self._grow(_exact_sum(weights))
        kernels.add(self._cells, self._constants, hashes, weights)

    def update_ids(self, ids: pa.Array, weights: Counts | None = None) -> None:
        """`update` with ids, which are hashed here."""
        self.update(hash_ids(ids), weights)

    def estimate(self, hashes: Hashes) -> Counts:
        """The estimate of each hash."""
        from streaming.sketches import kernels

        out = np.empty(len(hashes), np.int64)
        kernels.least(self._cells, self._constants, np.ascontiguousarray(hashes, np.uint64), out)
        return out

    def estimate_ids(self, ids: Sequence[str]) -> Counts:
        """The estimate of each id."""
        return self.estimate(hash_ids(pa.array(ids, pa.string())))

    def merge(self, other: "CountMinSketch") -> None:
        """Add what `other` counted."""
        self._require_same(other)
        self._grow(other.total_weight)
        self._cells += other._cells

    def subtract(self, other: "CountMinSketch") -> None:
        """Take away what `other` counted, which must be part of what this one did."""
        self._require_same(other)
        if other.total_weight > self.total_weight or bool((other._cells > self._cells).any()):
            raise SketchMismatchError(
                f"a sketch of weight {other.total_weight} is no part of one of {self.total_weight}; "
                "subtract only what was merged before"
            )
        self.total_weight -= other.total_weight
        self._cells -= other._cells

    def lost_cells(self, upper: "CountMinSketch") -> int:
        """How many cells stand above those of `upper`.

        With this sketch built from exact counts and `upper` from the stream's events, counted and late, any
        such cell proves that the stream lost events.
        """
        self._require_same(upper)
        return int(np.count_nonzero(self._cells > upper._cells))

    def serialize(self) -> bytes:
        """Header (shape, seed, total_weight, version, checksum) and the cells, compressed."""
        body = zstandard.ZstdCompressor(level=1).compress(self._cells.astype("<i8", copy=False).tobytes())
        plain = (VERSION, self.depth, self.width, self.seed, self.total_weight)
        return HEADER.pack(MAGIC, *plain, _checksum(plain, body)) + body

    @classmethod
    def deserialize(cls, data: bytes) -> Self:
        """The sketch that `serialize` wrote.

        Raises:
            SketchDamagedError: anything else.
        """
        if len(data) < HEADER.size or data[:4] != MAGIC:
            raise SketchDamagedError(f"{len(data)} bytes starting {data[:4]!r} are no sketch; stream the day again")
        _, version, depth, width, seed, weight, checksum = HEADER.unpack_from(data)
        body = data[HEADER.size :]
        if version != VERSION:
            raise SketchDamagedError(f"a sketch of format {version} cannot be read here; this reads {VERSION}")
        if _checksum((version, depth, width, seed, weight), body) != checksum:
            raise SketchDamagedError(
                f"the checksum of a sketch of {width} x {depth} cells does not match; stream the day again"
            )
        sketch = cls(width, depth, seed)
        cells = zstandard.ZstdDecompressor().decompress(body, max_output_size=sizing(depth, width))
        sketch._cells[:] = np.frombuffer(cells, "<i8").reshape(depth, width)
        sketch.total_weight = weight
        return sketch

    def _grow(self, weight: int) -> None:
        if self.total_weight + weight > WEIGHT_LIMIT:
            raise UsageError(f"a total weight of {self.total_weight + weight} passes 2^63 - 1; use smaller weights")
        self.total_weight += weight

    def _require_same(self, other: "CountMinSketch") -> None:
        mine, theirs = (self.width, self.depth, self.seed), (other.width, other.depth, other.seed)
        if mine != theirs:
            raise SketchMismatchError(
                f"sketches of (width, depth, seed) {mine} and {theirs} cannot be combined; "
                "build both with the same relative_error, confidence and seed"
            )


def _exact_sum(weights: Counts) -> int:
    if not len(weights) or int(weights.max()) <= WEIGHT_LIMIT // len(weights):
        return int(weights.sum())
    return sum(weights.tolist())


def _checksum(plain: tuple[Any, ...], body: bytes) -> bytes:
    return hashlib.blake2b(struct.pack("<HHQQQ", *plain) + body, digest_size=16).digest()
