"""A night of boards killed at each of its crash points: readers see the old board or the new one, a rerun completes."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from daybreak.serving.embedded import EmbeddedServer
from jobs.run.run import saved_runs
from lakehouse.reading import analyst
from tests.engines import Engines
from tests.integration.nights import D1, D2, D3
from tests.integration.test_board_night import BoardWorld, board_world, some_scores
from tests.integration.test_crashes import BOARD_POINTS

pytestmark = pytest.mark.slow

PERIODS = [("points", "all_time"), ("points", "2026-W10"), ("fastest", "all_time"), ("newest", "all_time")]
SEEN = "select player_id, points from board_snapshots where board = 'points' and period = 'all_time' and day = ?"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Path:
    """A home with three complete days of scores, the first of them corrected; nothing runs in it."""
    world = board_world(tmp_path_factory.mktemp("boards") / "home", engines["sail"])
    world.scores("scores.jsonl", some_scores(), through=D3)
    world.night(D1)
    EmbeddedServer(world.home).stop()
    return world.home


@pytest.fixture
def world(template: Path, tmp_path: Path, engines: Engines) -> Iterator[BoardWorld]:
    home = tmp_path / "home"
    shutil.copytree(template, home)
    yield BoardWorld(home, engines["sail"], boards_folder=home / "conf")
    EmbeddedServer(home).stop()


def served(world: BoardWorld, board: str, period: str) -> list[tuple[object, ...]]:
    """Places of a board as Redis serves them."""
    found = world.context.board_lists.top(board, period, 1000)
    return [] if found is None else [(p.position, p.player_id, p.points, p.reached_at) for p in found.places]


def due(world: BoardWorld, board: str, period: str, as_of: object) -> list[tuple[object, ...]]:
    """The oracle's places."""
    return [(r.position, r.player_id, r.points, r.reached_at) for r in world.expected(board, period, as_of)]


@pytest.mark.parametrize("point", [point for point in sorted(BOARD_POINTS) if not point.startswith("close.")])
def test_a_night_of_boards_killed_anywhere_leaves_the_old_board_or_the_new_one(world: BoardWorld, point: str):
    world.command("nightly", "--day", str(D2), code=-9, DAYBREAK_CRASH_AT=point)
    for board, period in PERIODS:
        assert served(world, board, period) in [due(world, board, period, day) for day in (D1, D2)] + [[]]
    rows = analyst.connect(world.store).execute(SEEN, [D2]).fetchall()
    assert sorted(rows) in ([], sorted((row[1], row[2]) for row in due(world, "points", "all_time", D2)))
    world.night(D2)
    for board, period in PERIODS:
        world.check_board(board, period, D2)
        assert world.context.board_lists.meta(board, period).generation <= 2


def test_boards_whose_publication_did_not_happen_are_published_by_the_night_of_another_day(world: BoardWorld):
    world.command("nightly", "--day", str(D2), code=-9, DAYBREAK_CRASH_AT="boards.manifest")
    assert served(world, "points", str(D2)) == []
    world.night(D3)
    world.check_board("points", str(D2), D2)
    world.check_board("points", "all_time", D3)
    assert {state.step for state in saved_runs(world.settings)} == {"done"}


def test_a_run_of_boards_that_died_half_committed_is_finished_by_the_night_of_another_day(world: BoardWorld):
    world.command("nightly", "--day", str(D2), code=-9, DAYBREAK_CRASH_AT="night.committed.player_days")
    world.night(D3)
    for board, period in PERIODS:
        world.check_board(board, period, D3)
