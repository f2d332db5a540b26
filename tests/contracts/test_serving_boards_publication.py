"""What every Redis must do while boards are published on it: fences, generations, staging, times to live."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from redis.crc import key_slot

from daybreak.errors import CheckFailedError, FenceRefusedError
from daybreak.serving import keys
from daybreak.serving.boards import BoardLists, Histogram, Place, content_hash
from tests.served_boards import BOARD, FIVE, MONDAY, PERIOD, board_meta, places, players, publish_board, serving_boards

pytestmark = pytest.mark.slow

TWO = places([("ana", 5), ("ben", 3)])
HISTOGRAM: Histogram = [(Decimal(5), 1), (Decimal(3), 1)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardLists]:
    with serving_boards(tmp_path_factory.mktemp("s")) as boards:
        yield boards


@pytest.fixture
def boards(server: BoardLists) -> BoardLists:
    server.client.flushall()
    return server


def everything(boards: BoardLists) -> dict[bytes, object]:
    """Every key with its whole content."""
    read = {b"hash": boards.client.hgetall, b"set": boards.client.smembers}
    return {
        key: read.get(boards.client.type(key), lambda k: boards.client.zrange(k, 0, -1, withscores=True))(key)
        for key in boards.client.keys("*")
    }


def test_older_events_are_refused_and_change_nothing(boards: BoardLists):
    publish_board(boards, FIVE, lake_version=7, generation=2)
    before = everything(boards)
    for scores, version, generation in ((FIVE, 6, 2), ([("old", 1)], 6, 9), ([("old", 1)], 7, 1)):
        with pytest.raises(FenceRefusedError, match=r"goals 2026-W28 in version 0.*lake version 7, generation 2;"):
            publish_board(boards, scores, lake_version=version, generation=generation, run_id="late")
        assert everything(boards) == before
    assert FenceRefusedError.exit_code == 5


def test_older_events_are_refused_even_when_the_board_has_expired(boards: BoardLists):
    publish_board(boards, FIVE, lake_version=7)
    boards.client.delete(*(keys.board_key(BOARD, PERIOD, part) for part in keys.BOARD_PARTS))
    with pytest.raises(FenceRefusedError):
        publish_board(boards, [("old", 1)], lake_version=6)
    assert boards.top(BOARD, PERIOD, 3) is None
    assert boards.periods(BOARD) == []


def test_an_open_board_never_replaces_a_closed_one(boards: BoardLists):
    publish_board(boards, FIVE, lake_version=9)
    closed = {"state": "closed", "version": 1}
    assert publish_board(boards, FIVE[:4], lake_version=8, run_id="close", **closed) == 2
    before = everything(boards)
    with pytest.raises(FenceRefusedError, match=r"version 1.*closed period changes by an amendment only"):
        publish_board(boards, FIVE, lake_version=20, generation=9, run_id="night")
    assert everything(boards) == before
    assert publish_board(boards, FIVE[:3], lake_version=8, **closed | {"version": 2}) == 3
    with pytest.raises(FenceRefusedError, match="version 2"):
        publish_board(boards, FIVE[:4], lake_version=30, **closed)
    found = boards.top(BOARD, PERIOD, 9)
    assert found is not None
    assert (found.meta.state, found.meta.version, found.meta.generation) == ("closed", 2, 3)
    assert players(found) == ["ana", "ben", "cai"]


def test_a_close_with_equal_content_keeps_the_generation_and_closes(boards: BoardLists):
    assert publish_board(boards, FIVE) == 1
    assert publish_board(boards, FIVE, state="closed", version=1) == 1
    found = boards.meta(BOARD, PERIOD)
    assert found is not None
    assert (found.state, found.version, found.generation) == ("closed", 1, 1)


def test_equal_content_keeps_its_generation_and_says_who_confirmed_it(boards: BoardLists):
    assert publish_board(boards, FIVE, lake_version=7, generation=4) == 4
    later = date(2026, 7, 12)
    assert publish_board(boards, FIVE, lake_version=9, generation=5, run_id="again", as_of=later) == 4
    found = boards.meta(BOARD, PERIOD)
    assert found is not None
    assert (found.generation, found.run_id, found.as_of, found.lake_version) == (4, "again", later, 9)
    state = boards.client.hgetall(keys.board_state_key(BOARD, PERIOD))
    assert (state[b"generation"], state[b"run_id"], state[b"lake_version"]) == (b"4", b"again", b"9")


def test_other_content_raises_the_generation(boards: BoardLists):
    given = [(FIVE, 0, 1), (FIVE[:4], 0, 2), (FIVE[:3], 2, 3), (FIVE[:2], 8, 8), (FIVE[:2], 0, 8), (FIVE, 0, 9)]
    for scores, generation, expected in given:
        assert publish_board(boards, scores, generation=generation) == expected
        found = boards.meta(BOARD, PERIOD)
        assert found is not None
        assert found.generation == expected


def test_publishing_again_heals_what_was_lost(boards: BoardLists):
    publish_board(boards, FIVE)
    before = everything(boards)
    boards.client.delete(keys.board_key(BOARD, PERIOD, "top"))
    boards.client.hdel(keys.board_key(BOARD, PERIOD, "players"), "ana")
    publish_board(boards, FIVE)
    assert everything(boards) == before


def test_details_that_were_lost_are_named(boards: BoardLists):
    publish_board(boards, FIVE)
    boards.client.hdel(keys.board_key(BOARD, PERIOD, "players"), "ben")
    with pytest.raises(CheckFailedError, match="'ben' in Redis are not readable"):
        boards.top(BOARD, PERIOD, 3)
    boards.client.hdel(keys.board_key(BOARD, PERIOD, "meta"), "as_of")
    with pytest.raises(CheckFailedError, match="meta in Redis is not readable"):
        boards.meta(BOARD, PERIOD)


@pytest.mark.parametrize(
    ("given", "histogram", "fields", "fault"),
    [
        (TWO[::-1], HISTOGRAM, {}, "positions do not run"),
        (TWO[1:], HISTOGRAM, {}, "positions do not run"),
        ([TWO[0], replace(TWO[1], player_id="ana")], HISTOGRAM, {}, "on it twice"),
        (TWO, HISTOGRAM, {"order": "ascending"}, "points are not ascending"),
        ([TWO[0], replace(TWO[1], rank=1)], HISTOGRAM, {}, "ranks are not in competition style"),
        (TWO[:1], HISTOGRAM, {}, "it has 1 places where"),
        (TWO, HISTOGRAM, {"depth": 1}, "it has 2 places where"),
        (TWO, HISTOGRAM[:1], {}, "holds 1 players and its population is 2"),
        (TWO, [(Decimal(5), 1), (Decimal("5.0"), 1)], {}, "names points twice"),
        (TWO, HISTOGRAM, {"period": "2026"}, "its meta is of goals 2026"),
        (TWO, HISTOGRAM, {"version": 1}, "exact in version 1"),
        (TWO, HISTOGRAM, {"state": "closed"}, "closed in version 0"),
        ([TWO[0], replace(TWO[1], reached_at=MONDAY.replace(tzinfo=None))], HISTOGRAM, {}, "reads back differently"),
    ],
)
def test_what_is_no_board_is_not_published(
    boards: BoardLists, given: list[Place], histogram: Histogram, fields: dict[str, object], fault: str
):
    publish_board(boards, FIVE)
    before = boards.top(BOARD, PERIOD, 9)
    with pytest.raises(CheckFailedError, match=fault):
        boards.publish(BOARD, PERIOD, given, histogram, board_meta(given, 2, **fields))
    assert boards.top(BOARD, PERIOD, 9) == before


def test_staging_that_has_expired_changes_nothing(boards: BoardLists, monkeypatch: pytest.MonkeyPatch):
    publish_board(boards, FIVE)
    before = everything(boards)
    staged = [keys.board_staged_key(BOARD, PERIOD, "late", part) for part in keys.BOARD_PARTS]
    monkeypatch.setattr("daybreak.serving.boards.crash_point", lambda name: boards.client.delete(*staged))
    with pytest.raises(CheckFailedError, match="went away"):
        publish_board(boards, FIVE[:3], run_id="late")
    assert everything(boards) == before


def test_all_keys_of_a_board_in_a_period_lie_in_one_slot(boards: BoardLists, monkeypatch: pytest.MonkeyPatch):
    seen: set[bytes] = set()
    monkeypatch.setattr("daybreak.serving.boards.crash_point", lambda name: seen.update(boards.client.keys("*")))
    publish_board(boards, FIVE, run_id="run{1}")
    registers = {keys.board_periods_key(BOARD).encode(), keys.BOARD_NAMES_KEY.encode()}
    prefix = keys.board_prefix(BOARD, PERIOD).encode()
    assert {key.removeprefix(prefix) for key in seen - registers} == {
        *(part.encode() for part in (*keys.BOARD_PARTS, "state")),
        *(f"next.run{{1}}:{part}".encode() for part in keys.BOARD_PARTS),
    }
    assert len({key_slot(key) for key in seen - registers}) == 1
    assert key_slot(prefix) != key_slot(keys.board_prefix(BOARD, "2026-W29").encode())


def test_dots_in_names_keep_boards_apart(boards: BoardLists):
    publish_board(boards, [("one", 1)], board="goals.eu", period="2026")
    publish_board(boards, [("two", 2)], board="goals", period="eu.2026")
    assert players(boards.top("goals.eu", "2026", 9)) == ["one"]
    assert players(boards.top("goals", "eu.2026", 9)) == ["two"]


def test_a_board_expires_by_policy_and_the_fence_does_not(boards: BoardLists, monkeypatch: pytest.MonkeyPatch):
    left: dict[bytes, int] = {}

    def note(name: str) -> None:
        left.update({key: boards.client.pttl(key) for key in boards.client.keys("*next.*")})

    monkeypatch.setattr("daybreak.serving.boards.crash_point", note)
    publish_board(boards, FIVE)
    publish_board(boards, FIVE[:3], state="closed", version=1)
    assert len(left) == 4
    assert all(0 < each <= 600_000 for each in left.values())
    days = {part: boards.client.pttl(keys.board_key(BOARD, PERIOD, part)) / 86_400_000 for part in keys.BOARD_PARTS}
    assert {part: round(each, 2) for part, each in days.items()} == dict.fromkeys(keys.BOARD_PARTS, 400.0)
    assert {key.decode() for key in boards.client.keys("*") if boards.client.pttl(key) == -1} == {
        keys.board_state_key(BOARD, PERIOD),
        keys.board_periods_key(BOARD),
        keys.BOARD_NAMES_KEY,
    }


def test_the_periods_of_a_board_are_known_and_a_removed_one_is_gone(boards: BoardLists):
    for period in ("2026-W28", "all_time", "2026-03-01"):
        publish_board(boards, FIVE, period=period, lake_version=7)
    publish_board(boards, FIVE, board="other", period="2027")
    assert boards.periods(BOARD) == ["2026-03-01", "2026-W28", "all_time"]
    assert boards.names() == sorted([BOARD, "other"])
    boards.remove(BOARD, "all_time")
    boards.remove(BOARD, "never there")
    assert boards.periods(BOARD) == ["2026-03-01", "2026-W28"]
    assert boards.top(BOARD, "all_time", 3) is None
    assert not boards.client.keys("*all_time*")
    assert publish_board(boards, FIVE[:3], period="all_time", lake_version=1) == 1


def test_the_content_hash_tells_boards_apart_and_not_ways_of_writing():
    same = [
        replace(TWO[0], points=Decimal("5.00"), reached_at=TWO[0].reached_at.astimezone(timezone(timedelta(hours=2))))
    ]
    assert content_hash([*same, TWO[1]], HISTOGRAM) == content_hash(TWO, HISTOGRAM[::-1])
    others = [
        TWO[:1],
        [TWO[0], replace(TWO[1], rank=1)],
        [TWO[0], replace(TWO[1], player_id="bea")],
        [TWO[0], replace(TWO[1], points=Decimal("3.0001"))],
        [TWO[0], replace(TWO[1], reached_at=datetime(2026, 7, 8, tzinfo=UTC))],
        [TWO[0], replace(TWO[1], event_count=2)],
    ]
    assert len({content_hash(each) for each in [TWO, *others]}) == 7
    assert content_hash(TWO) != content_hash(TWO, HISTOGRAM) != content_hash(TWO, HISTOGRAM[:1])
