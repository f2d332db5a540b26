"""Events that come after a close: found once, listed, accepted into an amendment or rejected."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from daybreak.errors import UsageError
from jobs.closing import bans, what_if
from jobs.closing.close import close
from jobs.closing.exceptions import accept, exceptions, reject
from lakehouse.closes import newest_versions, versions
from lakehouse.tables import registry as tables
from tests.engines import Engines
from tests.integration.nights import D1, D2, D3, World
from tests.integration.seasons import (
    final,
    ingest,
    long_ago,
    oracle,
    played_world,
    score,
    seasonal_world,
    served,
    stopped,
)

pytestmark = pytest.mark.slow
LATE = [
    score("late-1", "gus", 90, f"{D2}T12:00"),
    score("late-2", "ivy", 5, f"{D1}T08:00"),
    score("late-casual", "ivy", 7, f"{D1}T09:00", "casual"),
    score("big", "cai", 40, f"{D2}T09:00"),
    score("twice", "ben", 3, f"{D2}T00:05"),
]
"""Three that are new, a copy of one of the same day, and a copy of one of the look-back slice."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Path:
    """A home with closed boards and late events that no night has seen; nothing runs in it."""
    world = played_world(tmp_path_factory.mktemp("template") / "home", engines["sail"])
    for board, period in (("goals", "march"), ("peak", "march"), ("goals", str(D1))):
        close(world.context, board, period)
    ingest(world, "late.jsonl", LATE)
    stopped(world)
    return world.home


@pytest.fixture
def world(template: Path, tmp_path: Path, engines: Engines) -> Iterator[World]:
    shutil.copytree(template, tmp_path / "home")
    made = seasonal_world(tmp_path / "home", engines["sail"])
    yield made
    stopped(made)


def listed(world: World, board: str | None = None) -> list[tuple[str, str, str, str]]:
    """(board, period, event, state) of every exception."""
    rows = exceptions(world.context, board)
    return [(row["board"], row["period"], row["event_id"], row["state"]) for row in rows]


def amended(world: World) -> list[tuple[object, ...]]:
    """(player, ranks, points, prizes) of every amended rank."""
    rows = world.store.read(tables.AMENDED_RANKS).to_pylist()
    names = ("player_id", "old_rank", "new_rank", "old_points", "new_points")
    return [tuple(row[name] for name in names) for row in rows]


def test_late_events_are_listed_for_each_closed_board_that_they_are_for_and_copies_are_not(world: World):
    due = [
        ("goals", str(D1), "late-2", "open"),
        ("goals", str(D1), "late-casual", "open"),
        ("goals", "march", "late-2", "open"),
        ("goals", "march", "late-casual", "open"),
        ("goals", "march", "late-1", "open"),
        ("peak", "march", "late-2", "open"),
        ("peak", "march", "late-1", "open"),
    ]
    assert listed(world) == due
    assert listed(world, "peak") == due[-2:]
    assert world.store.read(tables.BOARD_EXCEPTIONS).num_rows == len(due), "found once"
    found = exceptions(world.context, "peak")[-1]
    assert (found["day"], found["player_id"], found["points"]) == (D2, "gus", 90)
    assert "late.jsonl" in found["reason"]
    with pytest.raises(UsageError, match="no board 'gaols'"):
        exceptions(world.context, "gaols")


def test_a_night_finds_the_late_events_of_its_days(world: World):
    world.night(D2)
    rows = world.store.read(tables.BOARD_EXCEPTIONS).to_pylist()
    assert sorted((row["board"], row["event_id"]) for row in rows) == [("goals", "late-1"), ("peak", "late-1")]
    world.night(D1, D3)
    assert len(listed(world)) == 7
    assert world.store.read(tables.BOARD_EXCEPTIONS).num_rows == 7


def test_an_accepted_event_makes_an_amendment_that_lists_exactly_what_changed(world: World):
    exceptions(world.context)
    before = oracle(world, "goals", without={"late-1", "late-2", "late-casual"})
    after = oracle(world, "goals", without={"late-2", "late-casual"})
    made = accept(world.context, "goals", "march", "late-1", "the sensor was offline", "judge")
    assert (made.version, made.kind, made.accepted) == (2, "amendment", ("late-1",))
    assert final(world, made) == after
    assert served(world, "goals", "march") == [(row.rank, row.player_id) for row in after]
    old, new = ({row.player_id: row for row in rows} for rows in (before, after))
    changed = {
        (player, old[player].rank, new[player].rank, old[player].points, new[player].points)
        for player in old
        if (old[player].rank, old[player].points) != (new[player].rank, new[player].points)
    }
    rows = set(amended(world))
    assert changed <= rows
    only_prizes = [row for row in world.store.read(tables.AMENDED_RANKS).to_pylist() if changed_prizes_only(row)]
    assert len(rows) == len(changed) + len(only_prizes)
    assert {row["player_id"]: (row["old_prizes"], row["new_prizes"]) for row in rows_of(world)}["gus"][1] == "cup"
    assert listed(world, "goals")[-1] == ("goals", "march", "late-1", "accepted")
    assert accept(world.context, "goals", "march", "late-1", "again") == made, "accepted twice counts once"
    assert close(world.context, "goals", "march") == made
    assert [each.version for each in versions(world.store) if each.key == ("goals", str(D1))] == [1]


def rows_of(world: World) -> list[dict[str, object]]:
    return list(world.store.read(tables.AMENDED_RANKS).to_pylist())


def changed_prizes_only(row: dict[str, object]) -> bool:
    """Whether nothing but the prizes differs; then they do."""
    same = all(row[f"old_{name}"] == row[f"new_{name}"] for name in ("rank", "points"))
    assert not same or row["old_prizes"] != row["new_prizes"]
    return same


def test_a_new_player_is_listed_and_a_second_event_makes_a_further_version(world: World):
    accept(world.context, "goals", "march", "late-1", "counts")
    made = accept(world.context, "goals", "march", "late-2", "counts too")
    assert (made.version, made.accepted) == (3, ("late-1", "late-2"))
    assert final(world, made) == oracle(world, "goals", without={"late-casual"})
    ivy = [row for row in rows_of(world) if row["player_id"] == "ivy" and row["version"] == 3]
    assert [(row["old_rank"], row["old_points"], row["new_points"]) for row in ivy] == [(None, None, 5)]
    would = what_if.what_if_ban(world.context, "ivy", long_ago())
    assert ("goals", "march", 3) in [(each.board, each.period, each.version) for each in would]
    (banned,) = bans.ban(world.context, "ivy", long_ago(), "no such player").amended
    assert banned.key == ("goals", "march"), "no night has seen her, only the version that accepted her event"
    assert "ivy" not in {row.player_id for row in final(world, banned)}


def test_what_comes_between_the_close_and_an_amendment_is_still_found(world: World):
    accept(world.context, "goals", "march", "late-1", "counts")
    ingest(world, "later.jsonl", [score("late-3", "ivy", 1, f"{D3}T08:00")])
    accept(world.context, "goals", "march", "late-2", "counts")
    assert ("goals", "march", "late-3", "open") in listed(world)


def test_a_rejected_event_is_recorded_and_changes_nothing(world: World):
    closed = newest_versions(world.store)["goals", "march"]
    reject(world.context, "goals", "march", "late-1", "sent by hand")
    reject(world.context, "goals", "march", "late-1", "sent by hand")
    assert listed(world, "goals")[-1] == ("goals", "march", "late-1", "rejected")
    assert newest_versions(world.store)["goals", "march"] == closed
    assert [row["action"] for row in world.store.read(tables.BOARD_ACTIONS).to_pylist()] == ["reject"]
    accept(world.context, "goals", "march", "late-1", "it was right after all")
    assert listed(world, "goals")[-1][-1] == "accepted"
    with pytest.raises(UsageError, match="daybreak board void late-1"):
        reject(world.context, "goals", "march", "late-1", "or not")


def test_what_is_no_exception_is_refused(world: World):
    with pytest.raises(UsageError, match="'big' is no exception of goals march"):
        accept(world.context, "goals", "march", "big", "a copy")
    with pytest.raises(UsageError, match="goals all_time is not closed"):
        reject(world.context, "goals", "all_time", "late-1", "open periods count it")
