"""Boards as an engine stages them from event files, and the same rows by the oracle: what the boards' tests compare."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from daybreak.events import INSTANT, ITEM_EVENT, SCORE_EVENT
from daybreak.rules.boards import Board, Boards
from daybreak.rules.seasons import Period, Season
from jobs.boards import ranks as board_ranks
from jobs.boards.player_days import SCORED, player_days, scored_events
from lakehouse.audit import board_recount
from lakehouse.audit.board_rules import Rules
from lakehouse.audit.duck import DEFAULT_LIMITS, Limits
from lakehouse.audit.first_copies import CountedDays
from lakehouse.engines.engine import Engine
from lakehouse.tables.registry import BOARD_HISTOGRAMS, BOARD_SNAPSHOTS, PLAYER_DAYS, SEASON_RANKS, Table
from tests.oracles import boards as oracles_boards
from tests.oracles import items as oracles

Row = dict[str, Any]
LOOKBACK = timedelta(hours=1)
ONE_DAY = timedelta(days=1)
EVENTS = {"score_events": SCORE_EVENT, "item_events": ITEM_EVENT}
VERSION = {"version": 1, "lake_version": 7}
CALENDAR = pa.schema(
    [
        pa.field("board", pa.string()),
        pa.field("season", pa.string()),
        pa.field("on_day", pa.date32()),
        pa.field("period", pa.string()),
        pa.field("day", pa.date32()),
        pa.field("period_end", INSTANT),
    ]
)
BANS = pa.schema([pa.field("player_id", pa.string()), pa.field("since", INSTANT)])
STAGED = (PLAYER_DAYS, SEASON_RANKS, BOARD_SNAPSHOTS, BOARD_HISTOGRAMS)


def one_part(row: Row) -> object:
    """All rows of a day in one file."""
    return None


@dataclass(frozen=True)
class Case:
    """Events and boards, and how they are cut: everything that rows depend on, and what they must not depend on."""

    scores: Sequence[Row]
    boards: Sequence[Board]
    items: Sequence[Row] = ()
    seasons: Mapping[str, Season] = field(default_factory=dict)
    bans: Mapping[str, datetime] = field(default_factory=dict)
    voided: Collection[str] = ()
    as_of: date = date.max
    runs: Sequence[tuple[date, date]] = ((date.min, date.max),)
    """The days that are derived together, in turn."""
    part_of: Callable[[Row], object] = one_part

    @property
    def config(self) -> Boards:
        return Boards({board.name: board for board in self.boards}, self.seasons)

    @property
    def labels(self) -> dict[str, list[str]]:
        return {board.name: self.config.labels(board) for board in self.boards}

    @property
    def rules(self) -> Rules:
        return Rules(self.boards, self.labels, self.bans, self.voided)

    def events(self, board: Board) -> Sequence[Row]:
        return self.scores if board.source == "score_events" else self.items

    @property
    def days(self) -> list[date]:
        return sorted({row["day"] for row in (*self.scores, *self.items)})

    def periods(self, board: Board) -> dict[str, Period]:
        """Every period of the board that holds an event's day up to `as_of`."""
        days = [day for day in self.days if day <= self.as_of]
        return {period.name: period for day in days for period in self.config.periods(board, day, day)}

    def as_of_day(self, period: Period) -> date:
        return min(period.days[1], self.as_of)

    def calendar(self) -> list[board_recount.CalendarRow]:
        return [
            (board.name, period.label, day, period.name, self.as_of_day(period), period.end)
            for board in self.boards
            for period in self.periods(board).values()
            for day in self.days
            if period.holds(day) and day <= self.as_of
        ]

    def event_files(self, folder: Path) -> dict[str, list[str]]:
        """Files of the events as the lake has them: by day, `day` only in the path; within one by `part_of`."""
        files: dict[str, list[str]] = {}
        for name, rows in (("score_events", self.scores), ("item_events", self.items)):
            parts: dict[tuple[date, object], list[Row]] = {}
            for row in rows:
                parts.setdefault((row["day"], self.part_of(row)), []).append(row)
            files[name] = [
                written(folder / name / f"day={day}" / f"part-{number}.parquet", part, EVENTS[name], ("day",))
                for number, ((day, _), part) in enumerate(parts.items())
            ]
        return files


def written(file: Path, rows: Sequence[Row], schema: pa.Schema, without: Sequence[str] = ()) -> str:
    """A Parquet file of the rows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema).drop_columns(list(without)), file)
    return str(file)


def derive(engine: Engine, case: Case, folder: Path, files: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Staged files by table: player_days, every rank as season_ranks, snapshots, histograms."""
    folder = folder / engine.name

    def stage(table: Table, frames: Sequence[DataFrame]) -> list[str]:
        return list(engine.stage(reduce(DataFrame.unionByName, frames), table, folder / table.name).files)

    def parquet(name: str, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> DataFrame:
        named = [dict(zip(schema.names, row, strict=True)) for row in rows]
        return engine.read([written(folder / f"{name}.parquet", named, schema)], schema)

    partials = []
    for source in sorted({board.source for board in case.boards}):
        scored = [
            scored_events(engine.read(within(files[source], run), EVENTS[source]), source, *run, LOOKBACK)
            for run in case.runs
        ]
        frame = engine.read(stage(Table(f"scored.{source}", "", SCORED.schema, ()), scored), SCORED.schema)
        partials += [
            player_days(frame, board, case.labels[board.name], case.voided)
            for board in case.boards
            if board.source == source
        ]
    found = {PLAYER_DAYS.name: stage(PLAYER_DAYS, partials)}
    calendar = parquet("calendar", case.calendar(), CALENDAR)
    bans = parquet("bans", list(case.bans.items()), BANS) if case.bans else None
    days = engine.read(found[PLAYER_DAYS.name], board_recount.ON_DAYS.schema)
    days = days.transform(board_ranks.in_periods, calendar).transform(board_ranks.without_banned, bans)
    merged = [
        board_ranks.merge_days(days.filter(F.col("board") == F.lit(board.name)), board).select(*TOTALS.schema.names)
        for board in case.boards
    ]
    totals = engine.read(stage(TOTALS, merged), TOTALS.schema)
    ranks, snapshots = [], []
    for board in case.boards:
        players = totals.filter(F.col("board") == F.lit(board.name))
        everyone = board_ranks.rank_by_counting(players, board, None)
        for name, value in VERSION.items():
            everyone = everyone.withColumn(name, F.lit(value))
        ranks.append(SEASON_RANKS.conform(everyone.select(*SEASON_RANKS.schema.names)))
        first = board_ranks.rank_by_counting(players, board, board.depth).withColumn("as_of", F.col("day"))
        snapshots.append(BOARD_SNAPSHOTS.conform(first.select(*BOARD_SNAPSHOTS.schema.names)))
    histograms = board_ranks.count_points(totals).withColumn("as_of", F.col("day"))
    return found | {
        SEASON_RANKS.name: stage(SEASON_RANKS, ranks),
        BOARD_SNAPSHOTS.name: stage(BOARD_SNAPSHOTS, snapshots),
        BOARD_HISTOGRAMS.name: stage(BOARD_HISTOGRAMS, [BOARD_HISTOGRAMS.conform(histograms)]),
    }


TOTALS = Table(
    "board_totals",
    "Every player of every period.",
    pa.schema(
        [
            SEASON_RANKS.schema.field(name)
            for name in ("day", "board", "period", "player_id", "points", "reached_at", "event_count")
        ]
    ),
    (),
)


def within(files: Sequence[str], run: tuple[date, date]) -> list[str]:
    """The files of the days and of the day before the first."""
    reach = run[0] - ONE_DAY if run[0] > date.min else run[0]
    return [file for file in files if reach <= date.fromisoformat(Path(file).parent.name[4:]) <= run[1]]


def rows_of(files: Sequence[str], table: Table) -> list[Row]:
    """All rows, by grain."""
    found = [row for file in files for row in pq.read_table(file).to_pylist()]
    return by_grain(found, table)


def by_grain(rows: Sequence[Row], table: Table) -> list[Row]:
    """In the order of the table's grain."""
    return sorted(
        ({name: row[name] for name in table.schema.names} for row in rows),
        key=lambda row: [row[name].encode() if isinstance(row[name], str) else row[name] for name in table.grain],
    )


def due(case: Case) -> dict[str, list[Row]]:
    """The rows of the same tables by the oracle."""
    found: dict[str, list[Row]] = {table.name: [] for table in STAGED}
    for board in case.boards:
        events = case.events(board)
        for day in case.days:
            found[PLAYER_DAYS.name] += partials_due(events, board, day, case.labels[board.name], case.voided)
        for period in case.periods(board).values():
            key = {"day": case.as_of_day(period), "board": board.name, "period": period.name}
            key["as_of"] = key["day"]
            rows = oracles_boards.board(events, board, period, case.bans, case.voided, case.as_of)
            ranks = [key | vars(row) | VERSION for row in rows]
            found[SEASON_RANKS.name] += ranks
            found[BOARD_SNAPSHOTS.name] += ranks[: board.depth]
            counts = oracles_boards.histogram(events, board, period, case.bans, case.voided, case.as_of)
            found[BOARD_HISTOGRAMS.name] += [key | {"points": points, "players": players} for points, players in counts]
    return {table.name: by_grain(found[table.name], table) for table in STAGED}


def partials_due(
    events: Sequence[Row], board: Board, day: date, labels: Sequence[str], voided: Collection[str]
) -> list[Row]:
    """The oracle's partials, with what tells a row's day and latest event twice."""
    latest: dict[tuple[str, str], datetime] = {}
    if board.semantics == "latest":
        for label in labels:
            period = Period(oracles_boards.ALL_TIME.kind, "all_time", day, day, label)
            for player, own in oracles_boards.counted(events, board, period, voided).items():
                last = max(own, key=lambda each: (each[board.reached_by], oracles.order_key(each)))
                latest[label, player] = last["occurred_at"]
    return [
        row | {"on_day": day, "last_occurred_at": latest.get((row["season"], row["player_id"]))}
        for row in oracles_boards.partials(events, board, day, labels, voided)
    ]


def staged_by_oracle(case: Case, folder: Path) -> dict[str, list[str]]:
    """Files of the oracle's rows, as if an engine had staged them."""
    rows = due(case)
    return {table.name: [written(folder / f"{table.name}.parquet", rows[table.name], table.schema)] for table in STAGED}


def close_recounted(case: Case, staged: Mapping[str, Sequence[str]], folder: Path) -> list[str]:
    """What DuckDB ranks differently in a close of the period, of those that are over, that has most players."""
    over = {
        (board.name, period.name): (board, period)
        for board in case.boards
        for period in case.periods(board).values()
        if period.days[1] <= case.as_of
    }
    rows = [row for row in rows_of(staged[SEASON_RANKS.name], SEASON_RANKS) if (row["board"], row["period"]) in over]
    if not rows:
        return []
    largest = max(rows, key=lambda row: row["population"])
    key = largest["board"], largest["period"]
    own = [row for row in rows if (row["board"], row["period"]) == key]
    file = written(folder / "close.parquet", own, SEASON_RANKS.schema)
    ranks = board_recount.FinalRanks(*over[key], day=largest["day"], **VERSION)
    partials = board_recount.Partials(staged[PLAYER_DAYS.name])
    return board_recount.ranks_differences([file], partials, ranks, bans=case.bans)


def recounted(
    case: Case,
    files: Mapping[str, list[str]],
    staged: Mapping[str, Sequence[str]],
    limits: Limits = DEFAULT_LIMITS,
) -> list[str]:
    """What DuckDB counts differently of a case derived whole."""
    return board_recount.differences(
        files,
        staged,
        rules=case.rules,
        days=CountedDays(date.min, date.max, LOOKBACK),
        ranking=board_recount.Ranking(case.calendar()),
        limits=limits,
    )
