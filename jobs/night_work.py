"""What each step of a night does: the functions of `jobs.steps`, by name in `DOES`.

Until `commit` nothing that anybody reads has changed; from its manifest on analysts see the day, from `publish` on
Redis serves it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

from daybreak.crashpoints import crash_point
from daybreak.errors import UsageError
from jobs.board_night import board_night
from jobs.closing import exceptions
from jobs.items import capture, check, corrections, derive, report
from jobs.publishing import items as item_lists
from jobs.run import commit, optimize
from jobs.run.context import Context
from jobs.run.pin import pin, pin_no_items
from jobs.run.run import Run, load_state
from jobs.steps import Step
from lakehouse import runs
from lakehouse.progress import require_complete
from lakehouse.runs import RunKind
from lakehouse.tables import registry as tables


@dataclass
class Night:
    """One night over the days `first` to `last`, as its steps see it."""

    context: Context
    run_id: str
    days: tuple[date, date] | None
    """First and last; None where the pinned run says so."""
    allow_incomplete: bool = False
    made: dict[str, Any] = field(default_factory=dict)
    """What each step gave, by its name."""

    @cached_property
    def run(self) -> Run:
        """The pinned run.

        Raises:
            UsageError: it was never pinned.
        """
        return self.context.run(load_state(self.context.settings, self.run_id))

    @cached_property
    def kinds(self) -> tuple[RunKind, ...]:
        """What the night is about."""
        return self.context.lake.kinds

    @property
    def span(self) -> tuple[date, date]:
        """The first and the last day."""
        return self.days or (self.run.pin.first, self.run.pin.last)

    def needs(self, step: Step) -> bool:
        """Whether the night has anything of what the step is about."""
        return not {*step.kinds}.isdisjoint(self.kinds)


def complete(night: Night) -> None:
    """Passes when the days are complete: in the items, or in what boards read where there are no items.

    Raises:
        InputIncompleteError: naming what is waited for.
    """
    lake, (first, last) = night.context.lake, night.span
    sources = [tables.ITEM_EVENTS] if "items" in night.kinds else [table for table, _ in lake.board_sources]
    for table in sources:
        require_complete(lake.store, lake.settings, first, last, tables.KINDS[table.name])


def pinned(night: Night) -> None:
    """Fix the run to one version of the events.

    Raises:
        UsageError: the run is committed already.
        InputIncompleteError, CheckFailedError, FenceRefusedError: as `jobs.run.pin.pin`.
    """
    context, (first, last) = night.context, night.span
    if runs.is_finished(context.store, night.run_id):
        raise UsageError(f"run {night.run_id!r} is committed already; correct its days anew under another --run-id")
    commit.finish_others(context)  # before the attempt is chosen, which must be above theirs
    if "items" in night.kinds:
        given = (context.store, context.settings, context.clock, night.run_id, first, last, night.allow_incomplete)
        state = pin(*given)
    else:
        state = pin_no_items(context.settings, context.clock, night.run_id, first, last)
    night.run = context.run(state)
    night.run.save()
    crash_point("night.pinned")


def derived(night: Night) -> None:
    """Stage every table of items."""
    derive.derive(night.run)


def checked(night: Night) -> None:
    """Audit what was staged."""
    check.check(night.run)


def committed(night: Night) -> None:
    """Commit what was checked; dead runs first, since a manifest must not name their half-committed tables."""
    commit.finish_others(night.context, but=night.run_id)
    commit.commit(night.run)


def captured(night: Night) -> None:
    """Keep what Redis served."""
    capture.capture(night.run, night.context.lists)


def published(night: Night) -> dict[date, int]:
    """Swap the exact lists in; the generation of each day."""
    return item_lists.publish(night.run, night.context.lists)


def reported(night: Night) -> int:
    """Compare what was served with what is exact; how many lists were compared."""
    run = night.run
    rows = corrections.correct(run)
    for day in run.pin.days:
        if any(row["day"] == day.day for row in rows):
            report.report(run.store, run.settings, day.day)
    return len(rows)


def optimized(night: Night) -> None:
    """Compact the tables of items."""
    optimize.optimize(night.run)


def ranked(night: Night) -> tuple[int, int]:
    """Rank the boards; how many in a period, and from which version of their events. Their tables are compacted too."""
    context, (first, last) = night.context, night.span
    boards = board_night(context, night.run_id, first, last, allow_incomplete=night.allow_incomplete)
    exceptions.find(context.store, context.clock, first, last)
    optimize.optimize(boards.run)
    return len(boards.plan.ranked), boards.run.pin.lake_version


DOES: dict[str, Callable[[Night], Any]] = {
    "complete": complete,
    "pin": pinned,
    "derive": derived,
    "check": checked,
    "commit": committed,
    "capture": captured,
    "publish": published,
    "report": reported,
    "optimize": optimized,
    "boards": ranked,
}
"""What each step does."""
