"""The order of a night. Each step can be run alone with `--run-id`, so a scheduler retries a step, not a night.

complete, pin, derive, check, commit, capture, publish, report, boards, optimize: until `commit` nothing that anybody
reads has changed; from its manifest on analysts see the day, from `publish` on Redis serves it.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import Any
from uuid import uuid4

from daybreak.crashpoints import crash_point
from daybreak.errors import CheckFailedError, DaybreakError, UsageError, did_you_mean
from daybreak.serving.lease import Lease
from jobs.board_night import board_night
from jobs.closing import exceptions
from jobs.items import capture, check, corrections, daily_counts, hourly_counts, report, top_lists
from jobs.publishing import items as publish
from jobs.run import commit, optimize
from jobs.run.context import Context
from jobs.run.pin import pin, require_complete
from jobs.run.run import Run, load_state
from lakehouse.tables import registry as tables

STEPS = ("complete", "pin", "derive", "check", "commit", "capture", "publish", "report", "boards", "optimize")


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
    """The steps of a whole night, as it reports them: `complete` is a part of `pin`, and boards come last."""
    items = [step for step in STEPS if step not in ("complete", "boards")]
    has_items = context.store.version(tables.ITEM_EVENTS) >= 0 or not context.boards.boards
    return [*(items if has_items else []), *(["boards"] if context.boards.boards else [])]


def new_run_id(first: date, last: date) -> str:
    """A run id that says which days it is about."""
    span = str(first) if first == last else f"{first}--{last}"
    return f"night-{span}-{uuid4().hex[:8]}"


def nightly(
    context: Context, first: date, last: date, *, allow_incomplete: bool = False, progress: Callable[[str], None]
) -> Summary:
    """One whole night over the days `first` to `last`, under the lease: the items, then the boards.

    A failure in the boards is raised when all else is done: the lists of items are published by then. A lake
    that never had an event of an item has no items to correct.

    Raises:
        InputIncompleteError, CheckFailedError, FenceRefusedError, UnreachableError, LakeFailedError
    """
    run_id = new_run_id(first, last)
    with context.lease(run_id) as held:
        done = Summary(run_id, first, last)
        failure: DaybreakError | None = None
        if context.store.version(tables.ITEM_EVENTS) >= 0 or not context.boards.boards:
            done, failure = item_night(context, run_id, first, last, allow_incomplete, held, progress)
        if context.boards.boards:
            progress("boards")
            held.check()
            try:
                boards = board_night(context, run_id, first, last, allow_incomplete=allow_incomplete)
                exceptions.find(context.store, context.clock, first, last)
                done = replace(done, boards=len(boards.plan.ranked), board_version=boards.run.pin.lake_version)
                optimize.compact(boards.run)
                optimize.clear_staging(boards.run)
            except DaybreakError as error:
                failure = failure or error
        if failure:
            raise failure
    return done


def item_night(
    context: Context,
    run_id: str,
    first: date,
    last: date,
    allow_incomplete: bool,
    held: Lease,
    progress: Callable[[str], None],
) -> tuple[Summary, CheckFailedError | None]:
    """The steps of the items, and what kept a list from being published, if anything did."""
    progress("pin")
    commit.finish_others(context)  # before the attempt is chosen, which must be above theirs
    state = pin(context.store, context.settings, context.clock, run_id, first, last, allow_incomplete)
    run = context.run(state)
    run.save()
    crash_point("night.pinned")
    outcome: dict[str, Any] = {}
    unpublished: CheckFailedError | None = None
    for step in STEPS[2:]:
        if step == "boards":
            continue
        progress(step)
        held.check()
        try:
            outcome[step] = run_loaded_step(context, run, step)
        except CheckFailedError as error:
            if step != "publish":
                raise
            unpublished = error
    rows = sum(day.rows for day in state.pin.days)
    distinct = sum(state.distinct.values())
    generations = {str(day): generation for day, generation in (outcome.get("publish") or {}).items()}
    done = Summary(
        run_id=run_id,
        first=first,
        last=last,
        lake_version=state.pin.lake_version,
        rows=rows,
        distinct=distinct,
        duplicate=rows - distinct,
        generations=generations,
        corrections=outcome["report"],
    )
    return done, unpublished


def run_step(
    context: Context, step: str, run_id: str, first: date | None, last: date | None, allow_incomplete: bool
) -> Any:
    """One step of a run, from its saved state.

    Raises:
        UsageError: an unknown step, or `complete` and `pin` without their days.
    """
    if step not in STEPS:
        raise UsageError(f"no step {step!r}{did_you_mean(step, STEPS)}; the steps are {', '.join(STEPS)}")
    if step in ("complete", "pin"):
        if first is None or last is None:
            raise UsageError(f"step {step} needs its day; add --day DAY, or --from and --to")
        if step == "complete":
            return require_complete(context.store, context.settings, first, last)
        if context.store.transaction_version(tables.RUNS, f"runs/{run_id}") is not None:
            raise UsageError(f"run {run_id!r} is committed already; correct its days anew under another --run-id")
        with context.lease(run_id):
            commit.finish_others(context)  # before the attempt is chosen, which must be above theirs
            state = pin(context.store, context.settings, context.clock, run_id, first, last, allow_incomplete)
            return context.run(state).save()
    with context.lease(run_id):
        if step == "boards":
            if not context.boards.boards:
                return None
            days = (first, last) if first and last else run_days(context, run_id)
            ranked = board_night(context, run_id, *days, allow_incomplete=allow_incomplete)
            exceptions.find(context.store, context.clock, *days)
            return ranked
        return run_loaded_step(context, context.run(load_state(context.settings, run_id)), step)


def run_days(context: Context, run_id: str) -> tuple[date, date]:
    """The first and the last day of a run that was pinned."""
    pinned = load_state(context.settings, run_id).pin
    return pinned.first, pinned.last


def run_loaded_step(context: Context, run: Run, step: str) -> Any:
    """One step after `pin`; each refuses a run that has not come that far."""
    require_step(run, step)
    match step:
        case "derive":
            return derive(run)
        case "check":
            return check.check(run)
        case "commit":
            commit.finish_others(context, but=run.pin.run_id)
            return commit.commit(run)
        case "capture":
            return capture.capture(run, context.lists)
        case "publish":
            return publish.publish(run, context.lists)
        case "report":
            rows = corrections.correct(run)
            for day in run.pin.days:
                if any(row["day"] == day.day for row in rows):
                    report.report(context.store, context.settings, day.day)
            return len(rows)
        case _:
            return optimize.optimize(run)


def derive(run: Run) -> None:
    """Stage every table of the run, from one deduplication."""
    from lakehouse.audit import checks

    checks.start_import()
    for job in (hourly_counts, daily_counts, top_lists):
        with run.engine.failing_as(f"the derivation in {job.__name__}"):
            job.stage(run)
    run.state.step = "derived"
    run.save()
    crash_point("night.derived")


def require_step(run: Run, step: str) -> None:
    """Passes when the run has done what `step` builds on.

    Raises:
        UsageError: naming the step to run first.
    """
    needed = {"derive": 0, "check": 1, "commit": 2}.get(step, 4)
    order = ("pinned", "derived", "checked", "committing", "committed", "done")
    reached = order.index(run.state.step) if run.state.step in order else -1
    if reached < needed:
        raise UsageError(
            f"run {run.pin.run_id} is {run.state.step}; {step} needs it {order[needed]}: run the step before it"
        )
