"""The buckets that events still count in: made by their first event, ended when their grace is over."""

from datetime import datetime, timedelta
from typing import Final

from daybreak.errors import UsageError
from daybreak.settings import Stream, WindowTarget
from daybreak.windows import Bucket, Window
from streaming.counting.bucket_state import BucketState

MICROSECOND: Final = timedelta(microseconds=1)
LOOK_EVERY: Final = 16
"""Memory is added up when the number of live buckets is a multiple of this."""


def target_of(settings: Stream, window: Window) -> WindowTarget:
    """The settings of one window."""
    found: WindowTarget = getattr(settings, window.value)
    return found


def graces(settings: Stream) -> dict[Window, int]:
    """How long after a bucket's end events still count in it, in microseconds."""
    return {window: target_of(settings, window).grace // MICROSECOND for window in Window}


def new_state(settings: Stream, window: Window) -> BucketState:
    """A bucket of the window, before any event."""
    return BucketState(
        target_of(settings, window),
        confidence=settings.confidence,
        seed=settings.seed,
        list_depth=settings.list_depth,
        candidate_factor=settings.candidate_factor,
        force_cells=settings.force_cells,
    )


class LiveBuckets:
    """The state of each bucket that is still counted."""

    def __init__(self, settings: Stream) -> None:
        self._settings = settings
        self._states: dict[Bucket, BucketState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def __contains__(self, bucket: Bucket) -> bool:
        return bucket in self._states

    def __getitem__(self, bucket: Bucket) -> BucketState:
        return self._states[bucket]

    @property
    def memory_bytes(self) -> int:
        return sum(state.memory_bytes for state in self._states.values())

    def in_order(self) -> list[Bucket]:
        """All of them: days, hours, minutes, each by time."""
        return sorted(self._states)

    def ended(self, passed: datetime) -> list[Bucket]:
        """Those whose grace is over when event time has come to `passed`."""
        return [b for b in self.in_order() if b.end + target_of(self._settings, b.window).grace <= passed]

    def open(self, bucket: Bucket) -> None:
        """The bucket lives from now on.

        Raises:
            UsageError: the live buckets take more than `stream.memory_limit`.
        """
        self._check_memory()
        self._states[bucket] = new_state(self._settings, bucket.window)

    def drop(self, bucket: Bucket) -> None:
        """The bucket is closed; what comes for it now is late."""
        del self._states[bucket]

    def _check_memory(self) -> None:
        if len(self) % LOOK_EVERY:
            return
        if (taken := self.memory_bytes) > self._settings.memory_limit:
            raise UsageError(
                f"{len(self)} live buckets take {taken:,} bytes, above stream.memory_limit = "
                f"{self._settings.memory_limit:,}; raise it, or the windows' relative_error"
            )
