"""What is known of each day: rows, completeness, provisional, exact or stale, generation, lake version.

Reads   item_events, score_events (log), progress, runs, Redis day states
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from daybreak.boards import Boards
from daybreak.serving.lists import Lists
from daybreak.settings import Settings
from daybreak.windows import days_between
from jobs.pin import complete_through, day_before, is_complete, lookback_rows
from lakehouse import tables
from lakehouse.store import Store
from lakehouse.tables import Table


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


def newest_days(store: Store, kind: str = "items") -> dict[date, dict[str, object]]:
    """What the newest run of `kind` recorded of each day, with its run_id and lake_version."""
    newest: dict[date, dict[str, object]] = {}
    runs = sorted(store.read(tables.RUNS).to_pylist(), key=lambda row: (row["committed_at"], row["run_id"]))
    for run in (run for run in runs if run["kind"] == kind):
        for day in run["days"]:
            newest[day["day"]] = day | {"run_id": run["run_id"], "lake_version": run["lake_version"]}
    return newest


def stale_days(store: Store, settings: Settings, first: date | None = None, last: date | None = None) -> list[date]:
    """Corrected days whose rows, or the look-back slice before them, are no longer what their run recorded.

    Judged by row counts of an append-only table, not by its version: `optimize` makes no day stale.
    """
    return changed_days(store, settings, newest_days(store), [tables.ITEM_EVENTS], first, last)


def stale_board_days(
    store: Store, settings: Settings, boards: Boards, first: date | None = None, last: date | None = None
) -> list[date]:
    """The same of the days that boards were ranked for, in the events that they read; or whose rules were others."""
    sources = [tables.TABLES[name] for name in sorted({board.source for board in boards})]
    newest = newest_days(store, "boards")
    stale = set(changed_days(store, settings, newest, sources, first, last))
    stale |= {
        day
        for day in other_rules(store, settings, boards, newest)
        if (first is None or day >= first) and (last is None or day <= last)
    }
    return sorted(stale)


def rules_of(boards: Boards, settings: Settings) -> dict[str, str]:
    """Board -> digest of all that shapes its partials: days that were derived by other rules are due again."""
    found = {}
    for board in boards:
        shaping = board.model_dump_json(include={"source", "filter", "semantics", "order", "reached_by"})
        shaping += f"{boards.labels(board)}{settings.night.dedup_lookback}"
        found[board.name] = hashlib.sha256(shaping.encode()).hexdigest()[:16]
    return found


def other_rules(
    store: Store, settings: Settings, boards: Boards, newest: Mapping[date, Mapping[str, object]]
) -> list[date]:
    """Days of `newest` whose run knew a board by other rules than those of now, or did not know it."""
    rules = rules_of(boards, settings)
    profiles = {
        row["run_id"]: row["profile"] for row in store.read(tables.RUNS).select(["run_id", "profile"]).to_pylist()
    }
    used = {run_id: json.loads(profiles[run_id]).get("rules", {}) for run_id in {s["run_id"] for s in newest.values()}}
    return [day for day, seen in newest.items() if not rules.items() <= used[seen["run_id"]].items()]


def changed_days(
    store: Store,
    settings: Settings,
    newest: Mapping[date, Mapping[str, object]],
    sources: Collection[Table],
    first: date | None,
    last: date | None,
) -> list[date]:
    """The days of `newest` between `first` and `last` that look different now in `sources`, added up."""
    recorded = {
        day: seen for day, seen in newest.items() if (first is None or day >= first) and (last is None or day <= last)
    }
    if not recorded or not sources:
        return []
    versions = [(table, version) for table in sources if (version := store.version(table)) >= 0]
    rows: Counter[date] = Counter()
    for table, version in versions:
        rows.update(store.row_counts(table, version, day_before(min(recorded)), max(recorded)))
    lookback = settings.night.dedup_lookback
    stale = []
    for day, seen in sorted(recorded.items()):
        before = day_before(day)
        if rows[day] != seen["rows"]:
            stale.append(day)
        elif rows[before] != seen["previous_rows"]:
            slices = (lookback_rows(store, version, before, before, lookback, table) for table, version in versions)
            if sum(found.get(before, 0) for found in slices) != seen["lookback_rows"]:
                stale.append(day)
    return stale


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


def ranges(days: Iterable[date]) -> Iterator[tuple[date, date]]:
    """Runs of consecutive days, each as (first, last)."""
    start = previous = None
    for day in sorted(days):
        if start is None or previous is None or (day - previous).days > 1:
            if start is not None and previous is not None:
                yield start, previous
            start = day
        previous = day
    if start is not None and previous is not None:
        yield start, previous
