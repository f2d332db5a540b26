"""A night: `nightly` walks the steps of `jobs.steps`, `run_step` runs one; what each does stands in `jobs.night_work`.

Each step can be run alone with `--run-id`, so a scheduler retries a step, not a night.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any
from uuid import uuid4

from daybreak.errors import DaybreakError, UsageError, did_you_mean
from jobs.night_work import DOES, Night
from jobs.run.context import Context
from jobs.run.run import Run
from jobs.steps import BY_NAME, STEPS, Step

WALKED = STEPS[1:]
"""What `nightly` walks: `pin` asks by itself whether the days are complete; `complete` is what a scheduler waits on."""


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
