"""Boards read from Redis, or from the lake where Redis does not serve them.

Reads   Redis                                        boards that are served, whole and at once
        season_ranks, board_closes                   closed periods, newest
        board_snapshots, board_histograms, player_days  open periods, at the newest manifest
        board_actions                                newest
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from daybreak.boards import Board, Boards
from daybreak.errors import UsageError
from daybreak.seasons import Period
from daybreak.serving.boards import BoardLists, BoardMeta, Place, ServedBoard
from jobs import board_actions
from jobs.player_days import LAST
from lakehouse import analyst, tables
from lakehouse.store import Store
from lakehouse.tables import Table


@dataclass(frozen=True)
class Standing:
    """Where a player stands. Below the published depth there is no `place`, and points and rank are known still."""

    meta: BoardMeta
    player_id: str
    place: Place | None
    points: Decimal | None
    rank: int | None
    percentile: float | None


@dataclass(frozen=True)
class Lookup:
    """All reading of one board in one period."""

    store: Store
    lists: BoardLists
    board: Board
    period: Period

    @property
    def key(self) -> tuple[str, str]:
        """Board and period as Redis names them."""
        return self.board.name, self.period.name

    @cached_property
    def lake(self) -> "LakeBoard":
        """The board as the lake has it.

        Raises:
            UsageError: nothing has ranked it.
        """
        found = closed_board(self.store, self.board, self.period) or open_board(self.store, self.board, self.period)
        if found is None:
            raise UsageError(
                f"board {self.board.name} has no players in {self.period.name}: nothing ranked is in the lake or in "
                "Redis; take its scores in and correct the days with: daybreak nightly --from DAY --to DAY"
            )
        return found

    def top(self, k: int) -> ServedBoard:
        """The first `k` places."""
        return self.lists.top(*self.key, k) or self.lake.between(1, k)

    def around(self, player_id: str, width: int) -> ServedBoard | None:
        """The player with `width` places on each side; None when he is not among the published places."""
        if self.lists.meta(*self.key):
            return self.lists.around(*self.key, player_id, width)
        place = self.lake.place(player_id)
        return self.lake.between(place.position - width, place.position + width) if place else None

    def page(self, cursor: str | None, size: int) -> tuple[ServedBoard, str | None]:
        """The next `size` places, and the cursor behind them."""
        return self.lists.page(*self.key, cursor, size) or self.lake.page(cursor, size)

    def standing(self, player_id: str) -> Standing | None:
        """Where the player stands, at whatever depth; None without a score."""
        served = self.lists.around(*self.key, player_id, 0)
        if served and served.places:
            return self.standing_at(served.meta, served.places[0])
        meta = self.lists.meta(*self.key)
        if (meta is None or meta.state == "closed") and (place := self.lake.place(player_id)):
            return self.standing_at(self.lake.meta, place)
        meta = meta or self.lake.meta
        if meta.state == "closed":
            return None
        points = points_of(self.store, self.board, self.period, meta.as_of, player_id)
        if points is None:
            return None
        percentile, rank, _ = self.percentile(points)
        style_has_it = self.board.rank_style == "competition"
        return Standing(meta, player_id, None, points, rank if style_has_it else None, percentile)

    def standing_at(self, meta: BoardMeta, place: Place) -> Standing:
        """The standing of a published place."""
        percentile, _, _ = self.percentile(place.points)
        return Standing(meta, place.player_id, place, place.points, place.rank, percentile)

    def percentile(self, points: Decimal) -> tuple[float, int, int]:
        """(percentile, competition rank, population) of these points."""
        return self.lists.percentile(*self.key, points) or self.lake.percentile(points)


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


def closed_board(store: Store, board: Board, period: Period) -> LakeBoard | None:
    """The newest version of a closed period; None while it is open."""
    ours = (pc.field("board") == board.name) & (pc.field("period") == period.name)
    closes = store.dataset(tables.BOARD_CLOSES).filter(ours).to_table().to_pylist()
    if not closes:
        return None
    close = max(closes, key=lambda row: row["version"])
    ranks = store.dataset(tables.SEASON_RANKS).filter(
        ours & (pc.field("day") == close["day"]) & (pc.field("version") == close["version"])
    )
    histogram = ranks.to_table(columns=["points"]).group_by("points").aggregate([([], "count_all")])
    meta = replace(
        meta_of(board, period, close["day"], close["population"]),
        state="closed",
        version=close["version"],
        depth=max(board.depth, close["population"]),
        run_id=close["run_id"],
        lake_version=close["lake_version"],
        content_hash=close["content_hash"],
    )
    return LakeBoard(meta, ranks, histogram)


def open_board(store: Store, board: Board, period: Period) -> LakeBoard | None:
    """The newest snapshot of an open period; None when no player was ever on it."""
    at = analyst.manifest(store)
    if tables.BOARD_SNAPSHOTS.name not in at:
        return None
    day = newest_snapshot(store, at[tables.BOARD_SNAPSHOTS.name], board, period)
    if day is None:
        return None
    ranks = rows_of(store, tables.BOARD_SNAPSHOTS, at, board, period, day, day)
    histogram = rows_of(store, tables.BOARD_HISTOGRAMS, at, board, period, day, day).to_table(["points", "players"])
    return LakeBoard(meta_of(board, period, day, pc.sum(histogram["players"]).as_py()), ranks, histogram)


def newest_snapshot(store: Store, version: int, board: Board, period: Period) -> date | None:
    """The newest day as of which the period was ranked: nearly always the newest that there is."""
    days = sorted(store.row_counts(tables.BOARD_SNAPSHOTS, version, *period.days))
    at = {tables.BOARD_SNAPSHOTS.name: version}
    for first, last in [(days[-1], days[-1]), (days[0], days[-1])] if days else []:
        found = rows_of(store, tables.BOARD_SNAPSHOTS, at, board, period, first, last).to_table(["day"])["day"]
        if len(found):
            newest = pc.max(found).as_py()
            return newest if isinstance(newest, date) else None
    return None


def rows_of(
    store: Store, table: Table, at: Mapping[str, int], board: Board, period: Period, first: date, last: date
) -> ds.Dataset:
    """The board's rows of the period as of these days; only their files are opened."""
    days = (pc.field("day") >= pa.scalar(first)) & (pc.field("day") <= pa.scalar(last))
    ours = (pc.field("board") == board.name) & (pc.field("period") == period.name)
    return store.dataset(table, at[table.name]).filter(days & ours)


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


def points_of(store: Store, board: Board, period: Period, as_of: date, player_id: str) -> Decimal | None:
    """The points of one player as of a day, merged from his days; None without a score, and while he is banned."""
    at = analyst.manifest(store).get(tables.PLAYER_DAYS.name)
    since = board_actions.banned(store).get(player_id)
    if at is None or (since and (period.end is None or period.end > since)):
        return None
    first = period.days[0]
    days = (pc.field("day") >= pa.scalar(first)) & (pc.field("day") <= pa.scalar(as_of))
    his = (pc.field("board") == board.name) & (pc.field("player_id") == player_id)
    dataset = store.dataset(tables.PLAYER_DAYS, at).filter(days & his & (pc.field("season") == period.label))
    rows = dataset.to_table(["points", "changed_at", *LAST]).to_pylist()
    return merged_points(board, rows) if rows else None


def merged_points(board: Board, rows: list[dict[str, Any]]) -> Decimal:
    """Points of a player from his days, by the board's semantics."""
    in_turn = rows
    if board.semantics == "latest":
        in_turn = sorted(rows, key=lambda row: (row["changed_at"], *(row[name] for name in LAST)))
    points: list[Decimal] = [row["points"] for row in in_turn]
    match board.semantics:
        case "sum":
            return sum(points, Decimal(0))
        case "best":
            return max(points) if board.sign > 0 else min(points)
        case "latest":
            return points[-1]


def default_period(store: Store, boards: Boards, board: Board) -> Period:
    """The board's first kind of period that holds the newest corrected day.

    Raises:
        UsageError: no day was ever corrected on any board.
    """
    runs = store.read(tables.RUNS).select(["kind", "last_day"]).to_pylist()
    newest = max((row["last_day"] for row in runs if row["kind"] == "boards"), default=None)
    if newest is None:
        raise UsageError("no board was ever ranked here; correct days first: daybreak nightly --from DAY --to DAY")
    holding = boards.periods(board, newest, newest)
    return holding[0] if holding else boards.period(board, board.seasons[0])


def lookup(store: Store, lists: BoardLists, boards: Boards, name: str, period: str | None) -> Lookup:
    """The board of that name in the period that a user names, or in its default one."""
    board = boards.board(name)
    chosen = boards.period(board, period) if period else default_period(store, boards, board)
    return Lookup(store, lists, board, chosen)
