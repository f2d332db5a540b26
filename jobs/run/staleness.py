"""Which corrected days are stale, so that a night is due again: the one definition, for items and for boards.

A day is stale when it no longer is what its newest run recorded:

- its rows, or those of the look-back slice before it, are others;
- it was counted before all of it had arrived, and all of it is there now;
- on boards also: a board is ranked by other rules now, or an event of the day was voided since the run began.

Judged by row counts of append-only tables, not by versions: `optimize` makes no day stale.

Reads   item_events, score_events (log), progress, runs, board_actions
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime

from daybreak.rules.boards import Board, Boards
from daybreak.settings import Settings
from daybreak.windows import day_before
from jobs.run.lake import Lake
from jobs.run.pin import lookback_rows
from lakehouse import actions, progress
from lakehouse.runs import CountedDay, newest_days
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

Days = Mapping[date, CountedDay]


def stale_days(lake: Lake, first: date = date.min, last: date = date.max) -> set[date]:
    """Stale days of items and of boards, from `first` to `last`."""
    return stale_item_days(lake, first, last) | stale_board_days(lake, first, last)


def stale_item_days(lake: Lake, first: date = date.min, last: date = date.max) -> set[date]:
    """Stale days of items."""
    recorded = between(newest_days(lake.store, "items"), first, last)
    version = lake.store.version(tables.ITEM_EVENTS)
    sources = [(tables.ITEM_EVENTS, version)] if version >= 0 else []
    return changed(lake, recorded, sources) | arrived(lake, recorded, sources)


def stale_board_days(
    lake: Lake, first: date = date.min, last: date = date.max, boards: Collection[Board] | None = None
) -> set[date]:
    """Stale days of boards; rules are compared for `boards`, or for all of them."""
    recorded = between(newest_days(lake.store, "boards"), first, last)
    stale = changed(lake, recorded, lake.board_sources) | arrived(lake, recorded, lake.board_sources)
    rules = rules_of(lake.boards, lake.settings)
    due = {board.name: rules[board.name] for board in (lake.boards if boards is None else boards)}
    stale |= {day for day, seen in recorded.items() if not due.items() <= seen.run.rules.items()}
    return stale | voided(lake, recorded)


def between(days: Days, first: date, last: date) -> Days:
    """The recorded days from `first` to `last`, in order."""
    return {day: seen for day, seen in sorted(days.items()) if first <= day <= last}


def changed(lake: Lake, recorded: Days, sources: Collection[tuple[Table, int]]) -> set[date]:
    """Days that have other rows, or other rows in the slice before them, in `sources` added up."""
    if not recorded or not sources:
        return set()
    rows: Counter[date] = Counter()
    for table, version in sources:
        rows.update(lake.store.row_counts(table, version, day_before(min(recorded)), max(recorded)))
    found = {day for day, seen in recorded.items() if rows[day] != seen.counted.rows}
    for day, seen in recorded.items():
        before = day_before(day)
        if day in found or rows[before] == seen.counted.previous_rows:
            continue
        lookback = lake.settings.night.dedup_lookback
        slices = (lookback_rows(lake.store, version, before, before, lookback, table) for table, version in sources)
        if sum(rows_by_day.get(before, 0) for rows_by_day in slices) != seen.counted.lookback_rows:
            found.add(day)
    return found


def arrived(lake: Lake, recorded: Days, sources: Iterable[tuple[Table, int]]) -> set[date]:
    """Days that were counted incomplete and are complete now."""
    waiting = [day for day, seen in recorded.items() if not seen.counted.is_complete]
    if not waiting:
        return set()
    opened = [progress.open_days(lake.store, lake.settings, tables.KINDS[table.name]) for table, _ in sources]
    return {day for day in waiting if progress.is_complete_in_all(opened, day)}


def voided(lake: Lake, recorded: Days) -> set[date]:
    """Days with an event that was voided since their run began."""
    found = set()
    for action in actions.actions(lake.store):
        at, since = action["at"], action["since"]
        if action["action"] == "void" and isinstance(since, datetime) and isinstance(at, datetime):
            seen = recorded.get(since.date())
            if seen and seen.run.started_at <= at:
                found.add(since.date())
    return found


def rules_of(boards: Boards, settings: Settings) -> dict[str, str]:
    """Board -> digest of all that shapes its partials: days that were derived by other rules are due again."""
    found = {}
    for board in boards:
        shaping = board.model_dump_json(include={"source", "filter", "semantics", "order", "reached_by"})
        shaping += f"{boards.labels(board)}{settings.night.dedup_lookback}"
        found[board.name] = hashlib.sha256(shaping.encode()).hexdigest()[:16]
    return found
