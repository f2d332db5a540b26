"""Every table that a night derives of items, staged from one deduplication.

Reads   item_events  at the pinned version
Stages  hourly_counts, daily_counts, top_lists
Rerun   same events give the same rows; no column comes from the clock
"""

from daybreak.crashpoints import crash_point
from jobs.items import daily_counts, hourly_counts, top_lists
from jobs.run.run import Run
from lakehouse.audit import checks


def derive(run: Run) -> None:
    """Stage the run's days."""
    checks.start_import()
    for job in (hourly_counts, daily_counts, top_lists):
        with run.engine.failing_as(f"the derivation in {job.__name__}"):
            job.stage(run)
    run.state.step = "derived"
    run.save()
    crash_point("night.derived")
