"""What is known of each day: rows, completeness, provisional, exact or stale, generation, lake version.

Reads   item_events, score_events (log), progress, runs, Redis day states
"""

from dataclasses import dataclass
from datetime import date

from daybreak.serving.lists import Lists
from daybreak.settings import Settings
from daybreak.windows import days_between
from jobs.run.pin import complete_through, is_complete
from jobs.run.staleness import stale_days
from lakehouse.runs import newest_days
from lakehouse.stores.store import Store
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


def status(store: Store, settings: Settings, lists: Lists, first: date | None, last: date | None) -> list[DayStatus]:
    """One row per day from `first` to `last`; without them from the first to the last day that is known."""
    version = store.version(tables.ITEM_EVENTS)
    rows = store.row_counts(tables.ITEM_EVENTS, version, date.min, date.max) if version >= 0 else {}
    corrected = newest_days(store)
    known = sorted({*rows, *corrected})
    if first is None or last is None:
        if not known:
            return []
        first, last = first or known[0], last or known[-1]
    stale = set(stale_days(store, settings, first, last))
    first_open = complete_through(store, settings)
    found = []
    for day in days_between(first, last):
        served = lists.day_state(day)
        seen = corrected.get(day)
        if day in stale:
            state = "stale"
        elif seen and not seen["is_complete"]:
            state = "incomplete"
        elif served:
            state = served.state
        else:
            state = "exact" if seen else "none"
        found.append(
            DayStatus(
                day=day,
                rows=rows.get(day, 0),
                is_complete=is_complete(first_open, day),
                state=state,
                generation=served.generation if served else None,
                lake_version=int(str(seen["lake_version"])) if seen else None,
            )
        )
    return found
