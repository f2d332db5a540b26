"""Boards as written in boards.toml: what is taken, what is refused, and which periods follow."""

from datetime import date, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from daybreak.errors import UsageError
from daybreak.rules import boards
from daybreak.rules.boards import Board, Boards, Prize
from daybreak.rules.seasons import Season
from daybreak.settings import Settings

CONF = Path(__file__).parents[4] / "conf"
BOARDS = """
[players]
filter = { match_type = ["ranked"], region = ["EU", "US"] }
seasons = ["spring", "cup"]
grace = "30m"
prize_ties = "share"
prizes = [{ prize = "gold", ranks = [1, 1] }, { prize = "badge", percentile = [90, 100] }]

[laps]
semantics = "best"
order = "ascending"
tie_breaks = ["fewer_events", "reached_at"]
periods = ["week"]
"""
SEASONS = """
spring = { from = 2026-03-01, to = 2026-05-31 }
cup = { label = "World Cup" }
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    write(tmp_path, BOARDS, SEASONS)
    return tmp_path


def write(folder: Path, board_text: str, season_text: str = "") -> None:
    (folder / "boards.toml").write_text(board_text, encoding="utf-8")
    (folder / "seasons.toml").write_text(season_text, encoding="utf-8")


def test_boards_are_read_with_their_seasons(conf: Path) -> None:
    found = boards.load(conf)
    players, laps = found
    assert (players.name, laps.name) == ("players", "laps")
    assert players.filter.columns() == {"region": ("EU", "US"), "match_type": ("ranked",)}
    assert players.grace == timedelta(minutes=30)
    assert players.prizes[1].percentile == (90, 100)
    assert found.seasons == {
        "spring": Season("spring", None, date(2026, 3, 1), date(2026, 5, 31)),
        "cup": Season("cup", "World Cup"),
    }
    assert (players.sign, laps.sign) == (1, -1)
    assert laps.order_within_equals == ("fewer_events", "reached_at", "player_id")
    assert Board(name="b", tie_breaks=("player_id",)).order_within_equals == ("player_id",)


def test_a_deployment_without_the_files_has_no_boards(tmp_path: Path) -> None:
    assert list(boards.load(tmp_path / "nowhere")) == []


def test_the_default_deployment_has_no_boards() -> None:
    assert Settings().boards_folder == Path("conf")
    assert boards.load(CONF) == Boards({}, {})


def test_the_examples_are_boards_once_they_are_switched_on(tmp_path: Path) -> None:
    for name in ("boards.toml", "seasons.toml"):
        lines = (CONF / name).read_text(encoding="utf-8").splitlines()
        assert all(line.startswith("#") or not line for line in lines), "the examples are off"
        switched_on = [line.removeprefix("#").strip() for line in lines if not line.startswith("##")]
        (tmp_path / name).write_text("\n".join(switched_on), encoding="utf-8")
    found = boards.load(tmp_path)
    assert [(board.name, len(board.prizes)) for board in found] == [("players", 3), ("laps", 0)]
    assert len(found.seasons) == 3


def test_the_periods_of_a_board_on_some_days(conf: Path) -> None:
    found = boards.load(conf)
    on_new_year = found.periods(found.board("players"), date(2026, 12, 31), date(2027, 1, 1))
    assert [each.name for each in on_new_year] == [
        *("2026-12-31", "2027-01-01", "2026-W53", "2026", "2027", "all_time"),
        "cup",
    ]
    assert "spring" in [
        each.name for each in found.periods(found.board("players"), date(2026, 5, 31), date(2026, 6, 1))
    ]
    assert [each.name for each in found.periods(found.board("laps"), date(2026, 7, 11), date(2026, 7, 11))] == [
        "2026-W28"
    ]


def test_the_labels_that_a_board_keeps_apart(conf: Path) -> None:
    found = boards.load(conf)
    assert found.labels(found.board("players")) == ["", "World Cup"]
    assert found.labels(found.board("laps")) == [""]
    only_cup = Board(name="b", periods=(), seasons=("cup",))
    assert found.labels(only_cup) == ["World Cup"]


def test_a_period_that_the_board_does_not_rank_is_refused(conf: Path) -> None:
    found = boards.load(conf)
    assert found.period(found.board("players"), "cup").label == "World Cup"
    assert found.period(found.board("laps"), "2026-W28").last == date(2026, 7, 12)
    for text in ("2026-07-11", "cup"):
        with pytest.raises(UsageError, match=f"board laps does not rank {text}; it ranks week"):
            found.period(found.board("laps"), text)


def test_an_unknown_board_is_refused_with_the_known_ones(conf: Path) -> None:
    with pytest.raises(
        UsageError, match=r"no board 'lap' in boards.toml \(did you mean 'laps'\?\); the boards are: laps, players"
    ):
        boards.load(conf).board("lap")
    with pytest.raises(UsageError, match="none is defined"):
        Boards({}, {}).board("lap")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[b]\nsemantic = 'sum'", r"\[b\] semantic: is not known here"),
        ("[b]\nsemantics = 'mean'", r"\[b\] semantics: Input should be 'sum', 'best' or 'latest'"),
        ("[b]\ndecimals = 5", r"\[b\] decimals: .* less than or equal to 4"),
        ("[b]\ndepth = 0", r"\[b\] depth: .* greater than 0"),
        ("[b]\ngrace = '2 hours'", r"\[b\] grace: .*a span is a whole number"),
        ("[b]\nperiods = ['month']", r"\[b\] periods.0: Input should be 'day'"),
        ("[b]\nperiods = []", "without periods and seasons ranks nothing"),
        ("[b]\nperiods = ['day', 'day']", r"keys together: periods .* names one twice"),
        ("[b]\ntie_breaks = ['player_id', 'reached_at']", "put it last"),
        ("[b]\nfilter = { category = ['x'] }", "score_events have no category to filter by; use region, match_type"),
        ("[b]\nsource = 'item_events'\nfilter = { season = ['x'] }", "item_events have no season to filter by"),
        ("[b]\nseasons = ['autumn']", "ranks season 'autumn', which seasons.toml does not have; add it"),
        (
            "[b]\nsource = 'item_events'\nseasons = ['cup']",
            "ranks season 'cup' by its label, but item_events have none",
        ),
        ("['b.c']", r"\[b.c\] name: String should match pattern"),
        ("b = 3", "b = 3 is no table"),
        ("[b]\nname = 'c'", r"\[b\] name: is not known here"),
        ("[b", "is not valid TOML"),
        ("[b]\nprizes = [{ prize = 'x' }]", "needs either ranks"),
    ],
)
def test_a_board_that_makes_no_sense_is_refused_by_file_board_and_key(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, text, SEASONS)
    with pytest.raises(UsageError, match=f"boards.toml.*{message}"):
        boards.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s = { from = 2026-03-01 }", "a season needs a label, or both from and to"),
        ("s = { label = '' }", "a season needs a label, or both from and to"),
        ("s = { from = 2026-03-02, to = 2026-03-01 }", "from 2026-03-02 is after to 2026-03-01; swap them"),
        ("2026-W28 = { label = 'x' }", "this name is a day, week, year or all_time already"),
        ("all_time = { label = 'x' }", "this name is a day, week, year or all_time already"),
        ("s = { first = 2026-03-01, to = 2026-03-02 }", r"first: is not known here"),
        ("'a b' = { label = 'x' }", "name: String should match pattern"),
    ],
)
def test_a_season_that_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, "", text)
    with pytest.raises(UsageError, match=f"seasons.toml.*{message}"):
        boards.load(tmp_path)


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "boards.toml").write_bytes(b"# \xff")
    with pytest.raises(UsageError, match=r"boards.toml is not valid TOML"):
        boards.load(tmp_path)


@pytest.mark.parametrize(
    "bounds",
    [
        {},
        {"ranks": (1, 2), "percentile": (0, 10)},
        {"ranks": (2, 1)},
        {"ranks": (0, 1)},
        {"percentile": (90, 90)},
        {"percentile": (90, 101)},
        {"percentile": (float("nan"), 100)},
    ],
)
def test_a_prize_has_one_range_that_holds_something(bounds: dict[str, tuple[float, float]]) -> None:
    with pytest.raises(ValidationError):
        Prize.model_validate({"prize": "x", **bounds})
