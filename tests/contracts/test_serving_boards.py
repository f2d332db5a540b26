"""What every Redis that boards are read from must answer; run on the embedded one."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from daybreak.errors import UnreachableError, UsageError
from daybreak.serving import keys
from daybreak.serving.boards import BoardLists, ServedBoard, content_hash
from daybreak.serving.embedded import EmbeddedServer
from tests.served_boards import (
    BOARD,
    FIVE,
    MONDAY,
    PERIOD,
    board_meta,
    pages,
    places,
    players,
    publish_board,
    serving_boards,
)

pytestmark = pytest.mark.slow

MANY = [(f"p{n:02}", 1000 - n) for n in range(1, 77)]
ODD_IDS = ["Zo\u00eb", "Zoe\u0308", "\U0001f9ed", "\u05e9\u05dc\u05d5\u05dd", " padded ", "a:b", "12:x", "nul\0", "\n"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardLists]:
    with serving_boards(tmp_path_factory.mktemp("s")) as boards:
        yield boards


@pytest.fixture
def boards(server: BoardLists) -> BoardLists:
    server.client.flushall()
    return server


def test_a_board_and_its_meta_come_back_as_they_were_published(boards: BoardLists):
    given = places([("ana", "12.5"), ("ben", "0.0001"), ("cai", 0), ("dee", "-3")])
    given[0] = replace(given[0], reached_at=MONDAY + timedelta(microseconds=1), event_count=7)
    histogram = [(place.points, 1) for place in given]
    meta = board_meta(given, 4, run_id="run \u00e9", decimals=4, generation=3)
    assert boards.publish(BOARD, PERIOD, given, histogram, meta) == 3
    assert boards.top(BOARD, PERIOD, 10) == ServedBoard(meta, tuple(given))
    assert boards.meta(BOARD, PERIOD) == meta
    assert [boards.rank(BOARD, PERIOD, place.player_id) for place in given] == given
    assert players(boards.top(BOARD, PERIOD, 2)) == ["ana", "ben"]
    assert players(boards.top(BOARD, PERIOD, 0)) == []


def test_what_was_never_published_is_none(boards: BoardLists):
    assert boards.meta(BOARD, PERIOD) is None
    assert boards.top(BOARD, PERIOD, 3) is None
    assert boards.rank(BOARD, PERIOD, "ana") is None
    assert boards.around(BOARD, PERIOD, "ana", 3) is None
    assert boards.page(BOARD, PERIOD, None, 3) is None
    assert boards.page(BOARD, PERIOD, "3:ana", 3) is None
    assert boards.percentile(BOARD, PERIOD, Decimal(1)) is None
    assert boards.periods(BOARD) == []


def test_a_player_without_a_score_and_one_below_the_depth_are_none(boards: BoardLists):
    publish_board(boards, FIVE, depth=3)
    for player in ("nobody", "eli", ""):
        assert boards.rank(BOARD, PERIOD, player) is None
        assert boards.around(BOARD, PERIOD, player, 2) is None


@pytest.mark.parametrize(
    ("player", "width", "first", "last"),
    [
        ("p01", 5, 1, 6),
        ("p30", 5, 25, 35),
        ("p76", 5, 71, 76),
        ("p03", 5, 1, 8),
        ("p30", 0, 30, 30),
        ("p30", 90, 1, 76),
    ],
)
def test_76_players_around_one_are_clipped_at_the_ends(
    boards: BoardLists, player: str, width: int, first: int, last: int
):
    publish_board(boards, MANY)
    found = boards.around(BOARD, PERIOD, player, width)
    assert players(found) == [f"p{n:02}" for n in range(first, last + 1)]
    assert player in players(found)


def test_a_plain_reader_gets_the_exact_order_in_one_command(boards: BoardLists):
    publish_board(
        boards, [("zoe", 50), ("ana", 50), ("\u00e9va", 50), ("ben", 50), *((f"x{n}", 1) for n in range(2000))]
    )
    assert boards.client.zrange("daybreak:{board.goals.2026-W28}:top", 0, 4) == [
        b"zoe",
        b"ana",
        "\u00e9va".encode(),
        b"ben",
        b"x0",
    ]
    assert boards.client.zrange("daybreak:{board.goals.2026-W28}:top", 999, -1, withscores=True) == [(b"x995", 1000)]


def test_impossible_sizes_are_refused(boards: BoardLists):
    for read in (
        lambda: boards.page(BOARD, PERIOD, None, 0),
        lambda: boards.top(BOARD, PERIOD, -1),
        lambda: boards.around(BOARD, PERIOD, "ana", -1),
    ):
        with pytest.raises(UsageError, match="impossible"):
            read()


def test_points_are_exact_decimals(boards: BoardLists):
    big = Decimal(2**53 + 1)
    tenths = sum([Decimal("0.1")] * 10, Decimal(0))
    huge = Decimal("999999999999999999999999.9999")
    publish_board(
        boards, [("h", huge), ("a", big), ("b", big - 1), ("c", "900720"), ("d", "900719"), ("t", tenths), ("n", -huge)]
    )
    found = boards.top(BOARD, PERIOD, 10)
    assert found is not None
    assert [str(place.points) for place in found.places] == [
        "999999999999999999999999.9999",
        "9007199254740993.0000",
        "9007199254740992.0000",
        "900720.0000",
        "900719.0000",
        "1.0000",
        "-999999999999999999999999.9999",
    ]
    assert [place.rank for place in found.places] == [1, 2, 3, 4, 5, 6, 7]
    asked = [huge, big, big - 1, big - Decimal("0.0001"), Decimal(1), -huge]
    answers = [boards.percentile(BOARD, PERIOD, points) for points in asked]
    assert [answer and answer[1] for answer in answers] == [1, 2, 3, 3, 6, 7]


def test_player_ids_are_served_byte_for_byte(boards: BoardLists):
    publish_board(boards, [(player, 7) for player in ODD_IDS])
    assert players(boards.top(BOARD, PERIOD, 100)) == ODD_IDS
    assert [place.player_id for page in pages(boards, 1) for place in page.places] == ODD_IDS
    for position, player in enumerate(ODD_IDS, 1):
        place = boards.rank(BOARD, PERIOD, player)
        assert place is not None
        assert (place.player_id, place.position) == (player, position)
        assert player in players(boards.around(BOARD, PERIOD, player, 1))


def test_the_percentile_is_the_share_of_players_strictly_worse(boards: BoardLists):
    publish_board(boards, [(f"p{n}", n) for n in range(12, 0, -1)], depth=3)
    for n in range(1, 13):
        assert boards.percentile(BOARD, PERIOD, Decimal(n)) == (100 * (n - 1) / 12, 13 - n, 12)
    assert boards.percentile(BOARD, PERIOD, Decimal("0.5")) == (0.0, 13, 12)
    assert boards.percentile(BOARD, PERIOD, Decimal("-7")) == (0.0, 13, 12)
    assert boards.percentile(BOARD, PERIOD, Decimal("6.5")) == (50.0, 7, 12)
    assert boards.percentile(BOARD, PERIOD, Decimal(13)) == (100.0, 1, 12)


def test_the_percentile_of_equals_and_far_below_the_depth(boards: BoardLists):
    crowd = [(f"c{n}", 1830 - n // 2) for n in range(40_000)]
    publish_board(boards, [("ana", 5000), ("ben", 5000), *crowd], depth=2)
    assert boards.percentile(BOARD, PERIOD, Decimal(1830)) == (100 * 39_998 / 40_002, 3, 40_002)
    assert boards.percentile(BOARD, PERIOD, Decimal(1829)) == (100 * 39_996 / 40_002, 5, 40_002)
    assert boards.percentile(BOARD, PERIOD, Decimal(1830 - 19_999)) == (0.0, 40_001, 40_002)
    for bad in (Decimal("1.00001"), Decimal("NaN"), Decimal("Infinity"), Decimal(10**24)):
        with pytest.raises(UsageError, match="points"):
            boards.percentile(BOARD, PERIOD, bad)


def test_on_an_ascending_board_fewer_points_win(boards: BoardLists):
    publish_board(boards, [("ana", "-1"), ("ben", 9), ("cai", 9), ("dee", 12)], order="ascending", depth=3)
    found = boards.top(BOARD, PERIOD, 9)
    assert players(found) == ["ana", "ben", "cai"]
    assert found is not None
    assert [place.rank for place in found.places] == [1, 2, 2]
    asked = [boards.percentile(BOARD, PERIOD, Decimal(points)) for points in (-5, -1, 9, 10, 12, 13)]
    assert asked == [(100.0, 1, 4), (75.0, 1, 4), (25.0, 2, 4), (25.0, 4, 4), (0.0, 4, 4), (0.0, 5, 4)]


def test_an_empty_board_is_a_meta_alone(boards: BoardLists):
    publish_board(boards, FIVE)
    assert publish_board(boards, [], lake_version=2) == 2
    found = boards.top(BOARD, PERIOD, 3)
    assert found is not None
    assert (found.places, found.meta.population) == ((), 0)
    assert boards.page(BOARD, PERIOD, None, 3) == (found, None)
    assert boards.page(BOARD, PERIOD, "2:ben", 3) == (found, None)
    assert boards.percentile(BOARD, PERIOD, Decimal(50)) is None
    assert boards.rank(BOARD, PERIOD, "ana") is None
    assert not boards.client.exists(*(keys.board_key(BOARD, PERIOD, part) for part in ("top", "players", "histogram")))


def test_no_command_walks_the_whole_server(boards: BoardLists):
    boards.client.config_resetstat()
    publish_board(boards, MANY)
    pages(boards, 20)
    boards.periods(BOARD)
    boards.remove(BOARD, PERIOD)
    assert not set(boards.client.info("commandstats")) & {"cmdstat_keys", "cmdstat_scan", "cmdstat_del"}


def test_a_long_board_is_served_whole(boards: BoardLists):
    scores = [(f"player-{n}", 50_000 - n // 3) for n in range(12_345)]
    publish_board(boards, scores, depth=20_000)
    found = boards.top(BOARD, PERIOD, 20_000)
    assert found is not None
    assert content_hash(found.places) == found.meta.content_hash


def test_a_server_that_goes_away_is_an_unreachable_error(tmp_path: Path):
    with serving_boards(tmp_path / "g") as boards:
        publish_board(boards, FIVE)
        EmbeddedServer(tmp_path / "g").stop()
        with pytest.raises(UnreachableError, match="does not answer"):
            boards.top(BOARD, PERIOD, 3)
