"""Named places where a test kills the process, one after every side effect of a night and of a publication.

`DAYBREAK_CRASH_AT=NAME` ends the process there with SIGKILL: no handler, no `finally`, no flush.
"""

import os
import signal

from daybreak.errors import UsageError

POINTS = (
    "ingest.events",
    "ingest.refusals",
    "night.pinned",
    "night.derived",
    "night.committing",
    "night.committed.hourly_counts",
    "night.committed.daily_counts",
    "night.committed.top_lists",
    "night.manifest",
    "night.captured.served_lists",
    "night.captured.served_sketches",
    "night.publications",
    "publish.staged",
    "publish.swapped",
    "publish.pointer",
    "night.published",
    "night.corrections",
    "boards.derived",
    "night.committed.player_days",
    "night.committed.board_snapshots",
    "night.committed.board_histograms",
    "boards.manifest",
    "boards.publications",
    "board.staged",
    "board.swapped",
    "boards.published",
    "close.ranks",
    "close.prizes",
    "close.row",
    "close.published",
)
"""Every name, in the order in which a run passes them."""


def crash_point(name: str) -> None:
    """Nothing, unless the environment says that the process dies here.

    Raises:
        UsageError: `DAYBREAK_CRASH_AT` holds a name that is no crash point, so that no test waits in vain.
    """
    wanted = os.environ.get("DAYBREAK_CRASH_AT")
    if wanted is None:
        return
    if wanted not in POINTS:
        raise UsageError(f"DAYBREAK_CRASH_AT={wanted!r} is no crash point; the points are {', '.join(POINTS)}")
    if wanted == name:
        os.kill(os.getpid(), signal.SIGKILL)
