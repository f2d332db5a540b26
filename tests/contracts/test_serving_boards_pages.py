"""Pages of a board: ranks go on, each player comes once, also while ranks move."""

from collections.abc import Iterator

import pytest

from daybreak.errors import UsageError
from daybreak.serving.boards import BoardLists
from tests.served_boards import BOARD, FIVE, PERIOD, pages, players, publish_board, serving_boards

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardLists]:
    with serving_boards(tmp_path_factory.mktemp("s")) as boards:
        yield boards


@pytest.fixture
def boards(server: BoardLists) -> BoardLists:
    server.client.flushall()
    return server


@pytest.mark.parametrize(
    ("style", "expected"), [("competition", [1, 1, 3, 3, 5]), ("dense", [1, 1, 2, 2, 3]), ("ordinal", [1, 2, 3, 4, 5])]
)
def test_pages_never_restart_ranks(boards: BoardLists, style: str, expected: list[int]):
    publish_board(boards, FIVE, rank_style=style)
    found = pages(boards, 3)
    assert [len(page.places) for page in found] == [3, 2]
    assert [place.rank for page in found for place in page.places] == expected
    assert [place.position for page in found for place in page.places] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("size", [1, 4, 5, 6])
def test_pages_end_without_an_empty_one(boards: BoardLists, size: int):
    publish_board(boards, [*FIVE, ("below the depth", 1)], depth=5)
    found = pages(boards, size)
    assert [place.player_id for page in found for place in page.places] == [player for player, _ in FIVE]
    assert all(page.places for page in found)


@pytest.mark.parametrize(
    "after",
    [
        [("new", 99), *FIVE],
        [("ben", 70), ("ana", 60), *FIVE[2:]],
        [*FIVE[:2], ("dee", 20), ("eli", 10), ("fay", 5)],
        [*FIVE[:3], ("eli", 31 - 2), ("dee", 28)],
    ],
    ids=["one joins above", "two change places", "the last one read leaves", "two behind change places"],
)
def test_each_player_comes_once_while_ranks_move_between_two_pages(boards: BoardLists, after: list[tuple[str, int]]):
    publish_board(boards, FIVE)
    answer = boards.page(BOARD, PERIOD, None, 3)
    assert answer is not None
    publish_board(boards, after, lake_version=2)
    rest = boards.page(BOARD, PERIOD, answer[1], 3)
    assert rest is not None
    behind = [player for player, _ in after if player not in ("new", "ana", "ben", "cai")]
    assert players(answer[0]) + players(rest[0]) == ["ana", "ben", "cai", *behind]
    assert rest[1] is None


@pytest.mark.parametrize("cursor", ["", "3", "x:ana", "0:ana", "-1:ana", "3:", "\u00b2:ana"])
def test_a_cursor_that_is_none_is_refused(boards: BoardLists, cursor: str):
    publish_board(boards, FIVE)
    with pytest.raises(UsageError, match="no cursor"):
        boards.page(BOARD, PERIOD, cursor, 3)
