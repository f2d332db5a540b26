"""Served boards with only the interesting fields spelled out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from daybreak import settings
from daybreak.ranking import RankStyle, ranks
from daybreak.serving.boards import BoardLists, BoardMeta, Place, ServedBoard, content_hash
from daybreak.serving.connection import connect
from daybreak.serving.embedded import EmbeddedServer

BOARD, PERIOD = "goals", "2026-W28"
MONDAY = datetime(2026, 7, 6, tzinfo=UTC)
FIVE = [("ana", 50), ("ben", 50), ("cai", 30), ("dee", 30), ("eli", 10)]
Points = int | str | Decimal


@contextmanager
def serving_boards(home: Path) -> Iterator[BoardLists]:
    """Boards on an embedded server of their own, stopped at the end."""
    conf = settings.Settings(home=home)
    try:
        yield BoardLists(connect(conf), conf.redis)
    finally:
        EmbeddedServer(home).stop()


def places(scores: Iterable[tuple[str, Points]], style: RankStyle = "competition") -> list[Place]:
    """The places of players that are given best first; each reached the points a second after the one before."""
    pairs = [(player_id, Decimal(points)) for player_id, points in scores]
    found = ranks([points for _, points in pairs], style)
    return [
        Place(n, rank, player_id, points, MONDAY + timedelta(seconds=n), 1)
        for n, (rank, (player_id, points)) in enumerate(zip(found, pairs, strict=True), 1)
    ]


def board_meta(published: Sequence[Place], population: int, **fields: Any) -> BoardMeta:
    """The meta of an open board with these places."""
    values: dict[str, Any] = {
        "board": BOARD,
        "period": PERIOD,
        "state": "exact",
        "generation": 0,
        "version": 0,
        "as_of": date(2026, 7, 11),
        "run_id": "run-1",
        "lake_version": 1,
        "population": population,
        "depth": 1000,
        "content_hash": content_hash(published),
        "order": "descending",
        "decimals": 0,
        "rank_style": "competition",
    }
    return BoardMeta(**(values | fields))


def publish_board(
    boards: BoardLists,
    scores: Iterable[tuple[str, Points]],
    board: str = BOARD,
    period: str = PERIOD,
    depth: int = 1000,
    **fields: Any,
) -> int:
    """Publish players with their points, best first, down to `depth`; the histogram holds them all."""
    pairs = list(scores)
    published = places(pairs[:depth], fields.get("rank_style", "competition"))
    histogram = list(Counter(Decimal(points) for _, points in pairs).items())
    meta = board_meta(published, len(pairs), board=board, period=period, depth=depth, **fields)
    return boards.publish(board, period, published, histogram, meta)


def generation_of(generation: int, population: int) -> list[tuple[str, int]]:
    """A board whose points tell its generation, and whose players stand elsewhere in each."""
    return [
        (f"player-{(n * 7 + generation * 13) % population:05}", generation * 1_000_000 + (population - n) // 2)
        for n in range(population)
    ]


def players(found: ServedBoard | None) -> list[str]:
    """The players of a board that is served, best first."""
    assert found is not None
    return [place.player_id for place in found.places]


def pages(boards: BoardLists, size: int) -> list[ServedBoard]:
    """Every page of a board, one after the other."""
    found, cursor = [], None
    while True:
        answer = boards.page(BOARD, PERIOD, cursor, size)
        assert answer is not None
        found.append(answer[0])
        cursor = answer[1]
        if cursor is None:
            return found
