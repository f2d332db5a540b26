"""Boards read from Redis, or from the lake where Redis does not serve them.

Reads   Redis                    boards that are served, whole and at once
        what daybreak.queries.boards_in_lake does
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from daybreak.errors import UsageError
from daybreak.queries.boards_in_lake import LakeBoard, closed_board, open_board, points_of
from daybreak.rules.boards import Board, Boards
from daybreak.rules.seasons import Period
from daybreak.serving.boards import BoardLists, BoardMeta, Place, ServedBoard
from lakehouse.runs import newest_days
from lakehouse.stores.store import Store


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
    def lake(self) -> LakeBoard:
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
        """The player with `width` places on each side; None when the player is not among the published places."""
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


def default_period(store: Store, boards: Boards, board: Board) -> Period:
    """The board's first kind of period that holds the newest corrected day.

    Raises:
        UsageError: no day was ever corrected on any board.
    """
    newest = max(newest_days(store, "boards"), default=None)
    if newest is None:
        raise UsageError("no board was ever ranked here; correct days first: daybreak nightly --from DAY --to DAY")
    holding = boards.periods(board, newest, newest)
    return holding[0] if holding else boards.period(board, board.seasons[0])


def lookup(store: Store, lists: BoardLists, boards: Boards, name: str, period: str | None) -> Lookup:
    """The board of that name in the period that a user names, or in its default one."""
    board = boards.board(name)
    chosen = boards.period(board, period) if period else default_period(store, boards, board)
    return Lookup(store, lists, board, chosen)
