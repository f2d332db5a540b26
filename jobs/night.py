"""A night: `nightly` walks the steps of `jobs.steps`, `run_step` runs one of them; what each does stands here.

Until `commit` nothing that anybody reads has changed; from its manifest on analysts see the day, from `publish` on
Redis serves it. Each step can be run alone with `--run-id`, so a scheduler retries a step, not a night.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cached_property
from typing import Any
from uuid import uuid4

from daybreak.crashpoints import crash_point
from daybreak.errors import DaybreakError, UsageError, did_you_mean
from jobs.board_night import board_night
from jobs.closing import exceptions
from jobs.items import capture, check, corrections, daily_counts, hourly_counts, report, top_lists
from jobs.publishing import items as item_lists
from jobs.run import commit, optimize
from jobs.run.context import Context
from jobs.run.lake import KINDS
from jobs.run.pin import pin, pin_no_items
from jobs.run.run import Run, load_state
from jobs.steps import BY_NAME, STEPS, Step
from lakehouse import runs
from lakehouse.audit import checks
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


@dataclass(frozen=True)
class Summary:
    """What a night did, as its last line says it."""

    run_id: str
    first: date
    last: date
    lake_version: int = -1
    rows: int = 0
    distinct: int = 0
    duplicate: int = 0
    generations: dict[str, int] = field(default_factory=dict)
    corrections: int = 0
    boards: int = 0
    """How many boards in a period were ranked."""
    board_version: int = -1
    """The version of the events that the boards were ranked from."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"first": str(self.first), "last": str(self.last)}


def complete(night: Night) -> None:
    """Passes when the days are complete: in the items, or in what boards read where there are no items.

    Raises:
        InputIncompleteError: naming what is waited for.
    """
    lake, (first, last) = night.context.lake, night.span
    sources = [tables.ITEM_EVENTS] if "items" in night.kinds else [table for table, _ in lake.board_sources]
    for table in sources:
        require_complete(lake.store, lake.settings, first, last, KINDS[table.name])


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


def derive(night: Night) -> None:
    """Stage every table of items, from one deduplication."""
    run = night.run
    checks.start_import()
    for job in (hourly_counts, daily_counts, top_lists):
        with run.engine.failing_as(f"the derivation in {job.__name__}"):
            job.stage(run)
    run.state.step = "derived"
    run.save()
    crash_point("night.derived")


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
    "derive": derive,
    "check": checked,
    "commit": committed,
    "capture": captured,
    "publish": published,
    "report": reported,
    "optimize": optimized,
    "boards": ranked,
}
"""What each step does."""
WALKED = STEPS[1:]
"""What `nightly` walks: `pin` asks by itself whether the days are complete; `complete` is what a scheduler waits on."""


def steps_of(context: Context) -> list[str]:
    """The names of the steps that a night here has, as it reports them."""
    night = Night(context, "", None)
    return [step.name for step in WALKED if night.needs(step)]


def new_run_id(first: date, last: date) -> str:
    """A run id that says which days it is about."""
    span = str(first) if first == last else f"{first}--{last}"
    return f"night-{span}-{uuid4().hex[:8]}"


def nightly(
    context: Context, first: date, last: date, *, allow_incomplete: bool = False, progress: Callable[[str], None]
) -> Summary:
    """One whole night over the days `first` to `last`, under the lease: the items, then the boards.

    A failure in the boards, or of a list that Redis cannot hold, is raised when all else is done.

    Raises:
        InputIncompleteError, CheckFailedError, FenceRefusedError, UnreachableError, LakeFailedError
    """
    night = Night(context, new_run_id(first, last), (first, last), allow_incomplete)
    failures: list[DaybreakError] = []
    with context.lease(night.run_id) as held:
        for step in WALKED:
            if not night.needs(step):
                continue
            progress(step.name)
            held.check()
            try:
                night.made[step.name] = DOES[step.name](night)
            except step.later as error:
                failures.append(error)
    if failures:
        raise failures[0]
    return summary(night)


def summary(night: Night) -> Summary:
    """What the night did."""
    run, (first, last) = night.run, night.span
    rows, distinct = sum(day.rows for day in run.pin.days), sum(run.state.distinct.values())
    boards, board_version = night.made.get("boards", (0, -1))
    return Summary(
        run_id=night.run_id,
        first=first,
        last=last,
        lake_version=run.pin.lake_version,
        rows=rows,
        distinct=distinct,
        duplicate=rows - distinct,
        generations={str(day): generation for day, generation in night.made.get("publish", {}).items()},
        corrections=night.made.get("report", 0),
        boards=boards,
        board_version=board_version,
    )


def run_step(context: Context, name: str, run_id: str, days: tuple[date, date] | None, allow_incomplete: bool) -> bool:
    """Run one step of a run, from its saved state; whether there was anything to do for it.

    Raises:
        UsageError: an unknown step, `complete` or `pin` without their days, or a run that has not come that far.
    """
    step = BY_NAME.get(name)
    if step is None:
        raise UsageError(f"no step {name!r}{did_you_mean(name, BY_NAME)}; the steps are {', '.join(BY_NAME)}")
    if step.needs is None and days is None:
        raise UsageError(f"step {name} needs its day; add --day DAY, or --from and --to")
    night = Night(context, run_id, days, allow_incomplete)
    if name == "complete":  # it waits for others, so it must not keep them out
        DOES[step.name](night)
        return True
    with context.lease(run_id):
        if not is_due(night, step):
            return False
        DOES[step.name](night)
        return True


def is_due(night: Night, step: Step) -> bool:
    """Whether the step has anything to do for its run.

    Raises:
        UsageError: the run has not come that far; names the step to run first.
    """
    if step.needs is None:
        return True
    if "items" not in step.kinds:
        return night.needs(step)
    if not night.run.has_items:
        return False
    require_stage(night.run, step)
    return True


def require_stage(run: Run, step: Step) -> None:
    """Passes when the run has done what the step builds on.

    Raises:
        UsageError: it has not.
    """
    order: Sequence[str] = ("pinned", "derived", "checked", "committing", "committed", "done")
    reached = order.index(run.state.step) if run.state.step in order else -1
    if step.needs and reached < order.index(step.needs):
        raise UsageError(
            f"run {run.pin.run_id} is {run.state.step}; {step.name} needs it {step.needs}: run the step before it"
        )
