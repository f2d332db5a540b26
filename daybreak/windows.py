"""Windows and their buckets: one instant has one bucket in each tumbling window. All UTC.

`Bucket.label` is the name of a bucket inside its day, used in Redis keys:
`day`, `hour.17`, `minute.17.24`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from daybreak.errors import UsageError

MICROSECONDS_PER_MINUTE = 60_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ONE_DAY = timedelta(days=1)


class Window(StrEnum):
    """A kind of span that lists are kept for."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    @property
    def length(self) -> timedelta:
        return timedelta(minutes={"minute": 1, "hour": 60, "day": 1440}[self.value])

    @property
    def microseconds(self) -> int:
        return self.length // timedelta(microseconds=1)


@dataclass(frozen=True, order=True)
class Bucket:
    """One window at one time; half-open `[start, end)`."""

    window: Window
    start: datetime

    def __post_init__(self) -> None:
        if to_micros(self.start) % self.window.microseconds:
            raise UsageError(f"{self.start} does not start a {self.window} bucket; use bucket_at()")

    @property
    def end(self) -> datetime:
        return self.start + self.window.length

    @property
    def day(self) -> date:
        return self.start.date()

    @property
    def label(self) -> str:
        match self.window:
            case Window.DAY:
                return "day"
            case Window.HOUR:
                return f"hour.{self.start:%H}"
            case Window.MINUTE:
                return f"minute.{self.start:%H.%M}"


def bucket_at(window: Window, instant: datetime) -> Bucket:
    """The bucket of `window` that holds `instant`.

    >>> bucket_at(Window.HOUR, datetime(2011, 12, 5, 17, 24, tzinfo=UTC)).label
    'hour.17'
    """
    micros = to_micros(instant)
    return Bucket(window, from_micros(micros - micros % window.microseconds))


def bucket_of_label(day: date, label: str) -> Bucket:
    """The bucket named `label` inside `day`; the inverse of `Bucket.label`.

    >>> bucket_of_label(date(2011, 12, 5), "minute.17.24").start.isoformat()
    '2011-12-05T17:24:00+00:00'
    """
    window, *parts = label.split(".")
    hour, minute = ([int(part) for part in parts] + [0, 0])[:2]
    return Bucket(Window(window), datetime.combine(day, time(hour, minute), UTC))


def day_bounds(day: date) -> tuple[datetime, datetime]:
    """Start and end of a UTC day, half-open. 9999-12-31 ends at datetime.max."""
    start = datetime.combine(day, time(), UTC)
    return start, (start + timedelta(days=1)) if day < date.max else datetime.max.replace(tzinfo=UTC)


def day_before(day: date) -> date:
    """The day before, or `day` itself on the calendar's first."""
    return day - ONE_DAY if day > date.min else day


def day_after(day: date) -> date:
    """The day after, or `day` itself on the calendar's last."""
    return day + ONE_DAY if day < date.max else day


def days_between(first: date, last: date) -> list[date]:
    """Every day from `first` to `last`, both included."""
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def ranges(days: Iterable[date]) -> Iterator[tuple[date, date]]:
    """Runs of consecutive days, each as (first, last)."""
    start = previous = None
    for day in sorted(days):
        if start is None or previous is None or (day - previous).days > 1:
            if start is not None and previous is not None:
                yield start, previous
            start = day
        previous = day
    if start is not None and previous is not None:
        yield start, previous


def to_micros(instant: datetime) -> int:
    """Microseconds since 1970-01-01 UTC, exact for every year 1 to 9999."""
    return (instant - EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """The instant that many microseconds after 1970-01-01 UTC."""
    return EPOCH + timedelta(microseconds=micros)
