"""Late events of buckets that are closed: kept until the next publication, then merged into what is served."""

import json
from dataclasses import replace
from typing import Final

from daybreak.settings import Stream
from daybreak.windows import Bucket
from streaming.counting.bucket_state import BucketState
from streaming.counting.live_buckets import new_state
from streaming.counting.routing import Group
from streaming.publishing import ProvisionalLists
from streaming.sketches.count_min import CountMinSketch

PENDING_BUCKETS: Final = 64
"""Closed buckets whose late events may wait for publication."""


class LateEvents:
    """What came for closed buckets since the last publication."""

    def __init__(self, settings: Stream, lists: ProvisionalLists) -> None:
        self._settings = settings
        self._lists = lists
        self._states: dict[Bucket, BucketState] = {}

    def add(self, group: Group) -> None:
        """Keep late events; those of too many buckets are published at once."""
        if group.bucket not in self._states:
            if len(self._states) >= PENDING_BUCKETS:
                self.publish()
            self._states[group.bucket] = new_state(self._settings, group.bucket.window)
        self._states[group.bucket].add_late(group.hashes, group.weights, group.event_count)

    def publish(self) -> None:
        """Publish every bucket concerned again."""
        for bucket in sorted(self._states):
            self._add_to_served(bucket, self._states[bucket])
        self._states.clear()

    def _add_to_served(self, bucket: Bucket, missed: BucketState) -> None:
        """The list stays as Redis serves it; only its late sketch and its account grow."""
        served = self._lists.publisher.read(bucket)
        if served is None:
            self._lists.publish_last(bucket, missed)
            return
        if served.meta.state == "exact":
            return
        assert missed.late is not None
        sketch, late = self._lists.publisher.read_sketch(bucket)
        account = json.loads(served.meta.accounting or "{}")
        account["late"] = account.get("late", 0) + missed.late_events
        meta = replace(served.meta, accounting=json.dumps(account), as_of=self._lists.clock())
        merged = _joined(missed.late, sketch, late)
        late_sketch = merged.serialize() if merged else None
        self._lists.put(bucket, served.entries, meta, sketch if merged else None, late_sketch)


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
