"""Boards in Redis: one board in one period is published at once and read with its meta.

- A reader sees the board before a publication or after it: never empty, torn or mixed
  (`test_serving_boards_readers`).
- A lower version never replaces a higher one, so an open board never replaces a closed one; within a version
  older events are refused (`test_serving_boards`). The fence has no TTL.
- One `ZRANGE` of the sorted set is the board in its order; points are exact decimals, as text.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from importlib.resources import files
from typing import TypeVar

import redis

from daybreak import settings
from daybreak.crashpoints import crash_point
from daybreak.errors import CheckFailedError, FenceRefusedError, UsageError
from daybreak.serving import keys
from daybreak.serving.client import reaches_redis
from daybreak.serving.hashes import STAGING_TTL, millis
from daybreak.serving.standings import (
    BoardMeta,
    Histogram,
    Place,
    ServedBoard,
    content_hash,
    faults,
    histogram_key,
    histogram_members,
    standing,
)

__all__ = ["BoardLists", "BoardMeta", "Histogram", "Place", "ServedBoard", "content_hash"]
M = TypeVar("M")
AT_ONCE = 1000
"""Members written or read back in one command while staging; more would hold up readers."""


class BoardLists:
    """All access to the boards in Redis."""

    def __init__(self, client: redis.Redis, conf: settings.Redis) -> None:
        self.client = client
        self.settings = conf
        scripts = files("daybreak.serving") / "scripts"
        self._swap, self._slice = (
            client.register_script((scripts / f"{name}.lua").read_text()) for name in ("swap_board", "slice_board")
        )

    @reaches_redis
    def publish(self, board: str, period: str, places: Sequence[Place], histogram: Histogram, meta: BoardMeta) -> int:
        """Replace a board in one period, and return its generation there.

        Staged, read back and compared, then swapped by one script. Equal `content_hash` keeps the generation and
        refreshes all else; other content gets `meta.generation`, or the next one where that is not above the
        last (0: always the next one). A higher version replaces a lower one whatever events it is from.

        Raises:
            FenceRefusedError: Redis holds a higher version, or of the same version newer events or other content
                of a higher generation; nothing changed.
            CheckFailedError: places, histogram and meta do not fit together, or what was staged reads back
                differently; nothing changed.
        """
        if fault := faults(board, period, places, histogram, meta):
            raise CheckFailedError(f"board {board} {period} is not published: {fault}; derive it again")
        staged = {part: keys.board_staged_key(board, period, meta.run_id, part) for part in keys.BOARD_PARTS}
        members = histogram_members(histogram)
        self._stage(staged, places, members, meta)
        self._compare(staged, places, members, meta)
        crash_point("board.staged")
        self.client.sadd(keys.BOARD_NAMES_KEY, board)
        self.client.sadd(keys.board_periods_key(board), period)
        outcome, generation, version, lake_version = self._swap(
            keys=[
                keys.board_state_key(board, period),
                *(keys.board_key(board, period, part) for part in keys.BOARD_PARTS),
                *staged.values(),
            ],
            args=[
                *(meta.state, meta.version, meta.generation, meta.lake_version),
                *(meta.content_hash, meta.run_id, meta.as_of.isoformat(), millis(self.settings.exact_ttl)),
            ],
        )
        if outcome in (b"closed", b"fenced"):
            self.client.unlink(*staged.values())
            raise FenceRefusedError(
                f"Redis serves board {board} {period} in version {version}, from events at lake version "
                f"{lake_version}, generation {generation}; version {meta.version}, lake version {meta.lake_version}, "
                f"generation {meta.generation} of run {meta.run_id} is older and was not published; "
                + ("a closed period changes by an amendment only" if outcome == b"closed" else "publish the newest run")
            )
        if outcome == b"gone":
            raise CheckFailedError(
                f"the staged board {board} {period} (run {meta.run_id}) went away before it was swapped in; "
                "the old one still stands: publish again"
            )
        crash_point("board.swapped")
        return int(generation)

    @reaches_redis
    def meta(self, board: str, period: str) -> BoardMeta | None:
        """What is known of the board in that period; None when it is not served."""
        found = self.client.hgetall(keys.board_key(board, period, "meta"))
        return BoardMeta.from_fields(found) if found else None

    @reaches_redis
    def top(self, board: str, period: str, k: int) -> ServedBoard | None:
        """The first `k` places; fewer where fewer are published, None when the board is not served."""
        _at_least(0, k, "k")
        return self._places(board, period, "", 0, k - 1, 0)

    @reaches_redis
    def rank(self, board: str, period: str, player_id: str) -> Place | None:
        """The player's place; None without a score and below the published depth. `around` 0 gives its meta too."""
        found = self.client.hget(keys.board_key(board, period, "players"), player_id.encode())
        return Place.from_json(player_id.encode(), found) if found else None

    @reaches_redis
    def around(self, board: str, period: str, player_id: str, width: int) -> ServedBoard | None:
        """The player with `width` places above and below, fewer at the ends; None where `rank` is None."""
        _at_least(0, width, "width")
        return self._places(board, period, player_id, -width, width, -1)

    @reaches_redis
    def page(self, board: str, period: str, cursor: str | None, size: int) -> tuple[ServedBoard, str | None] | None:
        """The next `size` places and the cursor behind them; no cursor at the end, None when it is not served.

        A cursor names the last player that was read and that player's position. The next page goes on behind where
        the player is now; when the player has left, at the old position, which the player behind has taken.

        Raises:
            UsageError: the size is below 1, or the cursor is not one of ours.
        """
        _at_least(1, size, "size")
        if cursor is None:
            found = self._places(board, period, "", 0, size - 1, 0)
        else:
            position, player_id = _read_cursor(cursor)
            found = self._places(board, period, player_id, 1, size, position - 1)
        if found is None:
            return None
        last = found.places[-1] if found.places else None
        is_end = last is None or last.position >= found.meta.published
        return found, None if last is None or is_end else f"{last.position}:{last.player_id}"

    @reaches_redis
    def percentile(self, board: str, period: str, points: Decimal) -> tuple[float, int, int] | None:
        """(percentile, rank, population) of a player who has these points, at whatever depth; exact.

        The percentile is the share of players strictly worse, x 100; the rank is 1 + players strictly better.
        None when the board is not served or nobody is on it.
        """
        with self.client.pipeline(transaction=True) as together:
            above = b"[" + histogram_key(points)
            together.zrangebylex(keys.board_key(board, period, "histogram"), above, "+", 0, 1)
            together.hgetall(keys.board_key(board, period, "meta"))
            found, fields = together.execute()
        if not fields or not (meta := BoardMeta.from_fields(fields)).population:
            return None
        better, worse = standing(meta, points, found)
        return 100 * worse / meta.population, better + 1, meta.population

    @reaches_redis
    def remove(self, board: str, period: str) -> None:
        """Take a board in one period away with its fence, as if it had never been published."""
        parts = (keys.board_key(board, period, part) for part in keys.BOARD_PARTS)
        self.client.unlink(keys.board_state_key(board, period), *parts)
        self.client.srem(keys.board_periods_key(board), period)

    @reaches_redis
    def names(self) -> list[str]:
        """The boards that were ever published, in the order of their names."""
        return sorted(board.decode() for board in self.client.smembers(keys.BOARD_NAMES_KEY))

    @reaches_redis
    def periods(self, board: str) -> list[str]:
        """The periods that the board is served for, in the order of their names."""
        known = sorted(period.decode() for period in self.client.smembers(keys.board_periods_key(board)))
        with self.client.pipeline(transaction=False) as together:
            for period in known:
                together.exists(keys.board_key(board, period, "meta"))
            answers = together.execute()
        return [period for period, is_served in zip(known, answers, strict=True) if is_served]

    def _places(
        self, board: str, period: str, player_id: str, first: int, last: int, otherwise: int
    ) -> ServedBoard | None:
        answer = self._slice(
            keys=[keys.board_key(board, period, part) for part in ("top", "players", "meta")],
            args=[player_id.encode(), first, last, otherwise],
        )
        if answer is None:
            return None
        fields, players, details = answer
        found = BoardMeta.from_fields(dict(zip(fields[::2], fields[1::2], strict=True)))
        return ServedBoard(found, tuple(Place.from_json(*each) for each in zip(players, details, strict=True)))

    def _stage(
        self, staged: dict[keys.BoardPart, str], places: Sequence[Place], members: Sequence[bytes], meta: BoardMeta
    ) -> None:
        self.client.unlink(*staged.values())
        with self.client.pipeline(transaction=False) as together:
            for some in _portions(places):
                together.zadd(staged["top"], {place.player_id.encode(): place.position for place in some})
                together.hset(staged["players"], mapping={place.player_id.encode(): place.to_json() for place in some})
            for points in _portions(members):
                together.zadd(staged["histogram"], dict.fromkeys(points, 0))
            together.hset(staged["meta"], mapping=meta.to_fields())
            for key in staged.values():
                together.pexpire(key, millis(STAGING_TTL))
            together.execute()

    def _compare(
        self, staged: dict[keys.BoardPart, str], places: Sequence[Place], members: Sequence[bytes], meta: BoardMeta
    ) -> None:
        players = self._all(staged["top"])
        read: list[Place] = []
        for some in _portions(players):
            details = self.client.hmget(staged["players"], some)
            read += [Place.from_json(*each) for each in zip(some, details, strict=True)]
        found = BoardMeta.from_fields(self.client.hgetall(staged["meta"]))
        if read != list(places) or self._all(staged["histogram"]) != members or found != meta:
            raise CheckFailedError(
                f"the staged board {meta.board} {meta.period} reads back differently ({len(read)} places of "
                f"{len(places)}); nothing was published: publish again"
            )

    def _all(self, key: str) -> list[bytes]:
        found: list[bytes] = []
        while some := self.client.zrange(key, len(found), len(found) + AT_ONCE - 1):
            found += some
        return found


def _portions(members: Sequence[M]) -> Iterator[Sequence[M]]:
    for first in range(0, len(members), AT_ONCE):
        yield members[first : first + AT_ONCE]


def _at_least(least: int, value: int, name: str) -> None:
    if value < least:
        raise UsageError(f"{name} = {value} is impossible; give {least} or more")


def _read_cursor(cursor: str) -> tuple[int, str]:
    position, _, player_id = cursor.partition(":")
    if not position.isascii() or not position.isdigit() or int(position) < 1 or not player_id:
        raise UsageError(f"{cursor!r} is no cursor; give the one that the page before returned, or none")
    return int(position), player_id
