"""The speed layer's worker: accepted events in, provisional lists out.

An event's class is that of its day: `late` when the day's grace was over (it is then counted nowhere but in
late sketches), `ahead` when its jump was contradicted, else `counted`. An event that is in time for its day
but not for its minute or hour counts in the day and goes to the late sketch of those it missed. So, always:
counted + late + ahead + refused = read.
"""

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa

from daybreak import metrics
from daybreak.clock import Clock
from daybreak.settings import Stream
from daybreak.windows import Bucket, Window, from_micros
from streaming.counting.live_buckets import MICROSECOND, LiveBuckets, graces
from streaming.counting.routing import Group, group_by_bucket
from streaming.counting.watermark import Admitted, Watermark
from streaming.late_events import LateEvents
from streaming.publishing import ProvisionalLists, Publisher

COLUMNS: Final = ["item_id", "occurred_at", "weight"]


@dataclass(frozen=True)
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
        self._clock = clock
        self._publish_every = settings.publish_every
        self._graces = graces(settings)
        self._watermark = Watermark(settings.max_jump // MICROSECOND)
        self._live = LiveBuckets(settings)
        run_id = run_id or f"stream-{uuid.uuid4().hex[:12]}"
        self.metrics = metrics.Metrics()
        self._lists = ProvisionalLists(publisher, settings, clock, self._watermark, self.metrics, run_id=run_id)
        self._late = LateEvents(settings, self._lists)
        self._changed: set[Bucket] = set()
        self._published_at: datetime | None = None
        self._read_at: datetime | None = None
        """Up to when event time holds: the last feed, or the last poll since."""

    @property
    def accounting(self) -> Accounting:
        """The events so far, by what became of them."""
        return Accounting(
            read=self.metrics[metrics.EVENTS_READ],
            counted=self.metrics[metrics.EVENTS_COUNTED],
            late=self.metrics[metrics.EVENTS_LATE],
            ahead=self.metrics[metrics.EVENTS_AHEAD],
            refused=self.metrics[metrics.EVENTS_REFUSED],
            held=int(self.metrics[metrics.EVENTS_HELD] or 0),
        )

    def feed(self, accepted: pa.Table, refused: int = 0) -> None:
        """Count a batch of accepted events; close, and publish, what it ends.

        Raises:
            UsageError: live buckets that take more than `stream.memory_limit`.
        """
        self.metrics.add(metrics.EVENTS_READ, accepted.num_rows + refused)
        self.metrics.add(metrics.EVENTS_REFUSED, refused)
        self._lists.accounts.add_refused(refused)
        self._take(self._watermark.admit(accepted.select(COLUMNS)))
        if accepted.num_rows + refused:
            self._read_at = self._clock()

    def poll(self) -> None:
        """A live source had nothing: publish what changed when it is time to, and let event time go on with the clock.

        Since the last feed as much event time has passed as on the clock. So a bucket is closed when its grace is over
        though no event says so; what comes for it afterwards is late, and its list stays (`test_worker_polling`). An
        empty read is no feed.

        - Call it when a read of a live source has come to its end and brought nothing.
        - Do not call it for files: what is late would depend on how fast they are read.
        - Do not call it while the source is away. That is not idle: its events are on their way, and feeding what has
          waited comes first. Otherwise they may all be late.

        Raises:
            UsageError: as `feed`, when time has come near events that were held.
        """
        now = self._clock()
        admitted: Sequence[Admitted] = ()
        if self._read_at is not None and now > self._read_at:
            admitted = self._watermark.go_on((now - self._read_at) // MICROSECOND)
            self._read_at = now
        self._take(admitted)

    def publish(self, force: bool = False) -> None:
        """Publish every live bucket that changed, when `publish_every` has passed or `force` is given."""
        now = self._clock()
        if self._published_at is None:
            self._published_at = now
        if not force and now - self._published_at < self._publish_every:
            return
        self._published_at = now
        for bucket in sorted(self._changed):
            self._lists.publish(bucket, self._live[bucket])
        self._changed.clear()
        self._late.publish()

    def close(self) -> None:
        """The stream has ended: count what is held, publish every live bucket with its sketches."""
        self._count(self._watermark.confirm())
        for bucket in self._live.in_order():
            self._end(bucket)
        self._late.publish()
        self._measure()

    def _take(self, admitted: Sequence[Admitted]) -> None:
        self._count(admitted)
        self._close_ended()
        self.publish()
        self._measure()

    def _count(self, admitted: Sequence[Admitted]) -> None:
        for rows in self._watermark.ahead:
            self.metrics.add(metrics.EVENTS_AHEAD, rows.num_rows)
            self._lists.accounts.add_ahead(rows)
        self._watermark.ahead.clear()
        self.metrics.set(metrics.EVENTS_HELD, self._watermark.held_count)
        for group in group_by_bucket(admitted, self._graces):
            if group.is_late:
                self._add_late(group)
            else:
                self._add(group)

    def _add(self, group: Group) -> None:
        if group.bucket not in self._live:
            self._live.open(group.bucket)
            self._lists.accounts.open(group.bucket)
        state = self._live[group.bucket]
        state.add(group.ids, group.codes, group.hashes, group.weights, group.event_count)
        self._changed.add(group.bucket)
        if group.bucket.window is Window.DAY:
            self.metrics.add(metrics.EVENTS_COUNTED, group.event_count)

    def _add_late(self, group: Group) -> None:
        """Late events are kept beside their bucket while it lives, else until the next publication."""
        if group.bucket in self._live:
            self._live[group.bucket].add_late(group.hashes, group.weights, group.event_count)
            self._changed.add(group.bucket)
        else:
            self._late.add(group)
        if group.bucket.window is Window.DAY:
            self.metrics.add(metrics.EVENTS_LATE, group.event_count)

    def _close_ended(self) -> None:
        if self._watermark.at is not None:
            for bucket in self._live.ended(from_micros(self._watermark.at)):
                self._end(bucket)

    def _end(self, bucket: Bucket) -> None:
        self._lists.publish_last(bucket, self._live[bucket])
        self._live.drop(bucket)
        self._lists.accounts.drop(bucket)
        self._changed.discard(bucket)

    def _measure(self) -> None:
        self.metrics.set(metrics.LIVE_BUCKETS, len(self._live))
        self.metrics.set(metrics.LIVE_BYTES, self._live.memory_bytes)
        if self._watermark.at is not None:
            self.metrics.set(metrics.WATERMARK, self._watermark.at / 1_000_000)
