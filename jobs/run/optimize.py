"""Compacts the run's days, drops what no kept version of those tables needs, and removes staging that is over.

Writes  item_events, the derived tables and those without days  the same rows in fewer files
Rerun   changes nothing
"""

import shutil

from jobs.run.run import Night, run_folder, saved_runs
from lakehouse.tables import registry as tables

FILES_PER_DAY = 4
"""A day with more files than this is worth compacting."""
MOST_FILES = 64
"""Of a table without days, which every run reads whole and appends a row to."""


def optimize(night: Night) -> None:
    """Compact, vacuum and clear."""
    compact(night)
    night.state.step = "done"
    night.save()
    clear_staging(night)


def compact(night: Night) -> None:
    """Compact the run's days where they have grown many files, and vacuum those tables."""
    days = len(night.pin.days)
    events = tables.ITEM_EVENTS if night.pin.kind == "items" else tables.SCORE_EVENTS
    for table in (events, *night.tables):
        version = night.store.version(table)
        files = night.store.files(table, version, night.pin.first, night.pin.last)
        if len(files) > FILES_PER_DAY * days:
            night.store.optimize(table, night.pin.first, night.pin.last, night.pin.run_id)
            night.store.vacuum(table)
    for table in (tables.RUNS, tables.PROGRESS, tables.BOARD_ACTIONS):
        night.store.tidy(table, MOST_FILES, night.pin.run_id)


def clear_staging(night: Night) -> list[str]:
    """Remove the staging of runs that are over or were given up `staging_keep` ago; returns their ids.

    A run that died while committing is kept: the next night finishes it from its staging.
    """
    removed = []
    oldest = night.clock() - night.settings.lake.staging_keep
    for state in saved_runs(night.settings):
        mine = state.pin.run_id == night.pin.run_id
        if state.step != "committing" and not mine and state.started_at < oldest:
            shutil.rmtree(run_folder(night.settings, state.pin.run_id))
            removed.append(state.pin.run_id)
    return removed
