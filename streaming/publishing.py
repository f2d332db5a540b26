"""Provisional lists on their way to Redis: what a bucket holds, with its meta and its accounting."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from daybreak.clock import Clock
from daybreak.metrics import BUCKETS_CLOSED, LISTS_FENCED, LISTS_PUBLISHED, Metrics
from daybreak.serving.lists import Meta, ServedList, content_hash
from daybreak.settings import Stream
from daybreak.windows import Bucket, Window, from_micros
from streaming.counting.bucket_state import BucketState
from streaming.counting.watermark import Watermark, micros_of


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


class BucketAccounts:
    """Per bucket, the events that its counts lack: those that were ahead, and the refusals during its life."""

    def __init__(self) -> None:
        self._refused = 0
        self._refused_before: dict[Bucket, int] = {}
        self._ahead: Counter[Bucket] = Counter()

    def add_refused(self, count: int) -> None:
        """Rows that the intake refused; of which bucket they were, nobody knows."""
        self._refused += count

    def add_ahead(self, rows: pa.Table) -> None:
        """Events whose time was not believed."""
        for micros in micros_of(rows).tolist():
            for window in Window:
                self._ahead[Bucket(window, from_micros(micros - micros % window.microseconds))] += 1

    def open(self, bucket: Bucket) -> None:
        """The bucket lives: refusals from now on are in its account."""
        self._refused_before[bucket] = self._refused

    def drop(self, bucket: Bucket) -> None:
        """The bucket was published for the last time."""
        self._refused_before.pop(bucket, None)
        self._ahead.pop(bucket, None)

    def of(self, bucket: Bucket, state: BucketState) -> str:
        """The account of a bucket, as its meta has it."""
        refused = self._refused - self._refused_before.get(bucket, 0)
        found = {"counted": state.events_total, "late": state.late_events}
        return json.dumps(found | {"ahead": self._ahead[bucket], "refused": refused})


class ProvisionalLists:
    """Publishes the states of buckets, and counts what it publishes."""

    def __init__(
        self,
        publisher: Publisher,
        settings: Stream,
        clock: Clock,
        watermark: Watermark,
        metrics: Metrics,
        *,
        run_id: str,
    ) -> None:
        self.publisher = publisher
        self.clock = clock
        self.accounts = BucketAccounts()
        self._settings = settings
        self._watermark = watermark
        self._metrics = metrics
        self._run_id = run_id

    def publish(self, bucket: Bucket, state: BucketState) -> None:
        """Replace the bucket's list; it is counted further, so its sketch stays here."""
        self._publish(bucket, state, None, None)

    def publish_last(self, bucket: Bucket, state: BucketState) -> None:
        """Replace the bucket's list for the last time, its sketches with it."""
        late = state.late.serialize() if state.late else None
        self._publish(bucket, state, state.sketch().serialize(), late)
        self._metrics.add(BUCKETS_CLOSED)

    def put(
        self,
        bucket: Bucket,
        entries: Sequence[tuple[str, int]],
        meta: Meta,
        sketch: bytes | None,
        late_sketch: bytes | None,
    ) -> None:
        """Replace the bucket's list with its meta and sketches; where its day is exact, nothing happens."""
        written = self.publisher.publish_provisional(bucket, entries, meta, sketch, late_sketch)
        self._metrics.add(LISTS_PUBLISHED if written else LISTS_FENCED)

    def _publish(self, bucket: Bucket, state: BucketState, sketch: bytes | None, late: bytes | None) -> None:
        entries = state.entries()
        self.put(bucket, entries, self._meta(bucket, state, entries), sketch, late)

    def _meta(self, bucket: Bucket, state: BucketState, entries: Sequence[tuple[str, int]]) -> Meta:
        passed = from_micros(self._watermark.at) if self._watermark.at is not None else bucket.start
        return Meta(
            state="provisional",
            generation=0,
            as_of=self.clock(),
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
            accounting=self.accounts.of(bucket, state),
        )
