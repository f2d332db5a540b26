"""Audits everything that a run staged, before anything is committed.

Three independent voices: Great Expectations on a profile made by the engine, DuckDB's recount from the
event files themselves, and the breaker that compares the day's size with the last one's.
"""

import json
from datetime import date

import pyarrow.compute as pc
import pyarrow.dataset as ds

from daybreak.windows import day_after, day_before
from jobs.run.run import Run
from lakehouse.audit import checks, recount
from lakehouse.audit.duck import Limits
from lakehouse.audit.first_copies import CountedDays
from lakehouse.tables import registry as tables


def check(run: Run) -> None:
    """Passes when every check holds; keeps profile, results and distinct counts in the state.

    Raises:
        CheckFailedError: naming each check that failed; the staging is kept for a look.
    """
    run.state.distinct = distinct_events(run)
    with run.engine.failing_as("the profile of what was staged"):
        profiles = {table.name: checks.profile(run.engine, run.staged(table), table) for table in tables.DERIVED}
    run.state.profile = json.dumps(profiles, default=str)
    results = checks.validate(
        profiles,
        staged_rows=run.state.staged_rows,
        event_total=sum(run.state.distinct.values()),
    )
    run.state.checks = json.dumps([result.as_dict() for result in results])
    failures = [result.message for result in results if not result.passed]
    failures += breaker(run)
    failures += recount_differences(run)
    run.refuse(failures)


def distinct_events(run: Run) -> dict[date, int]:
    """Distinct accepted events per day: what the staged hours add up to."""
    files = run.staged_files(tables.HOURLY_COUNTS)
    if not files:
        return {}
    staged = ds.dataset(files, schema=tables.HOURLY_COUNTS.schema, format="parquet")
    sums = staged.to_table(columns=["day", "event_count"]).group_by("day").aggregate([("event_count", "sum")])
    return dict(zip(sums["day"].to_pylist(), pc.cast(sums["event_count_sum"], "int64").to_pylist(), strict=True))


def breaker(run: Run) -> list[str]:
    """A day far larger or smaller than the one before it in the lake: likely a doubled or broken feed."""
    policy = run.settings.night
    found = []
    for day in run.pin.days:
        small, large = sorted((day.rows, day.previous_rows))
        if small and large >= policy.breaker_min_rows and large > small * policy.breaker_ratio:
            found.append(
                f"{day.day} has {day.rows} rows, the day before {day.previous_rows}: more than "
                f"{policy.breaker_ratio:g} times apart; raise DAYBREAK_NIGHT__BREAKER_RATIO if that is real"
            )
    return found


def recount_differences(run: Run) -> list[str]:
    """What DuckDB counts differently, from the pinned event files of the days and their neighbours."""
    first, last = day_before(run.pin.first), day_after(run.pin.last)
    return recount.differences(
        event_files=run.store.files(tables.ITEM_EVENTS, run.pin.read_version, first, last),
        staged={table.name: run.staged_files(table) for table in tables.DERIVED},
        days=CountedDays(run.pin.first, run.pin.last, run.settings.night.dedup_lookback),
        day_rows={day.day: day.rows for day in run.pin.days},
        depth=run.settings.stream.list_depth,
        full_below=run.settings.night.recount_full_below,
        limits=Limits(spill=run.folder),
    )
