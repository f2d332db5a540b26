"""The speed layer's worker: accepted events in, provisional lists out.

An event's class is that of its day: `late` when the day's grace was over (it is then counted nowhere but in
late sketches), `ahead` when its jump was contradicted, else `counted`. An event that is in time for its day
but not for its minute or hour counts in the day and goes to the late sketch of those it missed. So, always:
counted + late + ahead + refused = read.
"""

import json
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from daybreak.clock import Clock
from daybreak.errors import UsageError
from daybreak.serving.lists import Meta, ServedList, content_hash
from daybreak.settings import Stream, WindowTarget
from daybreak.windows import Bucket, Window, from_micros
from streaming.counting.bucket_state import BucketState
from streaming.counting.watermark import Admitted, Watermark, micros_of
from streaming.sketches.count_min import CountMinSketch, Counts, hash_ids

MICROSECOND: Final = timedelta(microseconds=1)
COLUMNS: Final = ["item_id", "occurred_at", "weight"]
PENDING_LATE: Final = 64
"""Closed buckets whose late events may wait for publication."""


class Publisher(Protocol):
    """What a worker needs of `daybreak.serving.lists.Lists`."""

    def publish_provisional(
        self,
        bucket: Bucket,
        entries: Sequence[tuple[str, int]],
        meta: Meta,
        sketch: bytes | None = None,
        late_sketch: bytes | None = None,
    ) -> bool: ...

    def read(self, bucket: Bucket) -> ServedList | None: ...

    def read_sketch(self, bucket: Bucket) -> tuple[bytes | None, bytes | None]: ...


@dataclass
class Accounting:
    """Where every event read went; of those `held`, it is not known yet (0 once the worker is closed)."""

    read: int = 0
    counted: int = 0
    late: int = 0
    ahead: int = 0
    refused: int = 0
    held: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


class Worker:
    """Counts events into minute, hour and day buckets by event time, and publishes their lists."""

    def __init__(self, settings: Stream, publisher: Publisher, clock: Clock, *, run_id: str | None = None) -> None:
        self._settings = settings
        self._publisher = publisher
        self._clock = clock
        self._run_id = run_id or f"stream-{uuid.uuid4().hex[:12]}"
        self._watermark = Watermark(settings.max_jump // MICROSECOND)
        self._targets: dict[Window, WindowTarget] = {w: getattr(settings, w.value) for w in Window}
        self._graces = {window: target.grace // MICROSECOND for window, target in self._targets.items()}
        self._live: dict[Bucket, BucketState] = {}
        self._missed: dict[Bucket, BucketState] = {}
        self._changed: set[Bucket] = set()
        self._refused_before: dict[Bucket, int] = {}
        self._ahead: Counter[Bucket] = Counter()
        self._published_at: datetime | None = None
        self.accounting = Accounting()

    def feed(self, accepted: pa.Table, refused: int = 0) -> None:
        """Count a batch of accepted events; close, and publish, what it ends.

        Raises:
            UsageError: live buckets that take more than `stream.memory_limit`.
        """
        self.accounting.read += accepted.num_rows + refused
        self.accounting.refused += refused
        self._count(self._watermark.admit(accepted.select(COLUMNS)))
        self._close_ended()
        self.publish()

    def publish(self, force: bool = False) -> None:
        """Publish every live bucket that changed, when `publish_every` has passed or `force` is given."""
        now = self._clock()
        if self._published_at is None:
            self._published_at = now
        if not force and now - self._published_at < self._settings.publish_every:
            return
        self._published_at = now
        for bucket in sorted(self._changed):
            self._publish(bucket, self._live[bucket], with_sketch=False)
        self._changed.clear()
        self._publish_missed()

    def close(self) -> None:
        """The stream has ended: count what is held, publish every live bucket with its sketches."""
        self._count(self._watermark.confirm())
        for bucket in sorted(self._live):
            self._end(bucket)
        self._publish_missed()

    def _count(self, admitted: Sequence[Admitted]) -> None:
        for rows in self._watermark.ahead:
            self.accounting.ahead += rows.num_rows
            for micros in micros_of(rows).tolist():
                for window in Window:
                    self._ahead[Bucket(window, from_micros(micros - micros % window.microseconds))] += 1
        self._watermark.ahead.clear()
        self.accounting.held = self._watermark.held_count
        if admitted:
            rows = pa.concat_tables([part.rows for part in admitted])
            self._count_rows(rows, np.concatenate([part.seen for part in admitted]))

    def _count_rows(self, rows: pa.Table, seen: npt.NDArray[np.int64]) -> None:
        encoded = rows["item_id"].combine_chunks().dictionary_encode()
        batch = _Batch(encoded.dictionary, hash_ids(encoded.dictionary))
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        weights = rows["weight"].to_numpy().astype(np.int64, copy=False)
        occurred = micros_of(rows)
        for window in Window:
            places = occurred // window.microseconds
            late = seen >= (places + 1) * window.microseconds + self._graces[window]
            late_count = int(np.count_nonzero(late))
            if late_count:
                kept = ~late
                self._add(batch, window, places[kept], codes[kept], weights[kept])
                self._add(batch, window, places[late], codes[late], weights[late], late=True)
            else:
                self._add(batch, window, places, codes, weights)
            if window is Window.DAY:
                self.accounting.late += late_count
                self.accounting.counted += rows.num_rows - late_count

    def _add(
        self,
        batch: "_Batch",
        window: Window,
        places: Counts,
        codes: Counts,
        weights: Counts,
        late: bool = False,
    ) -> None:
        from streaming.sketches import kernels

        if not len(places):
            return
        first = int(places.min())
        span = int(places.max()) - first + 1
        if span <= len(places) + 1440:
            starts_at, places = np.arange(first, first + span), places - first
        else:
            starts_at, places = np.unique(places, return_inverse=True)
        grouped, sums, starts, events = kernels.group(places, codes, weights, len(starts_at), len(batch.ids))
        for at in np.flatnonzero(events).tolist():
            part = slice(starts[at], starts[at + 1])
            bucket = Bucket(window, from_micros(int(starts_at[at]) * window.microseconds))
            hashes = batch.hashes[grouped[part]]
            if late:
                self._missing(bucket).add_late(hashes, sums[part], int(events[at]))
                continue
            self._state(bucket).add(batch.ids, grouped[part], hashes, sums[part], int(events[at]))
            self._changed.add(bucket)

    def _state(self, bucket: Bucket) -> BucketState:
        if bucket not in self._live:
            taken = sum(state.memory_bytes for state in self._live.values()) if len(self._live) % 16 == 0 else 0
            if taken > self._settings.memory_limit:
                raise UsageError(
                    f"{len(self._live)} live buckets take {taken:,} bytes, above stream.memory_limit = "
                    f"{self._settings.memory_limit:,}; raise it, or the windows' relative_error"
                )
            self._live[bucket] = self._new(bucket)
            self._refused_before[bucket] = self.accounting.refused
        return self._live[bucket]

    def _missing(self, bucket: Bucket) -> BucketState:
        """Where late events of a bucket are kept: beside it while it lives, else until it is published."""
        if bucket in self._live:
            self._changed.add(bucket)
            return self._live[bucket]
        if bucket not in self._missed:
            if len(self._missed) >= PENDING_LATE:
                self._publish_missed()
            self._missed[bucket] = self._new(bucket)
        return self._missed[bucket]

    def _new(self, bucket: Bucket) -> BucketState:
        return BucketState(
            self._targets[bucket.window],
            confidence=self._settings.confidence,
            seed=self._settings.seed,
            list_depth=self._settings.list_depth,
            candidate_factor=self._settings.candidate_factor,
            force_cells=self._settings.force_cells,
        )

    def _close_ended(self) -> None:
        if self._watermark.at is None:
            return
        passed = from_micros(self._watermark.at)
        for bucket in sorted(self._live):
            if bucket.end + self._targets[bucket.window].grace <= passed:
                self._end(bucket)

    def _end(self, bucket: Bucket) -> None:
        self._publish(bucket, self._live[bucket], with_sketch=True)
        del self._live[bucket]
        self._changed.discard(bucket)
        self._refused_before.pop(bucket, None)
        self._ahead.pop(bucket, None)

    def _publish(self, bucket: Bucket, state: BucketState, *, with_sketch: bool) -> None:
        entries = state.entries()
        refused = self.accounting.refused - self._refused_before.get(bucket, 0)
        accounting = {"counted": state.events_total, "late": state.late_events}
        accounting |= {"ahead": self._ahead[bucket], "refused": refused}
        self._publisher.publish_provisional(
            bucket,
            entries,
            self._meta(bucket, state, entries, accounting),
            state.sketch().serialize() if with_sketch else None,
            state.late.serialize() if with_sketch and state.late else None,
        )

    def _meta(
        self,
        bucket: Bucket,
        state: BucketState,
        entries: Sequence[tuple[str, int]],
        accounting: dict[str, int],
    ) -> Meta:
        passed = from_micros(self._watermark.at) if self._watermark.at is not None else bucket.start
        return Meta(
            state="provisional",
            generation=0,
            as_of=self._clock(),
            complete_through=min(max(passed, bucket.start), bucket.end),
            run_id=self._run_id,
            lake_version=-1,
            events_total=state.events_total,
            items_total=state.items_total,
            total_weight=state.total_weight,
            depth=self._settings.list_depth,
            error_bound=state.error_bound,
            confidence=self._settings.confidence,
            content_hash=content_hash(entries),
            provenance="pairs" if state.provenance == "pairs" else "cells",
            accounting=json.dumps(accounting),
        )

    def _publish_missed(self) -> None:
        for bucket in sorted(self._missed):
            self._add_to_served(bucket, self._missed[bucket])
        self._missed.clear()

    def _add_to_served(self, bucket: Bucket, missed: BucketState) -> None:
        """Publish a closed bucket again, with the late events that came since; Redis holds the rest of it."""
        served = self._publisher.read(bucket)
        if served is None:
            self._publish(bucket, missed, with_sketch=True)
            return
        if served.meta.state == "exact":
            return
        assert missed.late is not None
        sketch, late = self._publisher.read_sketch(bucket)
        accounting = json.loads(served.meta.accounting or "{}")
        accounting["late"] = accounting.get("late", 0) + missed.late_events
        fields = asdict(served.meta) | {"accounting": json.dumps(accounting), "as_of": self._clock()}
        merged = _joined(missed.late, sketch, late)
        self._publisher.publish_provisional(
            bucket,
            served.entries,
            Meta(**fields),
            sketch if merged else None,
            merged.serialize() if merged else None,
        )


@dataclass(frozen=True)
class _Batch:
    """The distinct ids of a batch and their hashes."""

    ids: pa.Array
    hashes: npt.NDArray[np.uint64]


def _joined(late: CountMinSketch, sketch: bytes | None, before: bytes | None) -> CountMinSketch | None:
    """All late events of a bucket; None where its sketch is missing or of other settings: no evidence."""
    if sketch is None:
        return None
    counted = CountMinSketch.deserialize(sketch)
    if (counted.width, counted.depth, counted.seed) != (late.width, late.depth, late.seed):
        return None
    if before is not None:
        late.merge(CountMinSketch.deserialize(before))
    return late
