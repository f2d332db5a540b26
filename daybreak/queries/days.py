"""What is known of each day: rows, completeness, provisional, exact or stale, generation, lake version.

Reads   item_events, score_events (log), progress, runs, board_actions, Redis day states
"""

from collections import Counter
from dataclasses import dataclass
from datetime import date

from daybreak.serving.lists import DayState, Lists
from daybreak.windows import days_between
from jobs.run.lake import Lake
from jobs.run.staleness import stale_days
from lakehouse import progress
from lakehouse.runs import CountedDay, newest_days
from lakehouse.tables import registry as tables


@dataclass(frozen=True)
class DayStatus:
    """One day in the lake and in Redis."""

    day: date
    rows: int
    is_complete: bool
    state: str
    """none, provisional, exact, incomplete (counted before all had arrived) or stale"""
    generation: int | None
    lake_version: int | None


def status(lake: Lake, lists: Lists, first: date | None, last: date | None) -> list[DayStatus]:
    """One row per day from `first` to `last`; without them from the first to the last day that is known.

    It is about the items; in a lake that has boards alone, about those. A day is stale when either is.
    """
    is_about_items = "items" in lake.kinds
    rows = known_rows(lake, is_about_items)
    corrected = newest_days(lake.store, "items" if is_about_items else "boards")
    known = sorted({*rows, *corrected})
    if first is None or last is None:
        if not known:
            return []
        first, last = first or known[0], last or known[-1]
    stale = stale_days(lake, first, last)
    sources = [tables.ITEM_EVENTS] if is_about_items else [table for table, _ in lake.board_sources]
    opened = [progress.open_days(lake.store, lake.settings, tables.KINDS[table.name]) for table in sources]
    found = []
    for day in days_between(first, last):
        served, seen = lists.day_state(day), corrected.get(day)
        found.append(
            DayStatus(
                day=day,
                rows=rows[day],
                is_complete=progress.is_complete_in_all(opened, day),
                state="stale" if day in stale else state_of(seen, served),
                generation=served.generation if served else None,
                lake_version=seen.run.lake_version if seen else None,
            )
        )
    return found


def known_rows(lake: Lake, is_about_items: bool) -> Counter[date]:
    """Rows per day of the items, or of all that boards read."""
    version = lake.store.version(tables.ITEM_EVENTS)
    sources = [(tables.ITEM_EVENTS, version)] if is_about_items else lake.board_sources
    rows: Counter[date] = Counter()
    for table, at in sources:
        rows.update(lake.store.row_counts(table, at, date.min, date.max) if at >= 0 else {})
    return rows


def state_of(seen: CountedDay | None, served: DayState | None) -> str:
    """The state of a day that is not stale."""
    if seen and not seen.counted.is_complete:
        return "incomplete"
    if served:
        return served.state
    return "exact" if seen else "none"
