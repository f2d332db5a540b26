"""A lake that an earlier version wrote keeps working: it is read, no more of it is stale, and nights go on in it."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.closing.close import close
from jobs.run.staleness import stale_board_days, stale_item_days
from lakehouse import closes, runs
from lakehouse.reading import analyst
from lakehouse.tables import registry as tables
from tests.engines import NAMES, Engines
from tests.integration.nights import D1, D2, D3, World
from tests.integration.seasons import served, stopped

pytestmark = pytest.mark.slow
KEPT = Path(__file__).parents[1] / "lakes" / "2026-12.tar.gz"
BOARDS = """
[goals]
periods = ["day", "week", "all_time"]
seasons = ["march"]
grace = "0s"
[[goals.prizes]]
prize = "cup"
ranks = [1, 1]
"""
SEASONS = "[march]\nfrom = 2026-03-01\nto = 2026-03-02\n"


@pytest.fixture(params=NAMES)
def world(request: pytest.FixtureRequest, engines: Engines, tmp_path: Path) -> Iterator[World]:
    home = tmp_path / "home"
    conf = home / "conf"
    conf.mkdir(parents=True)
    (conf / "boards.toml").write_text(BOARDS)
    (conf / "seasons.toml").write_text(SEASONS)
    with tarfile.open(KEPT) as archive:
        archive.extractall(home, filter="data")
    made = World(home, engines[request.param], boards_folder=conf)
    yield made
    stopped(made)


def counted(world: World) -> dict[str, int]:
    """Total weight of each day, as analysts see it."""
    _, rows = analyst.query(analyst.connect(world.store), "select day, sum(count) from daily_counts group by day")
    return {str(day): int(weight) for day, weight in rows}


def test_a_lake_of_before_two_columns_is_read_and_nights_go_on_in_it(world: World) -> None:
    old = runs.finished(world.store)
    assert [(run.kind, bool(run.rules)) for run in old] == [("items", False), ("boards", True), ("boards", True)]
    assert all(run.started_at < run.committed_at for run in old)
    lake = world.context.lake
    assert (stale_item_days(lake), stale_board_days(lake)) == ({D3}, set()), "the late event's day, and no other"
    assert counted(world) == {str(D1): 60, str(D2): 60, str(D3): 60}
    (_, amended) = closes.versions(world.store)
    assert close(world.context, "goals", "march") == amended
    assert served(world, "goals", "march") == [(1, "cai"), (2, "ana"), (3, "dee")]

    done = world.night(D3)
    assert (done.rows, done.boards) == (61, 3)
    assert counted(world)[str(D3)] == 61
    assert (stale_item_days(lake), stale_board_days(lake)) == (set(), set())
    assert runs.finished(world.store)[:3] == old
    assert [run.kind for run in runs.finished(world.store)[3:]] == ["items", "boards"]
    names = {field.name for field in world.store.dataset(tables.RUNS).schema}
    assert {"started_at", "rules"} <= names
    rows = list(analyst.query(analyst.connect(world.store), "select started_at is null from runs")[1])
    assert sorted(rows) == [(False,), (False,), (True,), (True,), (True,)]


def test_a_board_that_is_ranked_by_other_rules_now_makes_its_old_days_stale(world: World) -> None:
    (world.home / "conf" / "boards.toml").write_text(BOARDS.replace("[goals]", '[goals]\nsemantics = "best"', 1))
    other = world.beside(boards_folder=world.home / "conf")
    assert stale_board_days(other.context.lake) == {D1, D2, D3}
