# mypy: disable-error-code="untyped-decorator"
"""Compiled inner loops of the speed layer. Import it inside functions: numba takes half a second to load.

Each loop has a plain numpy or Python twin in the tests, which is the oracle for it.
"""

from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

BLOCK = 4096
"""Ids whose cells are located before any is touched, so that the cache misses of a row overlap."""

PRIME_1 = np.uint64(0x9E3779B185EBCA87)
PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
PRIME_3 = np.uint64(0x165667B19E3779F9)
PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
PRIME_5 = np.uint64(0x27D4EB2F165667C5)
SEED = np.uint64(42)


def _loader(kind: Any) -> Any:
    """An unaligned little-endian read of one `kind` at a byte index, widened to 64 bits."""

    @intrinsic
    def load(_typing: Any, data: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            where = cgutils.pointer_add(builder, array.data, args[1])
            whole = context.get_value_type(kind)
            value = builder.load(builder.bitcast(where, whole.as_pointer()), align=1)
            return builder.zext(value, context.get_value_type(types.uint64)) if kind.bitwidth < 64 else value

        return types.uint64(data, types.intp), generate

    return load


_load64 = _loader(types.uint64)
_load32 = _loader(types.uint32)


@numba.njit(inline="always")
def _rotate(x: Any, left: Any) -> Any:
    return (x << np.uint64(left)) | (x >> np.uint64(64 - left))


@numba.njit(inline="always")
def _round(lane: Any, word: Any) -> Any:
    return _rotate(lane + word * PRIME_2, 31) * PRIME_1


@numba.njit(inline="always")
def _merge(result: Any, lane: Any) -> Any:
    return (result ^ _round(np.uint64(0), lane)) * PRIME_1 + PRIME_4


@numba.njit(cache=True, nogil=True)
def hash_strings(data: Any, offsets: Any, out: Any) -> None:
    """xxh64, seed 42, of each string `data[offsets[i]:offsets[i + 1]]` (uint8) into `out` (uint64)."""
    for i in range(len(out)):
        at, end = np.intp(offsets[i]), np.intp(offsets[i + 1])
        length = end - at
        if length >= 32:
            a, b = SEED + PRIME_1 + PRIME_2, SEED + PRIME_2
            c, d = SEED, SEED - PRIME_1
            while at + 32 <= end:
                a = _round(a, _load64(data, at))
                b = _round(b, _load64(data, at + 8))
                c = _round(c, _load64(data, at + 16))
                d = _round(d, _load64(data, at + 24))
                at += 32
            h = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
            h = _merge(_merge(_merge(_merge(h, a), b), c), d)
        else:
            h = SEED + PRIME_5
        h += np.uint64(length)
        while at + 8 <= end:
            h = _rotate(h ^ _round(np.uint64(0), _load64(data, at)), 27) * PRIME_1 + PRIME_4
            at += 8
        if at + 4 <= end:
            h = _rotate(h ^ (_load32(data, at) * PRIME_1), 23) * PRIME_2 + PRIME_3
            at += 4
        while at < end:
            h = _rotate(h ^ (np.uint64(data[at]) * PRIME_5), 11) * PRIME_1
            at += 1
        h = (h ^ (h >> np.uint64(33))) * PRIME_2
        h = (h ^ (h >> np.uint64(29))) * PRIME_3
        out[i] = h ^ (h >> np.uint64(32))


@numba.njit(inline="always")
def _place(h: Any, constant: Any, width: Any) -> Any:
    return (((h * constant) >> np.uint64(32)) * width) >> np.uint64(32)


@numba.njit(cache=True, nogil=True)
def add(cells: Any, constants: Any, hashes: Any, weights: Any) -> None:
    """Add each weight to the hash's cell of every row of `cells` (depth, width)."""
    depth, width = cells.shape[0], np.uint64(cells.shape[1])
    for start in range(0, len(hashes), BLOCK):
        end = min(start + BLOCK, len(hashes))
        for row in range(depth):
            line, constant = cells[row], constants[row]
            for i in range(start, end):
                line[_place(hashes[i], constant, width)] += weights[i]


@numba.njit(cache=True, nogil=True)
def add_ones(cells: Any, constants: Any, hashes: Any) -> None:
    """`add` with every weight 1."""
    depth, width = cells.shape[0], np.uint64(cells.shape[1])
    for start in range(0, len(hashes), BLOCK):
        end = min(start + BLOCK, len(hashes))
        for row in range(depth):
            line, constant = cells[row], constants[row]
            for i in range(start, end):
                line[_place(hashes[i], constant, width)] += 1


@numba.njit(cache=True, nogil=True)
def least(cells: Any, constants: Any, hashes: Any, out: Any) -> None:
    """The smallest of each hash's cells into `out` (int64)."""
    depth, width = cells.shape[0], np.uint64(cells.shape[1])
    for start in range(0, len(hashes), BLOCK):
        end = min(start + BLOCK, len(hashes))
        for row in range(depth):
            line, constant = cells[row], constants[row]
            for i in range(start, end):
                value = line[_place(hashes[i], constant, width)]
                if row == 0 or value < out[i]:
                    out[i] = value


@numba.njit(cache=True, nogil=True)
def group(buckets: Any, codes: Any, weights: Any, bucket_count: int, code_count: int) -> Any:
    """Sum the weights per (bucket, code), in linear time.

    `buckets` are 0 .. bucket_count - 1. Returns (codes, sums, starts, events): the pairs of bucket b are
    `codes[starts[b]:starts[b + 1]]` with their sums, and it had `events[b]` rows.
    """
    n = len(codes)
    events = np.zeros(bucket_count, np.int64)
    for i in range(n):
        events[buckets[i]] += 1
    place = np.zeros(bucket_count + 1, np.int64)
    for b in range(bucket_count):
        place[b + 1] = place[b] + events[b]
    order = np.empty(n, np.int64)
    cursor = place.copy()
    for i in range(n):
        order[cursor[buckets[i]]] = i
        cursor[buckets[i]] += 1
    home = np.full(code_count, -1, np.int64)
    out_codes, out_sums = np.empty(n, np.int64), np.empty(n, np.int64)
    starts = np.zeros(bucket_count + 1, np.int64)
    filled = 0
    for b in range(bucket_count):
        first = filled
        for j in range(place[b], place[b + 1]):
            i = order[j]
            code = codes[i]
            at = home[code]
            if at < first:
                at = filled
                home[code] = at
                out_codes[at] = code
                out_sums[at] = 0
                filled += 1
            out_sums[at] += weights[i]
        starts[b + 1] = filled
    return out_codes[:filled], out_sums[:filled], starts, events


@numba.njit(cache=True, nogil=True)
def insert(slots: Any, keys: Any, counts: Any, used: int, hashes: Any, weights: Any, fresh: Any) -> int:
    """Add weights to a hash table kept in order of insertion; `fresh[i]` says whether hash i was new.

    `slots` (int32, a power of two long, -1 is free) point into `keys` and `counts`, which must have room.
    Returns how many keys there are now.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(len(hashes)):
        slot = hashes[i] & mask
        while slots[slot] >= 0 and keys[slots[slot]] != hashes[i]:
            slot = (slot + np.uint64(1)) & mask
        at = slots[slot]
        fresh[i] = at < 0
        if at < 0:
            at = used
            slots[slot] = at
            keys[at] = hashes[i]
            counts[at] = 0
            used += 1
        counts[at] += weights[i]
    return used
