"""Which events go to which bucket, and which of them come too late for it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from daybreak.windows import Bucket, Window, from_micros
from streaming.counting.watermark import Admitted, micros_of
from streaming.sketches.count_min import Counts, Hashes, hash_ids

DENSE_SPAN = 1440
"""Buckets without an event that a batch may span before only those that have one are numbered."""


@dataclass(frozen=True)
class Group:
    """What a batch holds for one bucket: each item once, with the sum of its weights."""

    bucket: Bucket
    is_late: bool
    """Whether the bucket's grace was over when these events came."""
    ids: pa.Array
    """The distinct ids of the whole batch."""
    codes: Counts
    """The group's items, as positions in `ids`."""
    hashes: Hashes
    weights: Counts
    event_count: int


@dataclass(frozen=True)
class _Batch:
    """The columns of a batch; `codes` are positions in its distinct `ids`, whose `hashes` are taken once."""

    ids: pa.Array
    hashes: Hashes
    codes: Counts
    weights: Counts
    occurred: Counts

    def where(self, chosen: npt.NDArray[np.bool_]) -> "_Batch":
        return _Batch(self.ids, self.hashes, self.codes[chosen], self.weights[chosen], self.occurred[chosen])


def group_by_bucket(admitted: Sequence[Admitted], graces: Mapping[Window, int]) -> Iterator[Group]:
    """Each bucket's part of the rows, window by window, in time before late.

    A row is late for a bucket when the watermark that it met had passed the bucket's end by the window's grace, which
    is given in microseconds. Every row is in one group of each window.
    """
    if not admitted:
        return
    batch = _batch_of(pa.concat_tables([part.rows for part in admitted]))
    seen = np.concatenate([part.seen for part in admitted])
    for window in Window:
        ends = (batch.occurred // window.microseconds + 1) * window.microseconds
        late = seen >= ends + graces[window]
        if not late.any():
            yield from _groups(batch, window, is_late=False)
            continue
        yield from _groups(batch.where(~late), window, is_late=False)
        yield from _groups(batch.where(late), window, is_late=True)


def _batch_of(rows: pa.Table) -> _Batch:
    encoded = rows["item_id"].combine_chunks().dictionary_encode()
    return _Batch(
        ids=encoded.dictionary,
        hashes=hash_ids(encoded.dictionary),
        codes=encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64),
        weights=rows["weight"].to_numpy().astype(np.int64, copy=False),
        occurred=micros_of(rows),
    )


def _groups(batch: _Batch, window: Window, *, is_late: bool) -> Iterator[Group]:
    from streaming.sketches import kernels

    if not len(batch.occurred):
        return
    numbers, starts_at = _numbered(batch.occurred // window.microseconds)
    codes, sums, starts, events = kernels.group(numbers, batch.codes, batch.weights, len(starts_at), len(batch.ids))
    for at in np.flatnonzero(events).tolist():
        part = slice(starts[at], starts[at + 1])
        bucket = Bucket(window, from_micros(int(starts_at[at]) * window.microseconds))
        items = codes[part]
        yield Group(bucket, is_late, batch.ids, items, batch.hashes[items], sums[part], int(events[at]))


def _numbered(places: Counts) -> tuple[Counts, Counts]:
    """The places numbered from 0, and the place of each number."""
    first = int(places.min())
    span = int(places.max()) - first + 1
    if span <= len(places) + DENSE_SPAN:
        return places - first, np.arange(first, first + span)
    starts_at, numbers = np.unique(places, return_inverse=True)
    return numbers, starts_at
