"""What a run of boards is about: its periods, each as of a day, and the pins of its events.

Reads   score_events, item_events, progress, runs, player_days, board_closes  newest versions
Stages  nothing; the pin is kept in the run's state
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from daybreak.errors import InputIncompleteError
from daybreak.rules.boards import Board, Boards
from daybreak.rules.seasons import Period
from jobs.run.lake import Lake
from jobs.run.pin import content_version, day_pins, next_attempt
from jobs.run.run import Pin, RunState, parameters_hash
from jobs.run.staleness import rules_of
from lakehouse.audit.board_recount import CalendarRow
from lakehouse.closes import closed_periods
from lakehouse.progress import require_complete
from lakehouse.runs import newest_days
from lakehouse.stores.store import StoreReader
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

Sources = Sequence[tuple[Table, int]]
"""Event tables, each with the version that is read."""


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


def newest_ranked_day(store: StoreReader, last: date) -> date:
    """The newest day that a run of boards has corrected and that was complete, at least `last`."""
    return max([last, *(day for day, seen in newest_days(store, "boards").items() if seen.counted.is_complete)])


def to_rank(boards: Boards, first: date, last: date, newest: date, closed: Collection[tuple[str, str]]) -> list[Ranked]:
    """Every open period that holds a day of the run, as of its own last day or the newest corrected one."""
    return [
        Ranked(board, period, min(period.days[1], newest))
        for board in boards
        for period in boards.periods(board, first, last)
        if (board.name, period.name) not in closed
    ]


def pin_boards(
    lake: Lake,
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
    sources = require_sources(lake, first, last, allow_incomplete)
    newest, closed = newest_ranked_day(lake.store, last), closed_periods(lake.store)
    ranked = {each.key: each for each in [*to_rank(lake.boards, first, last, newest, closed), *also]}
    span = span_of(ranked.values(), (first, last))
    state = RunState(
        pin=pin_days(lake, run_id, first, last, span, sources),
        ranked=sorted(ranked),
        spans={table.name: span for table in (tables.BOARD_SNAPSHOTS, tables.BOARD_HISTOGRAMS)},
        rules=rules_of(lake.boards, lake.settings),
        started_at=lake.clock(),
        parameters_hash=parameters_hash(lake.settings),
    )
    return BoardPlan(state, sorted(ranked.values(), key=lambda each: each.key), closed)


def require_sources(lake: Lake, first: date, last: date, allow_incomplete: bool) -> Sources:
    """The events that boards read, complete on all days, or whatever is there.

    Raises:
        InputIncompleteError: there are none, or a day is not complete and that was not allowed.
    """
    sources = lake.board_sources
    if not sources:
        raise InputIncompleteError(
            f"no events for any board at {lake.settings.lake_root}; "
            "take scores in with: daybreak ingest --kind scores FILE"
        )
    if not allow_incomplete:
        for table, _ in sources:
            require_complete(lake.store, lake.settings, first, last, tables.KINDS[table.name])
    return sources


def pin_days(lake: Lake, run_id: str, first: date, last: date, span: tuple[date, date], sources: Sources) -> Pin:
    """The pin of a run of boards over the days, which replaces its ranks in `span`."""
    store, kinds = lake.store, [tables.KINDS[table.name] for table, _ in sources]
    named = events_named(store)
    read = {table.name: version for table, version in sources}
    fenced = [(tables.PLAYER_DAYS, (first, last)), (tables.BOARD_SNAPSHOTS, span), (tables.BOARD_HISTOGRAMS, span)]
    return Pin(
        run_id=run_id,
        kind="boards",
        first=first,
        last=last,
        lake_version=named,
        read_version=read.get(tables.SCORE_EVENTS.name, -1),
        item_version=read.get(tables.ITEM_EVENTS.name, -1),
        attempt=max(next_attempt(store, named, days, table) for table, days in fenced),
        days=day_pins(store, lake.settings, sources, first, last, kinds),
    )


def events_named(store: StoreReader) -> int:
    """What names a run's events: it rises with every event table, also with one that no board reads just now."""
    versions = [(table, store.version(table)) for table in tables.EVENTS.values()]
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
