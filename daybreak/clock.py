"""The one place that asks what time it is.

Loops and runs take a `Clock`, so that a test can hand them another one.
"""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def now() -> datetime:
    """The present instant, UTC, aware."""
    return datetime.now(UTC)
