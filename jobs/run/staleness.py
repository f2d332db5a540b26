"""Which corrected days are due again: their events, or the rules that shaped them, are no longer what a run recorded.

Reads   item_events, score_events (log), runs
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import date

from daybreak.rules.boards import Boards
from daybreak.settings import Settings
from jobs.run.pin import day_before, lookback_rows
from lakehouse.runs import newest_days
from lakehouse.stores.store import Store
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table


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
