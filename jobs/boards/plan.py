"""What a run of boards is about: its periods, each as of a day, and the pins of its events.

Reads   score_events, item_events, progress, runs, player_days, board_closes  newest versions
Stages  nothing; the pin is kept in the run's state
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from daybreak.clock import Clock
from daybreak.errors import InputIncompleteError
from daybreak.rules.boards import Board, Boards
from daybreak.rules.seasons import Period
from daybreak.settings import Settings
from jobs.run.pin import content_version, day_pins, next_attempt, require_complete
from jobs.run.run import Pin, RunState, parameters_hash
from lakehouse.audit.board_recount import CalendarRow
from lakehouse.runs import newest_days
from lakehouse.stores.store import Store
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

SOURCES = {table.name: table for table in (tables.SCORE_EVENTS, tables.ITEM_EVENTS)}
KINDS = {tables.SCORE_EVENTS.name: "scores", tables.ITEM_EVENTS.name: "items"}


@dataclass(frozen=True)
class Ranked:
    """One board in one period, as of the end of a day: what a run ranks anew."""

    board: Board
    period: Period
    as_of: date

    @property
    def key(self) -> tuple[date, str, str]:
        """Its rows' (day, board, period)."""
        return self.as_of, self.board.name, self.period.name


@dataclass(frozen=True)
class BoardPlan:
    """The state of a run of boards with what it ranks."""

    state: RunState
    ranked: Sequence[Ranked]
    closed: Collection[tuple[str, str]]


def sources_in(boards: Boards, store: Store) -> list[tuple[Table, int]]:
    """The event tables that any board reads and that exist, with their newest versions."""
    used = {board.source for board in boards}
    versions = [(table, store.version(table)) for name, table in SOURCES.items() if name in used]
    return [(table, version) for table, version in versions if version >= 0]


def closed_periods(store: Store) -> set[tuple[str, str]]:
    """(board, period) of every closed period: nights leave those alone."""
    rows = store.read(tables.BOARD_CLOSES).select(["board", "period"]).to_pylist()
    return {(row["board"], row["period"]) for row in rows}


def newest_ranked_day(store: Store, last: date) -> date:
    """The newest day that a run of boards has corrected and that was complete, at least `last`."""
    return max([last, *(day for day, seen in newest_days(store, "boards").items() if seen["is_complete"])])


def to_rank(boards: Boards, first: date, last: date, newest: date, closed: Collection[tuple[str, str]]) -> list[Ranked]:
    """Every open period that holds a day of the run, as of its own last day or the newest corrected one."""
    return [
        Ranked(board, period, min(period.days[1], newest))
        for board in boards
        for period in boards.periods(board, first, last)
        if (board.name, period.name) not in closed
    ]


def pin_boards(
    store: Store,
    settings: Settings,
    clock: Clock,
    boards: Boards,
    run_id: str,
    first: date,
    last: date,
    *,
    allow_incomplete: bool = False,
    also: Iterable[Ranked] = (),
) -> BoardPlan:
    """A new run over the days, which ranks the periods that hold one of them, and `also` those named.

    Raises:
        InputIncompleteError: a day is not complete and that was not allowed, or there are no events at all.
        CheckFailedError: a day too large to be summed exactly.
    """
    versions = sources_in(boards, store)
    if not versions:
        raise InputIncompleteError(
            f"no events for any board at {settings.lake_root}; take scores in with: daybreak ingest --kind scores FILE"
        )
    if not allow_incomplete:
        for table, _ in versions:
            require_complete(store, settings, first, last, KINDS[table.name])
    newest = newest_ranked_day(store, last)
    closed = closed_periods(store)
    ranked = {each.key: each for each in [*to_rank(boards, first, last, newest, closed), *also]}
    span = span_of(ranked.values(), (first, last))
    days = day_pins(store, settings, versions, first, last, [KINDS[table.name] for table, _ in versions])
    named = events_named(store)
    read: Mapping[str, int] = {table.name: version for table, version in versions}
    fenced = [
        (tables.PLAYER_DAYS, (first, last)),
        (tables.BOARD_SNAPSHOTS, span),
        (tables.BOARD_HISTOGRAMS, span),
    ]
    state = RunState(
        pin=Pin(
            run_id=run_id,
            kind="boards",
            first=first,
            last=last,
            lake_version=named,
            read_version=read.get(tables.SCORE_EVENTS.name, -1),
            item_version=read.get(tables.ITEM_EVENTS.name, -1),
            attempt=max(next_attempt(store, named, days, table) for table, days in fenced),
            days=days,
        ),
        ranked=sorted(ranked),
        spans={table.name: span for table in (tables.BOARD_SNAPSHOTS, tables.BOARD_HISTOGRAMS)},
        started_at=clock(),
        parameters_hash=parameters_hash(settings),
    )
    return BoardPlan(state, sorted(ranked.values(), key=lambda each: each.key), closed)


def events_named(store: Store) -> int:
    """What names a run's events: it rises with every event table, also with one that no board reads just now."""
    versions = [(table, store.version(table)) for table in SOURCES.values()]
    return sum(content_version(store, version, table) for table, version in versions if version >= 0)


def span_of(ranked: Iterable[Ranked], otherwise: tuple[date, date]) -> tuple[date, date]:
    """The first and the last as-of day."""
    days = [each.as_of for each in ranked]
    return (min(days), max(days)) if days else otherwise


def calendar_rows(ranked: Iterable[Ranked], boards: Boards, known: Sequence[date]) -> Iterable[CalendarRow]:
    """(board, season, on_day, period, day, period_end): which of the known days, in order, counts in which period."""
    for each in ranked:
        first, _ = each.period.days
        for day in known[bisect_left(known, first) : bisect_right(known, each.as_of)]:
            yield each.board.name, each.period.label, day, each.period.name, each.as_of, each.period.end
