"""Compacts the run's days, drops what no kept version of those tables needs, and removes staging that is over.

Writes  item_events, the derived tables and those without days  the same rows in fewer files
Rerun   changes nothing
"""

import shutil

from jobs.run.run import Run, run_folder, saved_runs
from lakehouse.tables import registry as tables

FILES_PER_DAY = 4
"""A day with more files than this is worth compacting."""
MOST_FILES = 64
"""Of a table without days, which every run reads whole and appends a row to."""


def optimize(run: Run) -> None:
    """Compact, vacuum and clear."""
    compact(run)
    run.state.step = "done"
    run.save()
    clear_staging(run)


def compact(run: Run) -> None:
    """Compact the run's days where they have grown many files, and vacuum those tables."""
    days = len(run.pin.days)
    events = tables.ITEM_EVENTS if run.pin.kind == "items" else tables.SCORE_EVENTS
    for table in (events, *run.tables):
        version = run.store.version(table)
        files = run.store.files(table, version, run.pin.first, run.pin.last)
        if len(files) > FILES_PER_DAY * days:
            run.store.optimize(table, run.pin.first, run.pin.last, run.pin.run_id)
            run.store.vacuum(table)
    for table in (tables.RUNS, tables.PROGRESS, tables.BOARD_ACTIONS):
        run.store.tidy(table, MOST_FILES, run.pin.run_id)


def clear_staging(run: Run) -> list[str]:
    """Remove the staging of runs that are over or were given up `staging_keep` ago; returns their ids.

    A run that died while committing is kept: the next night finishes it from its staging.
    """
    removed = []
    oldest = run.clock() - run.settings.lake.staging_keep
    for state in saved_runs(run.settings):
        mine = state.pin.run_id == run.pin.run_id
        if state.step != "committing" and not mine and state.started_at < oldest:
            shutil.rmtree(run_folder(run.settings, state.pin.run_id))
            removed.append(state.pin.run_id)
    return removed
