"""Bans and voids reach every board in one call, last through every recompute, and an unban restores what was."""

import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis

from daybreak.errors import InputIncompleteError, UnreachableError, UsageError
from daybreak.ranking import ranks
from daybreak.serving.lists import Lists
from jobs.closing import versions
from jobs.closing.bans import ban, unban, void
from jobs.closing.close import close
from jobs.closing.what_if import what_if_ban
from jobs.run.context import Context
from lakehouse.actions import actions
from lakehouse.closes import newest_versions
from lakehouse.tables import registry as tables
from tests.engines import NAMES, Engines
from tests.integration.nights import D1, D2, D3, World
from tests.integration.seasons import (
    everything_served,
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
CLOSED = (("goals", "march"), ("peak", "march"), ("form", "march"), ("goals", str(D1)))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Path:
    """A home with closed boards; nothing runs in it."""
    world = played_world(tmp_path_factory.mktemp("template") / "home", engines["sail"])
    for each in CLOSED:
        close(world.context, *each)
    stopped(world)
    return world.home


@pytest.fixture
def world(template: Path, tmp_path: Path, engines: Engines) -> Iterator[World]:
    shutil.copytree(template, tmp_path / "home")
    made = seasonal_world(tmp_path / "home", engines["sail"])
    yield made
    stopped(made)


def hashes(world: World) -> dict[tuple[str, str], str]:
    """The digest of each closed period, and of what Redis serves of each board."""
    lists = world.context.board_lists
    served = {key: lists.meta(*key).content_hash for key in everything_served(world)}
    return served | {(*key, "closed"): made.content_hash for key, made in newest_versions(world.store).items()}


def assert_all_as_by_the_oracle(world: World, **given: object) -> None:
    """Every closed period and everything in Redis is what the oracle says."""
    for (board, period), made in newest_versions(world.store).items():
        assert final(world, made) == oracle(world, board, period, **given)
    for (board, period), found in everything_served(world).items():
        depth = world.boards.board(board).depth
        due = oracle(world, board, period, **given)[:depth]
        assert found == [(row.rank, row.player_id) for row in due], (board, period)


def test_the_winner_is_banned_and_the_second_moves_up_everywhere(world: World):
    before, known = everything_served(world), hashes(world)
    winner = before["goals", "march"][0][1]
    assert winner == "cai"
    reached = ban(world.context, winner, long_ago(), "bots", "judge")
    assert_all_as_by_the_oracle(world, banned={winner: long_ago()})
    assert {each.key for each in reached.amended} == set(CLOSED), (
        "the player was on all of them, in form below its depth"
    )
    assert all(each.version == 2 for each in reached.amended)
    for key, places in everything_served(world).items():
        left = [player for _, player in before[key] if player != winner]
        if key[0] != "form":
            assert [player for _, player in places] == left, key
        else:
            assert [player for _, player in places][: len(left)] == left, "the depth is filled up again"
    assert ban(world.context, winner, long_ago(), "bots", "judge").amended == (), "repeated, nothing more changes"
    assert [row["action"] for row in actions(world.store)] == ["ban"]
    unban(world.context, winner, "it was somebody else", "judge")
    assert everything_served(world) == before
    assert hashes(world) == known, "what was there before has its digest back"
    assert [(row["action"], row["player_id"], row["actor"]) for row in actions(world.store)] == [
        ("ban", "cai", "judge"),
        ("unban", "cai", "judge"),
    ]
    unban(world.context, winner, "again")
    assert hashes(world) == known


def test_the_amendment_of_a_ban_lists_who_left_who_moved_and_whose_prize_changed(world: World):
    before = oracle(world, "goals")
    ban(world.context, "cai", long_ago(), "bots")
    after = {row.player_id: row for row in oracle(world, "goals", banned={"cai": long_ago()})}
    rows = world.store.read(tables.AMENDED_RANKS).to_pylist()
    found = {row["player_id"]: row for row in rows if (row["board"], row["period"]) == ("goals", "march")}
    assert (found["cai"]["old_rank"], found["cai"]["new_rank"], found["cai"]["new_points"]) == (1, None, None)
    assert (found["cai"]["old_prizes"], found["cai"]["new_prizes"]) == ("cup", None)
    moved = {row.player_id for row in before if row.player_id != "cai" and row.rank != after[row.player_id].rank}
    assert moved <= set(found)
    assert all(found[player]["new_rank"] == after[player].rank for player in moved)
    prizes = {row["player_id"] for row in found.values() if row["old_prizes"] != row["new_prizes"]}
    assert set(found) == moved | prizes | {"cai"}
    second = next(row.player_id for row in before if row.rank == 2)
    assert found[second]["new_prizes"].startswith("cup")


class KilledError(Exception):
    """Stands in for a SIGKILL: nothing catches it."""


@pytest.mark.parametrize("point", ["close.ranks", "close.row"])
def test_an_amendment_killed_anywhere_is_completed_when_it_is_repeated_and_undone_by_an_unban(
    world: World, monkeypatch: pytest.MonkeyPatch, point: str
):
    known = newest_versions(world.store)["goals", "march"]
    die_at(point, monkeypatch)
    with pytest.raises(KilledError):
        ban(world.context, "cai", long_ago(), "bots")
    monkeypatch.undo()
    undone = unban(world.context, "cai", "no bots")
    assert_all_as_by_the_oracle(world)
    assert newest_versions(world.store)["goals", "march"].content_hash == known.content_hash
    assert all(each.version <= 3 for each in undone.amended)


@pytest.mark.parametrize("point", ["close.prizes", "close.published"])
def test_a_ban_killed_in_an_amendment_is_completed_by_the_same_ban(
    world: World, monkeypatch: pytest.MonkeyPatch, point: str
):
    die_at(point, monkeypatch)
    with pytest.raises(KilledError):
        ban(world.context, "cai", long_ago(), "bots")
    monkeypatch.undo()
    ban(world.context, "cai", long_ago(), "bots")
    assert_all_as_by_the_oracle(world, banned={"cai": long_ago()})
    assert {each.version for each in newest_versions(world.store).values()} == {2}
    counts = Counter((row["board"], row["period"], row["version"]) for row in closes(world))
    assert set(counts.values()) == {1}


def closes(world: World) -> list[dict[str, object]]:
    return list(world.store.read(tables.BOARD_CLOSES).to_pylist())


def die_at(point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next amendment end at that point."""

    def crash_point(name: str) -> None:
        if name == point:
            raise KilledError(name)

    monkeypatch.setattr(versions, "crash_point", crash_point)


def test_a_ban_since_an_instant_spares_the_periods_that_end_before_it(world: World):
    since = datetime(2026, 3, 2, tzinfo=UTC)
    ban(world.context, "cai", since, "bots")
    assert_all_as_by_the_oracle(world, banned={"cai": since})
    assert "cai" in [player for _, player in served(world, "goals", str(D1))]
    assert newest_versions(world.store)["goals", str(D1)].version == 1
    ban(world.context, "cai", long_ago(), "bots, earlier than we knew")
    assert_all_as_by_the_oracle(world, banned={"cai": long_ago()})
    ban(world.context, "cai", since, "only the later ones are proven")
    assert_all_as_by_the_oracle(world, banned={"cai": since})


def test_a_ban_survives_nights_and_later_closes(world: World):
    ban(world.context, "cai", long_ago(), "bots")
    ingest(world, "late.jsonl", [score("late", "cai", 99, f"{D3}T11:00")])
    world.night(D1, D3)
    assert all("cai" not in [player for _, player in places] for places in everything_served(world).values())
    closed = close(world.context, "goals", str(D3))
    assert final(world, closed) == oracle(world, "goals", str(D3), banned={"cai": long_ago()})


def test_what_a_ban_would_change_is_what_it_changes_and_asking_writes_nothing(world: World):
    files = sorted(path.relative_to(world.home) for path in (world.home / "lake").rglob("*"))
    known = hashes(world)
    would = {(each.board, each.period): each for each in what_if_ban(world.context, "cai", long_ago())}
    assert sorted(path.relative_to(world.home) for path in (world.home / "lake").rglob("*")) == files
    assert hashes(world) == known
    reached = ban(world.context, "cai", long_ago(), "bots")
    keys = {*reached.ranked, *(each.key for each in reached.amended)}
    assert set(would) == keys
    rows = world.store.read(tables.AMENDED_RANKS).to_pylist()
    for each in reached.amended:
        told = would[each.key].changes.to_pylist()
        names = list(told[0])
        done = [{name: row[name] for name in names} for row in rows if (row["board"], row["period"]) == each.key]
        assert sorted(told, key=lambda row: row["player_id"]) == sorted(done, key=lambda row: row["player_id"])
    open_one = would["goals", "all_time"]
    assert open_one.version == 0
    (left,) = [row for row in open_one.changes.to_pylist() if row["player_id"] == "cai"]
    assert (left["old_rank"], left["new_rank"], left["old_prizes"]) == (1, None, "cup")
    assert what_if_ban(world.context, "cai", long_ago()) == []


def test_a_voided_event_counts_nowhere_and_the_next_best_stands(world: World):
    assert served(world, "peak", "march")[0] == (1, "cai")
    reached = void(world.context, "big", "typed in by hand", "judge")
    assert_all_as_by_the_oracle(world, voided={"big"})
    assert {each.key for each in reached.amended} <= set(CLOSED)
    assert newest_versions(world.store)["peak", "march"].version == 2
    assert "cai" in [player for _, player in served(world, "peak", "march")], "the player keeps the other scores"
    assert void(world.context, "big", "typed in by hand").amended == ()
    (row,) = actions(world.store)
    assert (row["action"], row["event_id"], row["reason"]) == ("void", "big", "typed in by hand")
    world.night(D1, D3)
    assert_all_as_by_the_oracle(world, voided={"big"})


def test_a_close_waits_for_a_void_that_was_recorded_and_not_yet_counted(world: World):
    lost = lost_redis(world)
    with pytest.raises(UnreachableError, match=r"void of big.* is recorded and holds from now on; repeat it"):
        void(lost, "big", "typed in by hand")
    with pytest.raises(InputIncompleteError, match=f"daybreak nightly --from {D2} --to {D2}"):
        close(world.context, "goals", str(D2))
    void(world.context, "big", "typed in by hand")
    assert len(actions(world.store)) == 1
    assert final(world, close(world.context, "goals", str(D2))) == oracle(world, "goals", str(D2), voided={"big"})


def lost_redis(world: World) -> Context:
    """The place with a Redis that does not answer."""
    away = Lists(redis.Redis(port=1, retry=None), world.settings.redis)
    return Context(world.settings, world.store, away, world.context.clock, world.engine, world.boards)


def test_a_ban_while_redis_is_away_is_recorded_and_repeating_it_does_the_rest(world: World):
    before = everything_served(world)
    with pytest.raises(UnreachableError, match="is recorded and holds from now on; repeat it"):
        ban(lost_redis(world), "cai", long_ago(), "bots")
    with pytest.raises(UnreachableError, match="repeat it"):
        ban(lost_redis(world), "cai", long_ago(), "bots")
    assert everything_served(world) == before
    ban(world.context, "cai", long_ago(), "bots")
    assert_all_as_by_the_oracle(world, banned={"cai": long_ago()})
    assert len(actions(world.store)) == 1


def test_whom_nobody_knows_is_refused_with_what_to_do(world: World):
    with pytest.raises(UsageError, match=r"no player 'CAI' .* daybreak sql"):
        ban(world.context, "CAI", long_ago(), "bots")
    with pytest.raises(UsageError, match="has no time zone"):
        ban(world.context, "cai", datetime(2026, 3, 1), "bots")  # noqa: DTZ001
    with pytest.raises(UsageError, match=r"'cai' is not banned; daybreak board audit"):
        unban(world.context, "cai", "?")
    with pytest.raises(UsageError, match=r"no event has the id 'BIG'"):
        void(world.context, "BIG", "?")
    with pytest.raises(UsageError, match=r"no player 'CAI'"):
        what_if_ban(world.context, "CAI", long_ago())
    assert actions(world.store) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_ban_and_its_end_on_each_engine(tmp_path: Path, engines: Engines, name: str):
    boards = '[goals]\nperiods = ["all_time"]\nseasons = ["march"]\n'
    world = played_world(tmp_path / "home", engines[name], boards)
    try:
        closed = close(world.context, "goals", "march")
        (made,) = ban(world.context, "cai", long_ago(), "bots").amended
        assert final(world, made) == oracle(world, "goals", banned={"cai": long_ago()})
        players = served(world, "goals", "all_time")
        assert [rank for rank, _ in players] == ranks([row.points for row in final(world, made)], "competition")
        unban(world.context, "cai", "no bots")
        assert newest_versions(world.store)["goals", "march"].content_hash == closed.content_hash
    finally:
        stopped(world)
