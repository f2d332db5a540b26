"""A night killed at each of its crash points: readers see the old day or the new one, the next run completes."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from daybreak import crashpoints
from daybreak.serving.embedded import EmbeddedServer
from lakehouse.reading import analyst
from lakehouse.tables import registry as tables
from tests.engines import MAKERS, Engines
from tests.integration.nights import D1, D2, D3, World, some_days
from tests.integration.test_night import exact, in_order, table_rows

pytestmark = pytest.mark.slow

BOARD_POINTS = {"board.staged", "board.swapped"} | {
    point
    for point in crashpoints.POINTS
    if point.startswith(("boards.", "close."))
    or point.removeprefix("night.committed.") in {t.name for t in tables.BOARD_TABLES}
}
POINTS = [point for point in crashpoints.POINTS if not point.startswith("ingest.") and point not in BOARD_POINTS]
SPARK_POINTS = ["night.committed.hourly_counts", "night.manifest"]
"""Of Apache Spark, which takes 9 s to start, the points around its own commits."""
INGEST_POINTS = [point for point in crashpoints.POINTS if point.startswith("ingest.")]
DAY_LIST = "select item_id, count from daily_counts where day = '2026-03-02' order by count desc, item_id desc"
HOUR_SUMS = """
    select item_id, sum(count)::bigint as count from hourly_counts where day = '2026-03-02'
    group by item_id order by count desc, item_id desc
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Path:
    """A home with three complete days, of which all are served provisionally; nothing runs in it."""
    home = tmp_path_factory.mktemp("template") / "home"
    home.mkdir()
    world = World(home, engines["sail"])
    world.ingest("events.jsonl", some_days(), through=D3)
    world.stream("events.jsonl")
    EmbeddedServer(home).stop()
    return home


@pytest.fixture
def engine_name() -> str:
    """The engine of `prepared`, unless a test says otherwise."""
    return "sail"


@pytest.fixture
def prepared(template: Path, tmp_path: Path, engines: Engines, engine_name: str) -> Iterator[World]:
    home = tmp_path / "home"
    shutil.copytree(template, home)
    made = World(home, engines[engine_name])
    yield made
    assert made.makers() <= {MAKERS[engine_name]}
    EmbeddedServer(home).stop()


def corrections(world: World) -> list[dict[str, object]]:
    return table_rows(world, tables.CORRECTIONS)


@pytest.fixture(scope="module")
def undisturbed(template: Path, tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> list[dict[str, object]]:
    home = tmp_path_factory.mktemp("undisturbed") / "home"
    shutil.copytree(template, home)
    world = World(home, engines["sail"])
    world.night(D2)
    EmbeddedServer(home).stop()
    found = corrections(world)
    assert len(found) == 21, "the day and each hour that had events"
    return found


def children(home: Path) -> list[str]:
    """Command lines of processes that work under this home, its Redis left out."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        environ = process.info["environ"] or {}
        line = " ".join(process.info["cmdline"] or [])
        if environ.get("DAYBREAK_HOME") == str(home) and "valkey" not in line and line:
            found.append(line)
    return found


@pytest.mark.parametrize(
    ("engine_name", "point"), [*(("sail", point) for point in POINTS), *(("spark", point) for point in SPARK_POINTS)]
)
def test_a_night_killed_anywhere_leaves_the_old_day_or_the_new_one(
    prepared: World, point: str, undisturbed: list[dict[str, object]]
):
    world = prepared
    provisional = world.served(D2)["day"]
    new = in_order(exact(some_days(), D2))
    world.command("nightly", "--day", str(D2), code=-9, DAYBREAK_CRASH_AT=point)
    deadline = time.monotonic() + 5
    while children(world.home) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children(world.home) == []
    assert world.served(D2)["day"] in (provisional, new)
    connection = analyst.connect(world.store)
    day = tuple(analyst.query(connection, DAY_LIST)[1])
    assert day in ((), new)
    assert tuple(analyst.query(connection, HOUR_SUMS)[1]) == day
    world.night(D2)
    assert world.served(D2)["day"] == new
    assert tuple(analyst.query(analyst.connect(world.store), DAY_LIST)[1]) == new
    assert corrections(world) == undisturbed
    assert world.lists.day_state(D2).generation == 1


@pytest.mark.parametrize("point", [f"night.committed.{table.name}" for table in tables.DERIVED])
def test_a_night_that_died_half_committed_is_finished_by_the_night_of_another_day(prepared: World, point: str):
    prepared.command("nightly", "--day", str(D2), code=-9, DAYBREAK_CRASH_AT=point)
    prepared.night(D1)
    connection = analyst.connect(prepared.store)
    new = in_order(exact(some_days(), D2))
    assert tuple(analyst.query(connection, DAY_LIST)[1]) == new
    assert tuple(analyst.query(connection, HOUR_SUMS)[1]) == new


def test_the_steps_of_a_day_whose_night_died_before_its_first_commit_can_be_run_singly(prepared: World):
    """A run that died there is finished first: a pin beside it would take the attempt that is its own."""
    prepared.command("nightly", "--day", str(D2), code=-9, DAYBREAK_CRASH_AT="night.committing")
    planned, said = prepared.command("nightly", "--day", str(D2), "--dry-run", "--format", "json")
    assert json.loads(planned)["attempt"] == 2
    assert "died while it committed; it would be finished first" in said
    words = ("--run-id", "anew", "--day", str(D2))
    told = [prepared.command("run", step, *words)[1] for step in ("pin", "derive", "check", "commit", "publish")]
    assert re.fullmatch(rf"finished a run that had died while it committed days={D2} run_id=night-{D2}-\w+\n", told[0])
    assert told[1:] == [""] * 4
    new = in_order(exact(some_days(), D2))
    assert tuple(analyst.query(analyst.connect(prepared.store), DAY_LIST)[1]) == new
    runs = prepared.store.read(tables.RUNS).to_pylist()
    assert [run["attempt"] for run in sorted(runs, key=lambda run: run["committed_at"])] == [1, 2]


def test_a_half_committed_run_whose_staging_is_gone_is_named_and_replaced_by_a_night_of_its_days(prepared: World):
    point = "night.committed.hourly_counts"
    prepared.command("nightly", "--day", str(D2), code=-9, DAYBREAK_CRASH_AT=point)
    shutil.rmtree(prepared.settings.staging_root)
    _, err = prepared.command("nightly", "--day", str(D1), code=5)
    assert f"nightly --from {D2} --to {D2}" in err
    assert tuple(analyst.query(analyst.connect(prepared.store), HOUR_SUMS)[1]) == ()
    prepared.night(D2)
    prepared.night(D1)
    new = in_order(exact(some_days(), D2))
    assert tuple(analyst.query(analyst.connect(prepared.store), HOUR_SUMS)[1]) == new


@pytest.mark.parametrize("point", INGEST_POINTS)
def test_an_ingest_killed_anywhere_is_whole_after_a_second_try(tmp_path: Path, point: str):
    home = tmp_path / "home"
    home.mkdir()
    world = World(home)
    path = world.file("events.jsonl", [*some_days(), {"event_id": "broken"}])
    world.command("ingest", str(path), code=-9, DAYBREAK_CRASH_AT=point)
    world.command("ingest", str(path))
    _, err = world.command("ingest", str(path))
    assert "skipped" in err
    assert world.store.read(tables.ITEM_EVENTS).num_rows == len(some_days())
    assert world.store.read(tables.REFUSALS).num_rows == 1
