"""The boards of a night: partials of the days, snapshots and histograms of every open period, checked and committed.

Reads   score_events, item_events  at the pinned versions
        player_days, board_snapshots, board_histograms  at the manifest; board_actions, newest
Stages  player_days       replaces the run's days
        board_snapshots, board_histograms  replace the periods ranked; those of other periods and days stay
Rerun   same events, boards and actions give the same rows; no column comes from the clock
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from daybreak.events import INSTANT
from daybreak.rules.boards import Boards
from daybreak.windows import ONE_DAY
from jobs.boards import ranks
from jobs.boards.plan import BoardPlan, calendar_rows
from jobs.boards.player_days import SCORED, player_days, scored_events
from jobs.run.run import Run
from lakehouse import actions, runs
from lakehouse.audit.board_recount import CalendarRow
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import TOTAL, Table

if TYPE_CHECKING:
    from lakehouse.engines.engine import StagedTable

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
RANKED = pa.schema([pa.field("as_of", pa.date32()), pa.field("board", pa.string()), pa.field("period", pa.string())])
TOTALS = Table(
    "board_totals",
    "Every player of every period ranked; staged by a run, from which its snapshots and histograms come.",
    pa.schema(
        [
            pa.field("day", pa.date32(), nullable=False),
            pa.field("board", pa.string(), nullable=False),
            pa.field("period", pa.string(), nullable=False),
            pa.field("player_id", pa.string(), nullable=False),
            pa.field("points", TOTAL, nullable=False),
            pa.field("reached_at", INSTANT, nullable=False),
            pa.field("event_count", pa.int64(), nullable=False),
        ]
    ),
    ("day", "board", "period", "player_id"),
)


@dataclass(frozen=True)
class BoardRun:
    """One run of boards: a night over their tables, the boards, and what is ranked."""

    run: Run
    boards: Boards
    plan: BoardPlan

    def derive(self) -> None:
        """Stage all three tables."""
        run = self.run
        with run.engine.failing_as("the derivation of the boards"):
            self.stage_player_days()
            if not self.plan.ranked:
                for table in tables.BOARD_TABLES[1:]:
                    self.stage_with_kept(table, run.engine.read([], table.schema))
            else:
                self.stage_totals()
                self.stage_snapshots()
                self.stage_histograms()
        run.state.step = "derived"
        run.save()

    def stage_player_days(self) -> None:
        """The run's days of every board."""
        run, pin = self.run, self.run.pin
        voided = actions.voided(run.store)
        lookback = run.settings.night.dedup_lookback
        frames = []
        for source in {board.source for board in self.boards}:
            scored = replace(SCORED, name=f"scored.{source}")
            events = scored_events(run.events_at(*self.pinned(source)), source, pin.first, pin.last, lookback)
            run.stage(scored, events)
            frames += [
                player_days(run.staged(scored), board, self.boards.labels(board), voided)
                for board in self.boards
                if board.source == source
            ]
        run.stage(tables.PLAYER_DAYS, reduce(DataFrame.unionByName, frames))

    def pinned(self, source: str) -> tuple[Table, int]:
        """The events of a source and the version of them that the run reads."""
        pin = self.run.pin
        return tables.TABLES[source], pin.read_version if tables.KINDS[source] == "scores" else pin.item_version

    def known_days(self) -> list[date]:
        """Days that have partials: committed outside the run, and staged by it."""
        run = self.run
        version = self.manifest_version(tables.PLAYER_DAYS)
        committed = run.store.row_counts(tables.PLAYER_DAYS, version, date.min, date.max) if version >= 0 else {}
        outside = [day for day in committed if not run.pin.first <= day <= run.pin.last]
        staged = (pq.read_table(file, columns=["day"])["day"].unique().to_pylist() for file in self.staged_days())
        return sorted({*outside, *(day for days in staged for day in days)})

    def staged_days(self) -> list[str]:
        """The run's own staged partials."""
        return self.run.staged_files(tables.PLAYER_DAYS)

    def committed_days(self) -> list[str]:
        """Files of the partials outside the run that a period needs."""
        version = self.manifest_version(tables.PLAYER_DAYS)
        if version < 0:
            return []
        first = min(each.period.days[0] for each in self.plan.ranked)
        last = max(each.as_of for each in self.plan.ranked)
        pin, store = self.run.pin, self.run.store
        files: list[str] = []
        if first < pin.first:
            files += store.files(tables.PLAYER_DAYS, version, first, pin.first - ONE_DAY)
        if pin.last < last:
            files += store.files(tables.PLAYER_DAYS, version, pin.last + ONE_DAY, last)
        return files

    def stage_totals(self) -> None:
        """Every player of every period that is ranked."""
        run = self.run
        calendar = self.parquet("calendar", CALENDAR, self.calendar())
        bans = self.parquet("bans", BANS, list(actions.banned(run.store).items()))
        days = self.days().transform(ranks.in_periods, calendar)
        days = days.transform(ranks.without_banned, bans if actions.banned(run.store) else None)
        totals = [
            days.filter(F.col("board") == F.lit(board.name)).transform(ranks.merge_days, board) for board in self.boards
        ]
        run.stage(TOTALS, reduce(DataFrame.unionByName, (TOTALS.conform(each) for each in totals)))

    def calendar(self) -> list[CalendarRow]:
        """Which day counts in which period."""
        return list(calendar_rows(self.plan.ranked, self.boards, self.known_days()))

    def days(self) -> DataFrame:
        """All partials that a period needs."""
        return self.run.gathered([*self.staged_days(), *self.committed_days()], without_day(tables.PLAYER_DAYS))

    def stage_snapshots(self) -> None:
        """The first players of each period, beside the kept ones of other periods."""
        ranked = [
            self.totals(board.name)
            .transform(ranks.rank_by_counting, board, board.depth)
            .withColumn("as_of", F.col("day"))
            .transform(conform_from, tables.BOARD_SNAPSHOTS)
            for board in self.boards
        ]
        self.stage_with_kept(tables.BOARD_SNAPSHOTS, reduce(DataFrame.unionByName, ranked))

    def stage_histograms(self) -> None:
        """Players per distinct points of each period, beside the kept ones of other periods."""
        counted = self.run.staged(TOTALS).transform(ranks.count_points).withColumn("as_of", F.col("day"))
        self.stage_with_kept(tables.BOARD_HISTOGRAMS, tables.BOARD_HISTOGRAMS.conform(counted))

    def totals(self, board: str) -> DataFrame:
        """The staged totals of one board."""
        return self.run.staged(TOTALS).filter(F.col("board") == F.lit(board))

    def stage_with_kept(self, table: Table, new: DataFrame) -> "StagedTable":
        """`new`, and what the manifest has in the span of other periods and days."""
        run = self.run
        version = self.manifest_version(table)
        files = run.store.files(table, version, *run.span(table)) if version >= 0 else []
        if not files:
            return run.stage(table, new)
        replaced = self.parquet("ranked", RANKED, [each.key for each in self.plan.ranked])
        kept = run.gathered(files, without_day(table)).join(replaced, RANKED.names, "left_anti")
        return run.stage(table, kept.withColumn("day", F.col("as_of")).select(*new.columns).unionByName(new))

    def parquet(self, name: str, schema: pa.Schema, rows: Sequence[tuple[object, ...]]) -> DataFrame:
        """Rows that the driver knows, as a frame of any engine."""
        folder = self.run.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
        table = pa.Table.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
        )
        pq.write_table(table, folder / "rows.parquet")
        return self.run.engine.read([str(folder / "rows.parquet")] if rows else [], schema)

    def manifest_version(self, table: Table) -> int:
        """The version of `table` that analysts see; -1 before the first run of boards."""
        return runs.newest_manifest(self.run.store).get(table.name, -1)


def without_day(table: Table) -> Table:
    """The columns that a table's files hold: the partition's own is in the folder's name only."""
    return replace(table, schema=pa.schema([field for field in table.schema if field.name != "day"]))


def conform_from(frame: DataFrame, table: Table) -> DataFrame:
    """The table's columns out of a wider frame."""
    return table.conform(frame.select(*table.schema.names))
