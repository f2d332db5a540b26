"""A century and a half of football: 146,910 scores on two boards, against the expected answers that come with them.

The data lies outside the repository; `conftest.py` leaves this module out where it is not there, and says so.
"""

import csv
import io
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from daybreak.events import Kind
from jobs.ingest import declare_complete
from lakehouse.reading import analyst
from lakehouse.tables.registry import BOARD_SNAPSHOTS
from tests.engines import Engines
from tests.integration.nights import World

SHARED = Path(__file__).parents[3] / "shared" / "data"
FOOTBALL = SHARED / "international-football"
READ = ("--kind", "scores", "--map", "ts=occurred_at", "--default-timezone", "UTC")
FIRST, LAST = date(1872, 11, 30), date(2026, 7, 19)
FILES = {"goal": "goals.parquet", "result": "team_points.parquet"}
COLUMNS = ["event_id", "match_id", "match_type", "player_id", "points", "ts", "region", "season"]
BOARDS = """
[goals]
filter = { match_type = ["goal"] }
seasons = ["world-cup", "world-cup-2022", "world-cup-2026", "copa", "nations"]
tie_breaks = ["player_id"]
depth = 2000

[teams]
filter = { match_type = ["result"] }
seasons = ["world-cup", "friendly"]
tie_breaks = ["player_id"]
depth = 2000
"""
SEASONS = """
[world-cup]
label = "FIFA World Cup"
[world-cup-2022]
label = "FIFA World Cup"
from = 2022-01-01
to = 2022-12-31
[world-cup-2026]
label = "FIFA World Cup"
from = 2026-01-01
to = 2026-12-31
[copa]
label = "Copa América"
[nations]
label = "UEFA Nations League"
[friendly]
label = "Friendly"
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@dataclass(frozen=True)
class Expected:
    """One file of expected places, and which board in which period it is; `as_of` is where the lake has it."""

    file: str
    board: str
    period: str
    as_of: date = LAST

    @property
    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader((FOOTBALL / f"expected_{self.file}.csv").open(encoding="utf-8")))

    @property
    def places(self) -> list[tuple[str, int, int]]:
        return [(row["player_id"], int(row["points"]), int(row["competition_rank"])) for row in self.rows]


EXPECTED = [
    Expected("alltime_top100", "goals", "all_time"),
    Expected("daily_2023-11-21", "goals", "2023-11-21", date(2023, 11, 21)),
    Expected("season_Copa_America", "goals", "copa"),
    Expected("season_FIFA_World_Cup", "goals", "world-cup"),
    Expected("season_FIFA_World_Cup_2022", "goals", "world-cup-2022", date(2022, 12, 31)),
    Expected("season_FIFA_World_Cup_2026", "goals", "world-cup-2026"),
    Expected("season_UEFA_Nations_League", "goals", "nations"),
    Expected("team_alltime", "teams", "all_time"),
    Expected("team_season_FIFA_World_Cup", "teams", "world-cup"),
    Expected("team_season_Friendly", "teams", "friendly"),
    Expected("team_year_2023", "teams", "2023", date(2023, 12, 31)),
    Expected("weekly_2026-W26", "goals", "2026-W26", date(2026, 6, 28)),
]
EACH = pytest.mark.parametrize("expected", EXPECTED, ids=[each.file for each in EXPECTED])


def scores(match_type: str, first: date = FIRST) -> pa.Table:
    """The events of one file from `first` on, in the file's order."""
    rows = pq.read_table(FOOTBALL / FILES[match_type])
    rows = rows.append_column("match_type", pa.array([match_type] * rows.num_rows, pa.string())).select(COLUMNS)
    return rows.filter(pc.greater_equal(pc.cast(rows["ts"], pa.date32()), pa.scalar(first)))


def football(home: Path, first: date = FIRST, **how: Any) -> World:
    """A world with both files from `first` on taken in."""
    conf = home.parent / "conf"
    for folder in (home, conf):
        folder.mkdir(parents=True)
    (conf / "boards.toml").write_text(BOARDS, encoding="utf-8")
    (conf / "seasons.toml").write_text(SEASONS, encoding="utf-8")
    world = World(home, boards_folder=conf, **how)
    for match_type, name in FILES.items():
        pq.write_table(scores(match_type, first), home / name)
    out, _ = run(world, "ingest", *READ, *(str(home / name) for name in FILES.values()))
    assert '"refused": 44' in out or first > FIRST, out
    declare_complete(world.store, lambda: world.context.clock(), Kind.SCORES, LAST)
    return world


def run(world: World, *words: str) -> tuple[str, str]:
    """The command, which may take as long as a busy machine needs for 16,000 days."""
    process = world.start(*words)
    out, err = process.communicate(timeout=900)
    assert process.returncode == 0, f"{words}: exit {process.returncode}\n{out}\n{err}"
    return out, err


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """All days, corrected by one night."""
    world = football(tmp_path_factory.mktemp("football") / "home")
    try:
        _, err = run(world, "nightly", "--from", str(FIRST), "--to", str(LAST))
        assert "no event at all" not in err
        yield world
    finally:
        world.command("down")


@pytest.fixture(scope="module")
def duck(history: World) -> Any:
    """The analysts' views."""
    return analyst.connect(history.store)


def places(text: str) -> list[tuple[str, int, int]]:
    return [(row["player_id"], int(row["points"]), int(row["rank"])) for row in csv.DictReader(io.StringIO(text))]


@EACH
def test_a_board_is_the_expected_one_on_the_command_line(history: World, tmp_path: Path, expected: Expected):
    size = str(len(expected.rows))
    out, err = history.command(
        "board", "top", expected.board, "--period", expected.period, "-k", size, "--format", "csv"
    )
    assert places(out) == expected.places
    assert f"state=exact as_of={expected.as_of}" in err
    (tmp_path / "served.csv").write_text(out, encoding="utf-8")
    words = [sys.executable, str(SHARED / "check.py"), "board", str(FOOTBALL / f"expected_{expected.file}.csv")]
    done = subprocess.run([*words, str(tmp_path / "served.csv")], capture_output=True, text=True, check=False)
    assert done.stdout == "PASS\n"


@EACH
def test_a_board_is_the_expected_one_in_duckdb(duck: Any, expected: Expected):
    assert in_duckdb(duck, expected) == expected.places


def in_duckdb(duck: Any, expected: Expected) -> list[tuple[str, int, int]]:
    """The expected board as the lake has it."""
    query = """select player_id, points::bigint, rank from board_snapshots
               where day = ? and board = ? and period = ? order by position limit ?"""
    return list(duck.execute(query, [expected.as_of, expected.board, expected.period, len(expected.rows)]).fetchall())


def test_the_sql_command_shows_the_same(history: World):
    chosen = EXPECTED[1]
    query = f"""select player_id, points::bigint as points, rank from board_snapshots
                where day = '{chosen.as_of}' and board = 'goals' and period = '{chosen.period}' order by position"""
    assert places(history.command("sql", query, "--format", "csv")[0]) == chosen.places


def test_the_partials_of_the_whole_history_add_up_to_the_last_board(duck: Any):
    query = """select player_id, sum(points)::bigint from player_days where board = 'teams' and season = ''
               group by player_id order by 2 desc, player_id"""
    assert duck.execute(query).fetchall() == [row[:2] for row in EXPECTED[7].places]


def test_players_stand_among_the_expected_neighbours(history: World):
    wanted: dict[str, list[tuple[str, int, int]]] = {}
    for row in csv.DictReader((FOOTBALL / "expected_around_FIFA_World_Cup.csv").open(encoding="utf-8")):
        place = (row["player_id"], int(row["points"]), int(row["competition_rank"]))
        wanted.setdefault(row["center_player"], []).append(place)
    assert len(wanted) == 6
    for player, neighbours in wanted.items():
        words = ("board", "around", "goals", player, "--period", "world-cup", "--width", "2", "--format", "csv")
        assert places(history.command(*words)[0]) == neighbours


def test_percentiles_are_the_expected_shares_below(history: World):
    for row in csv.DictReader((FOOTBALL / "expected_percentile_FIFA_World_Cup.csv").open(encoding="utf-8")):
        words = ("board", "percentile", "goals", row["player_id"], "--period", "world-cup", "--format", "csv")
        (found,) = csv.DictReader(io.StringIO(history.command(*words)[0]))
        assert float(found["percentile"]) == pytest.approx(float(row["pct_below"]), abs=1e-6)
        assert (found["points"], found["rank"], found["population"]) == (
            row["points"],
            row["competition_rank"],
            row["players"],
        )


def test_a_scorer_below_the_published_depth_has_an_exact_percentile(history: World):
    totals: Counter[str] = Counter()
    for row in scores("goal").select(["player_id", "points"]).to_pylist():
        if row["player_id"] is not None:
            totals[row["player_id"]] += row["points"]
    player = "Morocco|Nayef Aguerd"
    better, worse = (sum(each * sign > totals[player] * sign for each in totals.values()) for sign in (1, -1))
    out, err = history.command("board", "percentile", "goals", player, "--period", "all_time", "--format", "csv")
    (found,) = csv.DictReader(io.StringIO(out))
    assert "below the 2000 published places" in err
    assert float(found["percentile"]) == 100 * worse / len(totals)
    assert (int(found["points"]), int(found["rank"])) == (totals[player], better + 1)
    assert int(found["population"]) == len(totals) == 15403


def test_spark_ranks_a_year_as_sail_does(history: World, duck: Any, tmp_path: Path, engines: Engines):
    first = date(2026, 1, 1)
    world = football(tmp_path / "spark" / "home", first, engine=engines["spark"])
    try:
        world.night(first, LAST)
        other = analyst.connect(world.store)
        for table, shown in (
            (
                "board_snapshots",
                "day, board, period, position, player_id, points, reached_at, event_count, rank, population",
            ),
            ("board_histograms", "day, board, period, points, players"),
        ):
            query = f"""select {shown} from {table} where day >= '2026-01-01' and (period like '2026%'
                        and period <> '2026-W01' or period = 'world-cup-2026') order by all"""
            rows = other.execute(query).fetchall()
            assert len(rows) > 400
            assert rows == duck.execute(query).fetchall()
    finally:
        world.command("down")


def test_spark_ranks_every_expected_board_too(history: World, engines: Engines):
    """Last, since it corrects the lake: three and a half years of days by Spark, over Sail's partials of the others.

    Every expected period is ranked by this night; Redis and the newest snapshots then have nothing of Sail's.
    """
    world = World(history.home, engines["spark"], boards_folder=history.settings.boards_folder)
    world.lists.client.flushall()
    before = world.store.version(BOARD_SNAPSHOTS)
    world.night(date(2022, 12, 31), LAST)
    made = [commit for commit in world.store.commits_after(BOARD_SNAPSHOTS, before) if commit.run_id]
    assert made
    assert all(commit.engine.startswith("Apache-Spark") for commit in made)
    duck = analyst.connect(world.store)
    for expected in EXPECTED:
        size = str(len(expected.rows))
        words = ("board", "top", expected.board, "--period", expected.period, "-k", size, "--format", "csv")
        assert places(history.command(*words)[0]) == expected.places, expected.file
        assert in_duckdb(duck, expected) == expected.places, expected.file
