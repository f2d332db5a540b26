"""Boards as the lake has them, without an engine: places, points of all players, points of one player.

Reads   season_ranks, board_closes                      closed periods, newest
        board_snapshots, board_histograms, player_days  open periods, at the newest manifest
        board_actions                                   newest
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from daybreak.errors import UsageError
from daybreak.rules.boards import Board
from daybreak.rules.seasons import Period
from daybreak.serving.boards import BoardMeta, Place, ServedBoard
from lakehouse import actions
from lakehouse.closes import newest_versions
from lakehouse.runs import newest_days, newest_manifest
from lakehouse.stores.store import StoreReader
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

LAST = ("changed_at", "last_occurred_at", "last_received_at", "last_source", "last_partition", "last_offset")
"""What says which of two days has the later event, on a board of the latest points."""


@dataclass(frozen=True)
class LakeBoard:
    """One board in one period, its rows still in the lake: `ranks` has its places, `histogram` its points."""

    meta: BoardMeta
    ranks: ds.Dataset
    histogram: pa.Table

    def between(self, first: int, last: int) -> ServedBoard:
        """The places at these positions, both included."""
        inside = (pc.field("position") >= first) & (pc.field("position") <= last)
        rows = self.ranks.filter(inside).to_table().sort_by("position").to_pylist()
        return ServedBoard(self.meta, tuple(place_of(row) for row in rows))

    def place(self, player_id: str) -> Place | None:
        """The player's place; None where none is kept."""
        rows = self.ranks.filter(pc.field("player_id") == player_id).to_table().to_pylist()
        return place_of(rows[0]) if rows else None

    def page(self, cursor: str | None, size: int) -> tuple[ServedBoard, str | None]:
        """The next places and the cursor behind them, by the rule of `BoardLists.page`."""
        first = 1
        if cursor is not None:
            position, _, player_id = cursor.partition(":")
            if not position.isdecimal() or not player_id:
                raise UsageError(f"{cursor!r} is no cursor; give the one that the page before returned, or none")
            place = self.place(player_id)
            first = place.position + 1 if place else int(position)
        found = self.between(first, first + size - 1)
        last = found.places[-1] if found.places else None
        is_end = last is None or last.position >= self.meta.published
        return found, None if last is None or is_end else f"{last.position}:{last.player_id}"

    def percentile(self, points: Decimal) -> tuple[float, int, int]:
        """(percentile, competition rank, population) of these points, from the points of all players."""
        counted = list(zip(*(column.to_pylist() for column in self.histogram.columns), strict=True))
        more = sum(players for each, players in counted if each > points)
        less = sum(players for each, players in counted if each < points)
        better, worse = (more, less) if self.meta.order == "descending" else (less, more)
        return 100 * worse / self.meta.population, better + 1, self.meta.population


def place_of(row: Mapping[str, Any]) -> Place:
    """A place from a row of board_snapshots or season_ranks."""
    return Place(**{name: row[name] for name in Place.__dataclass_fields__})


def closed_board(store: StoreReader, board: Board, period: Period) -> LakeBoard | None:
    """The newest version of a closed period, by the rules as published; None while it is open."""
    close = newest_versions(store).get((board.name, period.name))
    if close is None:
        return None
    ranks = store.dataset(tables.SEASON_RANKS).filter(
        is_of(board, period) & (pc.field("day") == close.day) & (pc.field("version") == close.version)
    )
    histogram = ranks.to_table(columns=["points"]).group_by("points").aggregate([([], "count_all")])
    meta = replace(
        meta_of(close.rules, period, close.day, close.population),
        state="closed",
        version=close.version,
        depth=max(close.rules.depth, close.population),
        run_id=close.run_id,
        lake_version=close.lake_version,
        content_hash=close.content_hash,
    )
    return LakeBoard(meta, ranks, histogram)


def open_board(store: StoreReader, board: Board, period: Period) -> LakeBoard | None:
    """The newest snapshot of an open period; None when no player was ever on it."""
    at = newest_manifest(store)
    if tables.BOARD_SNAPSHOTS.name not in at:
        return None
    day = newest_snapshot(store, at[tables.BOARD_SNAPSHOTS.name], board, period)
    if day is None:
        return None
    ours = is_of(board, period)
    ranks = rows_of(store, tables.BOARD_SNAPSHOTS, at[tables.BOARD_SNAPSHOTS.name], day, day).filter(ours)
    points = rows_of(store, tables.BOARD_HISTOGRAMS, at[tables.BOARD_HISTOGRAMS.name], day, day)
    histogram = points.to_table(["points", "players"], filter=ours)
    return LakeBoard(meta_of(board, period, day, pc.sum(histogram["players"]).as_py() or 0), ranks, histogram)


def newest_snapshot(store: StoreReader, version: int, board: Board, period: Period) -> date | None:
    """The newest day as of which the period was ranked: nearly always the newest that there is.

    A run ranks every open period of its days, so a period whose rows are older than its newest corrected day has
    been emptied since, by a ban or a void, and is empty as of that day.
    """
    kept = newest_kept(store, version, board, period)
    corrected = max((day for day in newest_days(store, "boards") if period.holds(day)), default=None)
    return max(kept, corrected) if kept and corrected else kept


def newest_kept(store: StoreReader, version: int, board: Board, period: Period) -> date | None:
    """The newest day as of which the period has rows."""
    days = sorted(store.row_counts(tables.BOARD_SNAPSHOTS, version, *period.days))
    for first, last in [(days[-1], days[-1]), (days[0], days[-1])] if days else []:
        rows = rows_of(store, tables.BOARD_SNAPSHOTS, version, first, last)
        found = rows.to_table(["as_of"], filter=is_of(board, period))["as_of"]
        if len(found):
            newest = pc.max(found).as_py()
            return newest if isinstance(newest, date) else None
    return None


def rows_of(store: StoreReader, table: Table, version: int, first: date, last: date) -> ds.Dataset:
    """The rows of these days without `day`, which is in the folders' names; no other file is opened."""
    schema = pa.schema([field for field in table.schema if field.name != "day"])
    files = store.files(table, version, first, last)
    return ds.dataset(files, schema=schema, format="parquet") if files else ds.dataset(schema.empty_table())


def is_of(board: Board, period: Period) -> pc.Expression:
    """Picks the rows of a board in a period."""
    return (pc.field("board") == board.name) & (pc.field("period") == period.name)


def meta_of(board: Board, period: Period, as_of: date, population: int) -> BoardMeta:
    """What is known of a board that Redis does not serve: generation 0, nothing was published."""
    return BoardMeta(
        board=board.name,
        period=period.name,
        state="exact",
        generation=0,
        version=0,
        as_of=as_of,
        run_id="",
        lake_version=-1,
        population=population,
        depth=board.depth,
        content_hash="",
        order=board.order,
        decimals=board.decimals,
        rank_style=board.rank_style,
    )


def points_of(store: StoreReader, board: Board, period: Period, as_of: date, player_id: str) -> Decimal | None:
    """The points of one player as of a day, merged from the player's days; None without a score, and during a ban."""
    at = newest_manifest(store).get(tables.PLAYER_DAYS.name)
    since = actions.banned(store).get(player_id)
    if at is None or (since and period.ends_after(since)):
        return None
    of_player = (pc.field("board") == board.name) & (pc.field("player_id") == player_id)
    days = rows_of(store, tables.PLAYER_DAYS, at, period.days[0], as_of)
    rows = days.to_table(["points", *LAST], filter=of_player & (pc.field("season") == period.label)).to_pylist()
    return merged_points(board, rows) if rows else None


def merged_points(board: Board, rows: list[dict[str, Any]]) -> Decimal:
    """Points of a player from the days, by the board's semantics."""
    in_turn = rows
    if board.semantics == "latest":
        in_turn = sorted(rows, key=lambda row: tuple(row[name] for name in LAST))
    points: list[Decimal] = [row["points"] for row in in_turn]
    match board.semantics:
        case "sum":
            return sum(points, Decimal(0))
        case "best":
            return max(points) if board.sign > 0 else min(points)
        case "latest":
            return points[-1]
