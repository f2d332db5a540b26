"""The order of a night. Each step can be run alone with `--run-id`, so a scheduler retries a step, not a night.

complete, pin, derive, check, commit, capture, publish, report, optimize: until `commit` nothing that anybody
reads has changed; from its manifest on analysts see the day, from `publish` on Redis serves it.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Self
from uuid import uuid4

from daybreak.clock import Clock
from daybreak.crashpoints import crash_point
from daybreak.errors import CheckFailedError, UsageError
from daybreak.serving.lease import Lease
from daybreak.serving.lists import Lists
from daybreak.settings import Settings
from jobs import (
    capture,
    check,
    commit,
    corrections,
    daily_counts,
    hourly_counts,
    optimize,
    publish,
    report,
    top_lists,
)
from jobs.pin import pin, require_complete
from jobs.runtime import Night, RunState, load_state
from lakehouse.engine import Engine
from lakehouse.store import Store

STEPS = ("complete", "pin", "derive", "check", "commit", "capture", "publish", "report", "optimize")


@dataclass(frozen=True)
class Place:
    """What every night works on; ends its engine, which starts on first use, when it is left."""

    settings: Settings
    store: Store
    lists: Lists
    clock: Clock
    engine: Engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.stop()

    def night(self, state: RunState) -> Night:
        """The night of a run, on this place."""
        return Night(self.settings, self.store, self.clock, state, self.engine)


@dataclass(frozen=True)
class Summary:
    """What a night did, as its last line says it."""

    run_id: str
    first: date
    last: date
    lake_version: int
    rows: int
    distinct: int
    duplicate: int
    generations: dict[str, int]
    corrections: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"first": str(self.first), "last": str(self.last)}


def new_run_id(first: date, last: date) -> str:
    """A run id that says which days it is about."""
    span = str(first) if first == last else f"{first}--{last}"
    return f"night-{span}-{uuid4().hex[:8]}"


def nightly(
    place: Place, first: date, last: date, *, allow_incomplete: bool = False, progress: Callable[[str], None]
) -> Summary:
    """One whole night over the days `first` to `last`, under the lease.

    Raises:
        InputIncompleteError, CheckFailedError, FenceRefusedError, UnreachableError, LakeFailedError
    """
    run_id = new_run_id(first, last)
    with lease(place, run_id) as held:
        progress("pin")
        state = pin(place.store, place.settings, place.clock, run_id, first, last, allow_incomplete)
        night = place.night(state)
        night.save()
        crash_point("night.pinned")
        outcome: dict[str, Any] = {}
        unpublished: CheckFailedError | None = None
        for step in STEPS[2:]:
            progress(step)
            held.check()
            try:
                outcome[step] = run_loaded_step(place, night, step)
            except CheckFailedError as error:
                if step != "publish":
                    raise
                unpublished = error
        if unpublished:
            raise unpublished
    return Summary(
        run_id=run_id,
        first=first,
        last=last,
        lake_version=state.pin.lake_version,
        rows=sum(day.rows for day in state.pin.days),
        distinct=sum(state.distinct.values()),
        duplicate=sum(day.rows for day in state.pin.days) - sum(state.distinct.values()),
        generations={str(day): generation for day, generation in (outcome["publish"] or {}).items()},
        corrections=outcome["report"],
    )


def run_step(
    place: Place, step: str, run_id: str, first: date | None, last: date | None, allow_incomplete: bool
) -> Any:
    """One step of a run, from its saved state.

    Raises:
        UsageError: an unknown step, or `complete` and `pin` without their days.
    """
    if step not in STEPS:
        raise UsageError(f"no step {step!r}; the steps are {', '.join(STEPS)}")
    if step in ("complete", "pin"):
        if first is None or last is None:
            raise UsageError(f"step {step} needs its day; add --day DAY, or --from and --to")
        if step == "complete":
            return require_complete(place.store, place.settings, first, last)
        state = pin(place.store, place.settings, place.clock, run_id, first, last, allow_incomplete)
        return place.night(state).save()
    with lease(place, run_id):
        return run_loaded_step(place, place.night(load_state(place.settings, run_id)), step)


def run_loaded_step(place: Place, night: Night, step: str) -> Any:
    """One step after `pin`; each refuses a run that has not come that far."""
    require_step(night, step)
    match step:
        case "derive":
            return derive(night)
        case "check":
            return check.check(night)
        case "commit":
            commit.finish_others(night)
            return commit.commit(night)
        case "capture":
            return capture.capture(night, place.lists)
        case "publish":
            return publish.publish(night, place.lists)
        case "report":
            rows = corrections.correct(night)
            for day in night.pin.days:
                if any(row["day"] == day.day for row in rows):
                    report.report(place.store, place.settings, day.day)
            return len(rows)
        case _:
            return optimize.optimize(night)


def derive(night: Night) -> None:
    """Stage every table of the run, from one deduplication."""
    from lakehouse import checks

    checks.start_import()
    for job in (hourly_counts, daily_counts, top_lists):
        with night.engine.failing_as(f"the derivation in {job.__name__}"):
            job.run(night)
    night.state.step = "derived"
    night.save()
    crash_point("night.derived")


def require_step(night: Night, step: str) -> None:
    """Passes when the run has done what `step` builds on.

    Raises:
        UsageError: naming the step to run first.
    """
    needed = {"derive": 0, "check": 1, "commit": 2}.get(step, 4)
    order = ("pinned", "derived", "checked", "committing", "committed", "done")
    reached = order.index(night.state.step) if night.state.step in order else -1
    if reached < needed:
        raise UsageError(
            f"run {night.pin.run_id} is {night.state.step}; {step} needs it {order[needed]}: run the step before it"
        )


def lease(place: Place, run_id: str) -> Lease:
    """The lease that lets one night run at a time; renewed while it is held."""
    return Lease(place.lists.client, "night", run_id, place.settings.night.lease)
