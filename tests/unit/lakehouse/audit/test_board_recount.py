"""DuckDB's recount of boards against the plain-Python oracle, and its power to find each kind of wrong row."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from daybreak.errors import LakeFailedError
from daybreak.rules.boards import Board, Filter
from daybreak.rules.seasons import Season
from lakehouse.audit.board_recount import FinalRanks, Partials, Ranking, differences, ranks_differences
from lakehouse.audit.duck import Limits
from lakehouse.audit.first_copies import CountedDays
from lakehouse.tables.registry import BOARD_HISTOGRAMS, BOARD_SNAPSHOTS, PLAYER_DAYS, SEASON_RANKS, TABLES, Table
from tests.boards import ONE_DAY, STAGED, Case, Row, due, recounted, staged_by_oracle, written
from tests.builders import event, score

DAYS = (date(2026, 2, 28), date(2026, 3, 1), date(2026, 3, 2))
SEASONS = {
    "cup": Season("cup", "cup"),
    "spring": Season("spring", "cup", date(2026, 3, 1), date(2026, 3, 1)),
    "march": Season("march", None, date(2026, 3, 1), date(2026, 3, 31)),
}
BOARDS = [
    Board(name="total", seasons=("cup", "march"), depth=3),
    Board(name="best", semantics="best", rank_style="dense", tie_breaks=("fewer_events", "reached_at"), depth=100),
    Board(name="golf", semantics="best", order="ascending", reached_by="received_at", rank_style="ordinal"),
    Board(name="last", semantics="latest", reached_by="received_at", seasons=("spring",)),
    Board(name="eu", filter=Filter(region=("eu", "ü")), tie_breaks=("more_events",), order="ascending"),
    Board(name="plays", source="item_events", filter=Filter(category=("x",)), periods=("week",)),
]
PLAYERS = ["A", "B", "café", "cafe\u0301", "😀", "\u0000", "z"]


def mixed(seed: int) -> Case:
    """Events of three days: copies near and across midnight, zero and equal points, two clocks."""
    chance = random.Random(seed)
    start = datetime(2026, 2, 28, tzinfo=UTC)

    def fields() -> Row:
        at = start + timedelta(minutes=15 * chance.randrange(4 * 72))
        return {
            "occurred_at": at,
            "received_at": at + timedelta(hours=chance.randrange(3)),
            "region": chance.choice([None, "eu", "ü", "us"]),
            "offset": chance.randrange(10**6),
        }

    points = ["0", "0", "1", "-1", "0.1", "99999999999999.9999", "-12.5"]
    scores = [
        score(
            f"e{chance.randrange(150)}",
            chance.choice(PLAYERS),
            chance.choice(points),
            season=chance.choice([None, "cup"]),
            **fields(),
        )
        for _ in range(200)
    ]
    items = [
        event(n, event_id=f"i{chance.randrange(40)}", item_id=chance.choice(PLAYERS), weight=2**32, **fields())
        | {"category": chance.choice([None, "x"])}
        for n in range(60)
    ]
    bans = {"A": start + ONE_DAY, "z": start + 5 * ONE_DAY}
    return Case(scores, BOARDS, items, SEASONS, bans, ("e3", "i7"), as_of=DAYS[-1])


def ranks_found(case: Case, board: Board, period: str, staged: Mapping[str, list[str]]) -> list[str]:
    """What the recount of a close finds."""
    found = case.periods(board)[period]
    ranks = FinalRanks(board, found, case.as_of_day(found), version=1, lake_version=7)
    return ranks_differences(staged[SEASON_RANKS.name], Partials(staged[PLAYER_DAYS.name]), ranks, bans=case.bans)


def close(case: Case, board: Board, period: str, folder: Path) -> dict[str, list[str]]:
    """The oracle's rows as a close stages them: the ranks of one period only."""
    rows = [row for row in due(case)[SEASON_RANKS.name] if (row["board"], row["period"]) == (board.name, period)]
    ranks = written(folder / "close.parquet", rows, SEASON_RANKS.schema)
    return staged_by_oracle(case, folder) | {SEASON_RANKS.name: [ranks]}


def forged(folder: Path, table: Table, staged: dict[str, list[str]], change: Callable[[list[Row]], None]) -> Any:
    """The staged files with one table changed."""
    rows = due(mixed(0))[table.name]
    change(rows)
    return staged | {table.name: [written(folder / "forged.parquet", rows, table.schema)]}


@pytest.mark.parametrize("seed", range(4))
def test_what_the_oracle_ranks_holds(seed: int, tmp_path: Path) -> None:
    case = mixed(seed)
    assert recounted(case, case.event_files(tmp_path), staged_by_oracle(case, tmp_path)) == []


@pytest.mark.parametrize("period", ["2026-02-28", "2026-W09", "2026", "all_time", "cup", "march"])
def test_a_close_that_the_oracle_ranks_holds(period: str, tmp_path: Path) -> None:
    case = mixed(1)
    assert ranks_found(case, BOARDS[0], period, close(case, BOARDS[0], period, tmp_path)) == []


@pytest.mark.parametrize("board", BOARDS[1:4], ids=lambda board: board.name)
def test_a_close_holds_for_every_semantics(board: Board, tmp_path: Path) -> None:
    case = mixed(2)
    assert ranks_found(case, board, "2026", close(case, board, "2026", tmp_path)) == []


MICRO = timedelta(microseconds=1)
CENT = Decimal("0.0001")


@pytest.mark.parametrize(
    ("table", "column", "by"),
    [
        (PLAYER_DAYS, "points", CENT),
        (PLAYER_DAYS, "event_count", 1),
        (PLAYER_DAYS, "first_at", MICRO),
        (PLAYER_DAYS, "changed_at", MICRO),
        (PLAYER_DAYS, "on_day", ONE_DAY),
        (PLAYER_DAYS, "last_offset", 1),
        (PLAYER_DAYS, "last_partition", 1),
        (PLAYER_DAYS, "last_source", "x"),
        (PLAYER_DAYS, "last_received_at", MICRO),
        (PLAYER_DAYS, "last_occurred_at", MICRO),
        (PLAYER_DAYS, "player_id", "x"),
        (PLAYER_DAYS, "season", "x"),
        (BOARD_SNAPSHOTS, "points", CENT),
        (BOARD_SNAPSHOTS, "rank", 1),
        (BOARD_SNAPSHOTS, "position", 1),
        (BOARD_SNAPSHOTS, "population", -1),
        (BOARD_SNAPSHOTS, "reached_at", -MICRO),
        (BOARD_SNAPSHOTS, "event_count", 1),
        (BOARD_SNAPSHOTS, "player_id", "x"),
        (BOARD_SNAPSHOTS, "as_of", ONE_DAY),
        (BOARD_SNAPSHOTS, "period", "x"),
        (BOARD_HISTOGRAMS, "points", CENT),
        (BOARD_HISTOGRAMS, "players", 1),
        (BOARD_HISTOGRAMS, "as_of", -ONE_DAY),
    ],
)
def test_one_wrong_value_is_found_and_named(table: Table, column: str, by: Any, tmp_path: Path) -> None:
    case = mixed(0)
    wrong: list[Row] = []

    def change(rows: list[Row]) -> None:
        row = next(row for row in reversed(rows) if row[column] is not None)
        row[column] += by
        wrong.append(row)

    staged = forged(tmp_path, table, staged_by_oracle(case, tmp_path), change)
    found = [line for line in recounted(case, case.event_files(tmp_path), staged) if line.startswith(table.name)]
    for finding in ("is staged", "is due"):
        assert any(finding in line and f"board={wrong[0]['board']}" in line for line in found)


@pytest.mark.parametrize("table", STAGED[2:] + STAGED[:1], ids=lambda table: table.name)
def test_a_missing_and_a_doubled_row_are_found(table: Table, tmp_path: Path) -> None:
    case = mixed(0)
    files, staged = case.event_files(tmp_path), staged_by_oracle(case, tmp_path)
    lost: list[Row] = []
    found = recounted(case, files, forged(tmp_path, table, staged, lambda rows: lost.append(rows.pop(5))))
    assert any(line.startswith(table.name) and "is due" in line and lost[0]["board"] in line for line in found)
    found = recounted(case, files, forged(tmp_path, table, staged, lambda rows: rows.append(rows[5])))
    assert any(line.startswith(table.name) and "is staged" in line for line in found)


@pytest.mark.parametrize(
    ("column", "by"),
    [
        ("points", CENT),
        ("rank", 1),
        ("position", 1),
        ("population", 1),
        ("percentile", 1e-9),
        ("reached_at", MICRO),
        ("event_count", 1),
        ("version", 1),
        ("lake_version", 1),
        ("day", ONE_DAY),
    ],
)
def test_one_wrong_value_of_a_close_is_found(column: str, by: Any, tmp_path: Path) -> None:
    case, board = mixed(1), BOARDS[1]
    staged = close(case, board, "2026", tmp_path)
    rows = [row for row in due(case)[SEASON_RANKS.name] if (row["board"], row["period"]) == ("best", "2026")]
    rows[2][column] += by
    staged[SEASON_RANKS.name] = [written(tmp_path / "forged.parquet", rows, SEASON_RANKS.schema)]
    found = ranks_found(case, board, "2026", staged)
    assert [line.split(",")[0].split(": ")[0] for line in found] == ["season_ranks"] * 2
    assert "board=best, period=2026" in found[1]
    assert found[1].endswith("is due, by DuckDB's recount")


def test_a_player_missing_from_a_close_is_found(tmp_path: Path) -> None:
    case, board = mixed(1), BOARDS[3]
    staged = close(case, board, "2026", tmp_path)
    rows = [row for row in due(case)[SEASON_RANKS.name] if (row["board"], row["period"]) == ("last", "2026")]
    lost = rows.pop()
    staged[SEASON_RANKS.name] = [written(tmp_path / "forged.parquet", rows, SEASON_RANKS.schema)]
    assert any(f"player_id={lost['player_id']}" in line for line in ranks_found(case, board, "2026", staged))


def test_committed_days_outside_the_run_count_in_its_periods(tmp_path: Path) -> None:
    """A lake's files lack `day`; the run is the last day alone, and ranks only what holds it."""
    case = mixed(3)
    rows, run = due(case), (DAYS[-1], DAYS[-1])
    before = [row for row in rows[PLAYER_DAYS.name] if row["day"] < run[0]]
    committed = [
        written(tmp_path / f"day={day}" / "x.parquet", [row for row in before if row["day"] == day], *lake_schema())
        for day in DAYS[:2]
    ]
    staged = staged_by_oracle(case, tmp_path)
    own = [row for row in rows[PLAYER_DAYS.name] if row["day"] == run[0]]
    staged[PLAYER_DAYS.name] = [written(tmp_path / "own.parquet", own, PLAYER_DAYS.schema)]
    files = {
        name: [file for file in of_source if any(f"day={day}" in file for day in DAYS[1:])]
        for name, of_source in case.event_files(tmp_path).items()
    }
    calendar = case.calendar()

    def found(committed: Sequence[str], ranked: Collection[tuple[date, str, str]] | None = None) -> list[str]:
        days, ranking = CountedDays(*run, lookback=timedelta(hours=1)), Ranking(calendar, committed, ranked)
        return differences(files, staged, rules=case.rules, days=days, ranking=ranking)

    assert found(committed) == []
    assert found(committed[1:]) != []
    calendar = [row for row in calendar if row[4] == run[0]]
    assert any("is staged" in line for line in found(committed)), "rows beside those that the run ranks"
    ranked = {(row[4], row[0], row[3]) for row in calendar}
    assert found(committed, ranked=ranked) == []
    assert found(committed, ranked=ranked | {(DAYS[0], "total", "2026-02-28")}) != []


def lake_schema() -> tuple[Any, tuple[str, ...]]:
    return PLAYER_DAYS.schema, ("day",)


def test_a_voided_event_or_a_ban_that_the_job_forgot_is_found(tmp_path: Path) -> None:
    case = mixed(0)
    files, staged = case.event_files(tmp_path), staged_by_oracle(replace(case, voided=()), tmp_path)
    assert recounted(case, files, staged)
    staged = staged_by_oracle(replace(case, bans={}), tmp_path)
    found = recounted(case, files, staged)
    assert found
    assert not any(line.startswith(PLAYER_DAYS.name) for line in found)


@pytest.mark.parametrize("parts", [2, 7])
def test_any_number_of_parts_finds_the_same_and_leaves_nothing(parts: int, tmp_path: Path) -> None:
    case, spill = mixed(0), tmp_path / "spill"
    spill.mkdir()
    staged = staged_by_oracle(case, tmp_path)
    limits = Limits(part_rows=-(-200 // parts), memory=2**28, spill=spill)
    assert recounted(case, case.event_files(tmp_path), staged, limits=limits) == []
    assert not list(spill.iterdir())


def test_nothing_at_all_holds() -> None:
    assert recounted(Case([], BOARDS, seasons=SEASONS), {}, {}) == []


def test_no_board_holds(tmp_path: Path) -> None:
    case = replace(mixed(0), boards=[])
    assert recounted(case, case.event_files(tmp_path), {}) == []


@pytest.mark.parametrize("year", [1, 1960, 9999])
def test_far_years_keep_their_day(year: int, tmp_path: Path) -> None:
    at = datetime(year, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    case = Case([score("e", "ana", "0.1", occurred_at=at, received_at=at)], [Board(name="b")])
    assert recounted(case, case.event_files(tmp_path), staged_by_oracle(case, tmp_path)) == []


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(LakeFailedError, match="recount failed"):
        recounted(Case([], BOARDS, seasons=SEASONS), {"score_events": [__file__]}, {})


def test_every_compared_column_is_in_the_registry() -> None:
    assert {table.name for table in STAGED} <= TABLES.keys()
