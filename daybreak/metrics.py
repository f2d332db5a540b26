"""What is measured while the system runs: the list of it, and the place where a process keeps the numbers.

Names are as Prometheus has them: the unit in the name, `_total` behind a counter. A metric is one constant and its
place in `METRICS`; docs/reference/metrics.md is made from that list.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, overload


@dataclass(frozen=True)
class Counter:
    """A number that only grows while the process lives."""

    kind: ClassVar = "counter"
    name: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Gauge:
    """A number that rises and falls."""

    kind: ClassVar = "gauge"
    name: str
    unit: str
    meaning: str


EVENTS_READ: Final = Counter(
    "daybreak_stream_events_read_total", "events", "Rows read; each is counted, late, ahead, refused or still held."
)
EVENTS_COUNTED: Final = Counter(
    "daybreak_stream_events_counted_total", "events", "Events counted in their day's bucket."
)
EVENTS_LATE: Final = Counter(
    "daybreak_stream_events_late_total", "events", "Events that came when their day's grace was over."
)
EVENTS_AHEAD: Final = Counter(
    "daybreak_stream_events_ahead_total", "events", "Events whose jump in time was contradicted by those after them."
)
EVENTS_REFUSED: Final = Counter("daybreak_stream_events_refused_total", "events", "Rows that the intake refused.")
EVENTS_HELD: Final = Gauge(
    "daybreak_stream_events_held", "events", "Events whose jump in time is neither confirmed nor contradicted yet."
)
WATERMARK: Final = Gauge(
    "daybreak_stream_watermark_timestamp_seconds", "seconds", "Event time so far, since 1970; absent before any event."
)
LIVE_BUCKETS: Final = Gauge("daybreak_stream_live_buckets", "buckets", "Buckets that events still count in.")
LIVE_BYTES: Final = Gauge(
    "daybreak_stream_live_bytes", "bytes", "Memory of the live buckets; stream.memory_limit is its limit."
)
BUCKETS_CLOSED: Final = Counter(
    "daybreak_stream_buckets_closed_total", "buckets", "Buckets published for the last time, with their sketches."
)
LISTS_PUBLISHED: Final = Counter(
    "daybreak_stream_lists_published_total", "lists", "Provisional lists written to Redis."
)
LISTS_FENCED: Final = Counter(
    "daybreak_stream_lists_fenced_total", "lists", "Provisional lists not written because their day is exact already."
)

METRICS: Final[tuple[Counter | Gauge, ...]] = (
    EVENTS_READ,
    EVENTS_COUNTED,
    EVENTS_LATE,
    EVENTS_AHEAD,
    EVENTS_REFUSED,
    EVENTS_HELD,
    WATERMARK,
    LIVE_BUCKETS,
    LIVE_BYTES,
    BUCKETS_CLOSED,
    LISTS_PUBLISHED,
    LISTS_FENCED,
)


class Metrics:
    """The numbers of one process, or of one part of it.

    >>> metrics = Metrics()
    >>> metrics.add(EVENTS_READ, 3)
    >>> metrics.set(LIVE_BUCKETS, 2)
    >>> metrics[EVENTS_READ], metrics[LIVE_BUCKETS], metrics[EVENTS_LATE], metrics[WATERMARK]
    (3, 2, 0, None)
    """

    def __init__(self) -> None:
        self._counts: dict[Counter, int] = {}
        self._values: dict[Gauge, float] = {}

    def add(self, counter: Counter, more: int = 1) -> None:
        """Count `more` of it."""
        self._counts[counter] = self._counts.get(counter, 0) + more

    def set(self, gauge: Gauge, value: float) -> None:
        """The gauge stands at `value` now."""
        self._values[gauge] = value

    @overload
    def __getitem__(self, metric: Counter) -> int: ...

    @overload
    def __getitem__(self, metric: Gauge) -> float | None: ...

    def __getitem__(self, metric: Counter | Gauge) -> float | None:
        """A counter starts at 0; a gauge that was never set is None."""
        return self._counts.get(metric, 0) if isinstance(metric, Counter) else self._values.get(metric)
