"""What a night would do, day by day: for a look before it is let loose. Nothing is written, nothing is started.

Reads   item_events, score_events (log), progress, runs, publications, the staging of dead runs
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from daybreak.settings import Settings
from jobs.boards.plan import BoardPlan, pin_boards
from jobs.publishing.generations import NEVER, lists_of, newest
from jobs.run.commit import days_of, unfinished
from jobs.run.lake import Lake
from jobs.run.pin import pin
from jobs.run.run import Pin
from lakehouse.stores.store import StoreReader
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

RUN_ID = "dry-run"


@dataclass(frozen=True)
class DayPlan:
    """One day of one half of a night: its items, or its boards."""

    what: str
    day: date
    rows: int
    is_complete: bool
    lake_version: int
    attempt: int
    replaces: str
    """Rows per table that its commits would replace."""
    publishes: str
    """What would be published in Redis."""


@dataclass(frozen=True)
class NightPlan:
    """A whole night, and the dead runs that it would finish first."""

    dead: list[str]
    days: list[DayPlan]

    @property
    def open_days(self) -> list[date]:
        """Days that have not all arrived."""
        return sorted({day.day for day in self.days if not day.is_complete})


def plan(lake: Lake, first: date, last: date) -> NightPlan:
    """What the night over `first` to `last` would do, were incomplete days allowed.

    Raises:
        InputIncompleteError: there are no events at all.
        CheckFailedError, FenceRefusedError: as the night would.
    """
    settings, store = lake.settings, lake.store
    days: list[DayPlan] = []
    if "items" in lake.kinds:
        pinned = pin(store, settings, lake.clock, RUN_ID, first, last, allow_incomplete=True).pin
        days += planned(pinned, settings, replaced(store, tables.DERIVED, pinned), generations(store, pinned))
    if "boards" in lake.kinds:
        boards = pin_boards(lake, RUN_ID, first, last, allow_incomplete=True)
        pinned = boards.state.pin
        days += planned(pinned, settings, replaced(store, tables.BOARD_TABLES, pinned), ranked(boards))
    return NightPlan([f"{state.pin.run_id} of {days_of(state)}" for state in unfinished(settings, None)], days)


def ranked(boards: BoardPlan) -> dict[date, str]:
    """The boards in a period that would be published for each day, in words; none that hold an incomplete day."""
    days = boards.state.pin.days
    open_days = [each.day for each in days if not each.is_complete]
    whole = [
        each
        for each in boards.ranked
        if not any(each.period.days[0] <= open_day <= each.as_of for open_day in open_days)
    ]
    return {
        day.day: ", ".join(
            f"{each.board.name} {each.period.name}" for each in whole if each.period.days[0] <= day.day <= each.as_of
        )
        for day in days
    }


def planned(
    pinned: Pin, settings: Settings, replaces: Mapping[date, str], publishes: Mapping[date, str]
) -> Iterator[DayPlan]:
    """The days of a run."""
    for day in pinned.days:
        yield DayPlan(
            what=pinned.kind,
            day=day.day,
            rows=day.rows,
            is_complete=day.is_complete,
            lake_version=pinned.lake_version,
            attempt=max([pinned.attempt, *(1 + attempt for attempt in attempts_of_the_dead(settings, pinned))]),
            replaces=replaces[day.day],
            publishes=publishes[day.day] if day.is_complete else "nothing, the day is incomplete",
        )


def attempts_of_the_dead(settings: Settings, pinned: Pin) -> Iterator[int]:
    """Attempts at these days that are taken by runs that died, and would be finished first."""
    for state in unfinished(settings, None):
        dead = state.pin
        same_events = (dead.kind, dead.lake_version) == (pinned.kind, pinned.lake_version)
        if same_events and dead.first <= pinned.last and pinned.first <= dead.last:
            yield dead.attempt


def replaced(store: StoreReader, derived: tuple[Table, ...], pinned: Pin) -> dict[date, str]:
    """Rows of each table that stand there now, by day, in words."""
    counts = {
        table.name: store.row_counts(table, version, pinned.first, pinned.last)
        for table in derived
        if (version := store.version(table)) >= 0
    }
    words = {
        day.day: ", ".join(f"{rows[day.day]} {name}" for name, rows in counts.items() if rows.get(day.day))
        for day in pinned.days
    }
    return {day: text or "nothing" for day, text in words.items()}


def generations(store: StoreReader, pinned: Pin) -> dict[date, str]:
    """What becomes of the generation of each day's lists, in words."""
    known = newest(store, [day.day for day in pinned.days])
    found = {}
    for day in pinned.days:
        generation, _ = known.get(lists_of(day.day), NEVER)
        changing = f"generation {generation + 1} where lists change, else {generation}"
        found[day.day] = changing if generation else "generation 1"
    return found
