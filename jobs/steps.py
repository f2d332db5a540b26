"""The steps of a night as data: one description for `nightly`, for `run STEP` and for the DAG.

What a step does stands in `jobs.night_work`. This module imports nothing heavy, so that the command can name the steps.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from daybreak.errors import CheckFailedError, DaybreakError

if TYPE_CHECKING:
    from jobs.run.run import Stage
    from lakehouse.runs import RunKind


@dataclass(frozen=True)
class Step:
    """One step of a night."""

    name: str
    about: str
    needs: "Stage | None"
    """What its run must have reached; None: there is no run yet."""
    kinds: "tuple[RunKind, ...]"
    """What it is about; where a night has nothing of that, the step is passed over."""
    later: tuple[type[DaybreakError], ...] = ()
    """Errors that `nightly` raises only when the steps behind it are done."""


STEPS = (
    Step("complete", "Waits until every source has passed the day's end.", None, ("items", "boards")),
    Step("pin", "Fixes the version of the events.", None, ("items", "boards")),
    Step("derive", "Counts the day into staging.", "pinned", ("items",)),
    Step("check", "Profiles and recounts what is staged.", "derived", ("items",)),
    Step("commit", "Replaces the day in the lake.", "checked", ("items",)),
    Step("capture", "Keeps what Redis served while the day was provisional.", "committed", ("items",)),
    Step("publish", "Swaps the day's exact lists in.", "committed", ("items",), (CheckFailedError,)),
    Step("report", "Says how wrong the provisional lists were.", "committed", ("items",)),
    Step("optimize", "Compacts files, clears staging.", "committed", ("items",)),
    Step("boards", "Ranks the players of the day and its periods.", "pinned", ("boards",), (DaybreakError,)),
)
"""In order. Boards come last, so that nothing of the items waits for them."""
BY_NAME = {step.name: step for step in STEPS}
