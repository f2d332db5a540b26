"""The second bookkeeper of boards: DuckDB counts and ranks from the files and compares with what was staged.

It shares nothing with the jobs but the files: `board_recount.sql` deduplicates and adds up the events of the
run's days by itself, in whole numbers of ten-thousandths, and ranks by DuckDB's own window functions. Its
memory is bounded as that of `lakehouse.audit.recount` is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from daybreak.rules.boards import Board
from daybreak.rules.seasons import Period
from daybreak.windows import from_micros, to_micros
from lakehouse.audit import recount
from lakehouse.tables import registry as tables

CalendarRow = tuple[str, str, date, str, date, datetime | None]
"""(board, season, on_day, period, day, period_end): a day that counts in a period, as of `day`."""

FILTERED = ("region", "match_type", "category", "season")
RULES = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("board", "source", "semantics", "reached_by", "rank_style")),
        *(pa.field(name, pa.int64()) for name in ("sign", "depth")),
        *(pa.field(f"break_{n}", pa.string()) for n in (1, 2, 3)),
        *(pa.field(name, pa.list_(pa.string())) for name in FILTERED),
    ]
)
LABELS = pa.schema([("board", pa.string()), ("label", pa.string())])
BANS = pa.schema([("player_id", pa.string()), ("since_us", pa.int64())])
VOIDS = pa.schema([("event_id", pa.string())])
RANKED = pa.schema([("day", pa.date32()), ("board", pa.string()), ("period", pa.string())])
CALENDAR = pa.schema(
    [
        *(("board", pa.string()), ("season", pa.string()), ("on_day", pa.date32())),
        *(("period", pa.string()), ("day", pa.date32()), ("period_end_us", pa.int64())),
    ]
)
ON_DAYS = tables.Table("committed_days", "", pa.schema([f for f in tables.PLAYER_DAYS.schema if f.name != "day"]), ())


@dataclass(frozen=True)
class Limits:
    """What a recount may use."""

    bucket_rows: int = recount.BUCKET_ROWS
    memory: int = recount.MEMORY_LIMIT
    spill: Path | None = None
    """Where it spills; else where the system keeps its temporary files."""


def differences(
    event_files: Mapping[str, Sequence[str]],
    staged: Mapping[str, Sequence[str]],
    committed_days: Sequence[str],
    calendar: Sequence[CalendarRow],
    boards: Sequence[Board],
    *,
    labels: Mapping[str, Sequence[str]],
    first: date,
    last: date,
    lookback: timedelta,
    bans: Mapping[str, datetime],
    voided: Collection[str],
    ranked: Collection[tuple[date, str, str]] | None = None,
    limits: Limits = Limits(),
) -> list[str]:
    """What DuckDB counts or ranks differently, in words; empty when all that was staged holds.

    `event_files` by source table hold the days and the day before the first; `committed_days` are files of
    player_days outside the run. `ranked` are the (day, board, period) that the run ranks anew, where other
    rows are staged beside them; without it every staged row must be due.

    Raises:
        LakeFailedError: a file cannot be read.
    """
    with recount.connection(limits.memory, limits.spill) as duck:
        try:
            _rules(duck, boards, labels, bans, voided)
            _count_days(duck, event_files, first, last, lookback, limits.bucket_rows)
            _days(duck, staged.get(tables.PLAYER_DAYS.name, ()), committed_days)
            rows = [(*row[:5], None if row[5] is None else to_micros(row[5])) for row in calendar]
            _table(duck, "calendar", CALENDAR, rows)
            _rank(duck)
            for name in ("recounted_snapshots", "recounted_histograms"):
                _run(duck, name)
            for table in (tables.BOARD_SNAPSHOTS, tables.BOARD_HISTOGRAMS):
                recount.relation(duck, table.name, staged.get(table.name, ()), table)
            _ranked(duck, ranked)
            for name in ("staged_snapshots", "staged_histograms"):
                _run(duck, name)
            return [
                *_differences(duck, tables.PLAYER_DAYS, "days"),
                *_differences(duck, tables.BOARD_SNAPSHOTS, "snapshots"),
                *_differences(duck, tables.BOARD_HISTOGRAMS, "histograms"),
            ]
        except duckdb.Error as error:
            raise recount.failed(error) from error


def ranks_differences(
    ranks: Sequence[str],
    staged_days: Sequence[str],
    committed_days: Sequence[str],
    board: Board,
    period: Period,
    *,
    day: date,
    version: int,
    lake_version: int,
    bans: Mapping[str, datetime],
    limits: Limits = Limits(),
) -> list[str]:
    """What DuckDB ranks differently in a close: `ranks` are files of season_ranks, the rest files of player_days.

    Every player and every column is compared. Days outside the period, and of other boards, are passed over.

    Raises:
        LakeFailedError: a file cannot be read.
    """
    with recount.connection(limits.memory, limits.spill) as duck:
        try:
            _rules(duck, [board], {}, bans, ())
            _days(duck, staged_days, committed_days)
            _table(duck, "calendar", CALENDAR, [])
            first, last = period.days
            named = {"board": board.name, "label": period.label, "period": period.name, "first": first, "last": last}
            end = None if period.end is None else to_micros(period.end)
            duck.execute(_statement("close_calendar"), named | {"day": day, "period_end": end})
            _rank(duck)
            recount.set_variables(duck, version=version, lake_version=lake_version)
            _run(duck, "recounted_ranks")
            recount.relation(duck, tables.SEASON_RANKS.name, ranks, tables.SEASON_RANKS)
            _run(duck, "staged_ranks")
            return _differences(duck, tables.SEASON_RANKS, "ranks")
        except duckdb.Error as error:
            raise recount.failed(error) from error


def _rules(
    duck: Any,
    boards: Sequence[Board],
    labels: Mapping[str, Sequence[str]],
    bans: Mapping[str, datetime],
    voided: Collection[str],
) -> None:
    rules = []
    for board in boards:
        breaks = [*board.order_within_equals[:-1], None, None, None][:3]
        chosen = board.filter.columns()
        row = (board.name, board.source, board.semantics, board.reached_by, board.rank_style, board.sign, board.depth)
        rules.append((*row, *breaks, *(list(chosen.get(name, ())) for name in FILTERED)))
    _table(duck, "boards", RULES, rules)
    _table(duck, "labels", LABELS, [(board, label) for board, of_board in labels.items() for label in of_board])
    _table(duck, "bans", BANS, [(player, to_micros(since)) for player, since in bans.items()])
    _table(duck, "voids", VOIDS, [(event,) for event in voided])
    _run(duck, "merged")


def _count_days(
    duck: Any,
    event_files: Mapping[str, Sequence[str]],
    first: date,
    last: date,
    lookback: timedelta,
    bucket_rows: int,
) -> None:
    recount.set_variables(
        duck,
        first_day=(first - recount.EPOCH_DAY).days,
        last_day=(last - recount.EPOCH_DAY).days,
        lookback_us=lookback // timedelta(microseconds=1),
    )
    for number, table in enumerate((tables.SCORE_EVENTS, tables.ITEM_EVENTS)):
        recount.relation(duck, "event_rows", event_files.get(table.name, ()), table)
        rows = duck.execute("select count(*) from event_rows").fetchall()[0][0]
        buckets = max(1, -(-rows // bucket_rows))
        duck.execute("set variable source = $1", [table.name])
        recount.set_variables(duck, buckets=buckets, bucket=0)
        _run(duck, f"placed {table.name}")
        _run(duck, "events")
        for bucket in range(buckets):
            recount.set_variables(duck, bucket=bucket)
            for step in ("winners", "units", *([] if number or bucket else ["parts"]), "next_part"):
                _run(duck, step)
    _run(duck, "recounted_days")


def _days(duck: Any, staged: Sequence[str], committed: Sequence[str]) -> None:
    recount.relation(duck, tables.PLAYER_DAYS.name, staged, tables.PLAYER_DAYS)
    recount.relation(duck, ON_DAYS.name, committed, ON_DAYS)
    for view in ("staged_days", "all_days"):
        _run(duck, view)


def _rank(duck: Any) -> None:
    for step in ("in_periods", "totals", "standings"):
        _run(duck, step)


def _ranked(duck: Any, ranked: Collection[tuple[date, str, str]] | None) -> None:
    if ranked is not None:
        _table(duck, "ranked", RANKED, list(ranked))
        return
    keys = ", ".join(RANKED.names)
    duck.execute(
        f"create temp table ranked as select {keys} from board_snapshots "  # noqa: S608 - names are ours, values none
        f"union select {keys} from board_histograms"
    )


def _differences(duck: Any, table: tables.Table, what: str) -> list[str]:
    return [
        f"{table.name}: {_in_words(row)} {says}, by DuckDB's recount" for says, row in recount.differing(duck, what)
    ]


def _in_words(row: Mapping[str, Any]) -> str:
    told = []
    for name, value in row.items():
        if value is not None and name.endswith("_us"):
            told.append(f"{name.removesuffix('_us')}_at={from_micros(value).isoformat()}")
        elif name == "points":
            told.append(f"points={Decimal(value).scaleb(-4)}")
        else:
            told.append(f"{name}={value}")
    return ", ".join(told)


def _table(duck: Any, name: str, schema: pa.Schema, rows: Sequence[Sequence[object]]) -> None:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    duck.execute(f"drop table if exists {name}")
    duck.from_arrow(pa.Table.from_arrays(arrays, schema=schema)).create(name)


def _run(duck: Any, name: str) -> Any:
    return duck.execute(_statement(name))


def _statement(name: str) -> str:
    text = (package_files("lakehouse.audit") / "board_recount.sql").read_text()
    return dict(part.split("\n", 1) for part in text.split("-- name: ")[1:])[name]
