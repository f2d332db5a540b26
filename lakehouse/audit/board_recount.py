"""The second bookkeeper of boards: DuckDB counts and ranks from the files and compares with what was staged.

It shares nothing with the jobs but the files: it finds the events that count by itself
(`lakehouse.audit.first_copies`), adds them up in whole numbers of ten-thousandths, and ranks by DuckDB's own
window functions. Its memory is bounded as that of `lakehouse.audit.recount` is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from daybreak.rules.boards import Board
from daybreak.rules.seasons import Period
from daybreak.windows import to_micros
from lakehouse.audit.board_rules import Rules
from lakehouse.audit.duck import (
    DEFAULT_LIMITS,
    Limits,
    Statements,
    connection,
    create_table,
    differences_of,
    relation,
    set_variables,
)
from lakehouse.audit.first_copies import CountedDays, choose_part, part_count, place
from lakehouse.tables import registry as tables

CalendarRow = tuple[str, str, date, str, date, datetime | None]
"""(board, season, on_day, period, day, period_end): a day that counts in a period, as of `day`."""

STATEMENTS = Statements("board_recount.sql")
COUNTED = {
    tables.SCORE_EVENTS.name: ("player_id", "points", "region", "match_type", "season"),
    tables.ITEM_EVENTS.name: ("item_id", "weight", "region", "category"),
}
RANKED = pa.schema([("day", pa.date32()), ("board", pa.string()), ("period", pa.string())])
CALENDAR = pa.schema(
    [
        *(("board", pa.string()), ("season", pa.string()), ("on_day", pa.date32())),
        *(("period", pa.string()), ("day", pa.date32()), ("period_end_us", pa.int64())),
    ]
)
ON_DAYS = tables.Table("committed_days", "", pa.schema([f for f in tables.PLAYER_DAYS.schema if f.name != "day"]), ())


@dataclass(frozen=True)
class Partials:
    """Files of player_days that a ranking merges."""

    staged: Sequence[str] = ()
    committed: Sequence[str] = ()
    """Of days outside the run; their `day` is in the path alone."""


@dataclass(frozen=True)
class Ranking:
    """What a run ranks, and from what beside its own days."""

    calendar: Sequence[CalendarRow] = ()
    committed_days: Sequence[str] = ()
    """Files of player_days outside the run."""
    ranked: Collection[tuple[date, str, str]] | None = None
    """The (day, board, period) that are ranked anew, where other rows are staged beside them; without it every
    staged row must be due."""


@dataclass(frozen=True)
class FinalRanks:
    """One version of a closed period's ranks, as its rows name it."""

    board: Board
    period: Period
    day: date
    version: int
    lake_version: int


def differences(
    event_files: Mapping[str, Sequence[str]],
    staged: Mapping[str, Sequence[str]],
    *,
    rules: Rules,
    days: CountedDays,
    ranking: Ranking,
    limits: Limits = DEFAULT_LIMITS,
) -> list[str]:
    """What DuckDB counts or ranks differently, in words; empty when all that was staged holds.

    `event_files` by source table hold the days and the day before the first.

    Raises:
        LakeFailedError: a file cannot be read.
    """
    with connection(limits) as duck:
        _create(duck, rules)
        _count_days(duck, event_files, days, limits.part_rows)
        _merge_days(duck, Partials(staged.get(tables.PLAYER_DAYS.name, ()), ranking.committed_days))
        rows = [(*row[:5], None if row[5] is None else to_micros(row[5])) for row in ranking.calendar]
        create_table(duck, "calendar", CALENDAR, rows)
        STATEMENTS.run(duck, "in_periods", "totals", "standings", "recounted_snapshots", "recounted_histograms")
        for table in (tables.BOARD_SNAPSHOTS, tables.BOARD_HISTOGRAMS):
            relation(duck, table.name, staged.get(table.name, ()), table)
        if ranking.ranked is None:
            STATEMENTS.run(duck, "ranked")
        else:
            create_table(duck, "ranked", RANKED, list(ranking.ranked))
        STATEMENTS.run(duck, "staged_snapshots", "staged_histograms")
        return [
            *differences_of(duck, tables.PLAYER_DAYS, "days"),
            *differences_of(duck, tables.BOARD_SNAPSHOTS, "snapshots"),
            *differences_of(duck, tables.BOARD_HISTOGRAMS, "histograms"),
        ]


def ranks_differences(
    files: Sequence[str],
    partials: Partials,
    ranks: FinalRanks,
    *,
    bans: Mapping[str, datetime],
    limits: Limits = DEFAULT_LIMITS,
) -> list[str]:
    """What DuckDB ranks differently in a close: `files` are of season_ranks.

    Every player and every column is compared. Days outside the period, and of other boards, are passed over.

    Raises:
        LakeFailedError: a file cannot be read.
    """
    with connection(limits) as duck:
        _create(duck, Rules([ranks.board], bans=bans))
        _merge_days(duck, partials)
        create_table(duck, "calendar", CALENDAR, [])
        duck.execute(STATEMENTS.texts["close_calendar"], _close_calendar(ranks))
        set_variables(duck, version=ranks.version, lake_version=ranks.lake_version)
        STATEMENTS.run(duck, "in_periods", "totals", "standings", "recounted_ranks")
        relation(duck, tables.SEASON_RANKS.name, files, tables.SEASON_RANKS)
        STATEMENTS.run(duck, "staged_ranks")
        return differences_of(duck, tables.SEASON_RANKS, "ranks")


def _create(duck: Any, rules: Rules) -> None:
    rules.create(duck)
    STATEMENTS.run(duck, "merged")


def _count_days(duck: Any, event_files: Mapping[str, Sequence[str]], days: CountedDays, part_rows: int) -> None:
    for number, (source, columns) in enumerate(COUNTED.items()):
        place(duck, tables.TABLES[source], event_files.get(source, ()), columns, days)
        duck.execute("set variable source = $1", [source])
        rows = duck.execute("select count(*) from event_rows").fetchall()[0][0]
        parts = part_count(rows, part_rows)
        for part in range(parts):
            choose_part(duck, part, parts)
            STATEMENTS.run(duck, f"counted {source}", "units")
            STATEMENTS.run(duck, "next_partials" if number or part else "partials")
    STATEMENTS.run(duck, "recounted_days")


def _merge_days(duck: Any, partials: Partials) -> None:
    relation(duck, tables.PLAYER_DAYS.name, partials.staged, tables.PLAYER_DAYS)
    relation(duck, ON_DAYS.name, partials.committed, ON_DAYS)
    STATEMENTS.run(duck, "staged_days", "all_days")


def _close_calendar(ranks: FinalRanks) -> dict[str, object]:
    """What the statement of that name asks for."""
    board, period = ranks.board, ranks.period
    first, last = period.days
    named = {"board": board.name, "label": period.label, "period": period.name, "first": first, "last": last}
    return named | {"day": ranks.day, "period_end": None if period.end is None else to_micros(period.end)}
