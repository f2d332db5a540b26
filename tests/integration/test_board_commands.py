"""`daybreak board …` on a real lake and a real Redis: what is printed is what the oracle says."""

import csv
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from daybreak.cli.main import app
from tests.engines import Engines
from tests.integration.nights import D1, D2, D3, World
from tests.integration.seasons import ingest, long_ago, oracle, played_world, score, stopped
from tests.oracles.boards import Row

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Iterator[World]:
    """Three corrected days, left open; `form` publishes three places of nine."""
    made = played_world(tmp_path_factory.mktemp("commands") / "home", engines["sail"])
    yield made
    stopped(made)


@pytest.fixture
def lake_only(world: World) -> Iterator[World]:
    """The same, while Redis serves none of `goals`."""
    lists = world.context.board_lists
    for period in lists.periods("goals"):
        lists.remove("goals", period)
    yield world
    world.night(D1, D3)


def board(world: World, *words: str) -> tuple[str, str]:
    """(standard output, standard error) of a reading command, run in this process."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DAYBREAK_")}
    done = CliRunner().invoke(app, ["board", *words], env=environ | world.environ, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def rows(world: World, *words: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(board(world, *words, "--format", "csv")[0])))


def printed(due: Row) -> dict[str, Any]:
    """A place of the oracle as the command shows it; these boards show no decimals."""
    return {
        "position": str(due.position),
        "rank": str(due.rank),
        "player_id": due.player_id,
        "points": f"{due.points:.0f}",
        "reached_at": due.reached_at.isoformat(),
        "event_count": str(due.event_count),
    }


def test_the_list_names_every_board_and_its_periods(world: World):
    found = {row["board"]: row for row in rows(world, "list")}
    assert list(found) == ["goals", "peak", "form"]
    assert found["goals"]["periods"] == "day week all_time march"
    assert found["form"]["order"] == "ascending"


@pytest.mark.parametrize("period", ["all_time", "march", "2026-W10", str(D2)])
def test_the_top_is_the_oracle(world: World, period: str):
    due = [printed(row) for row in oracle(world, "goals", period)]
    assert rows(world, "top", "goals", "--period", period) == due
    assert rows(world, "top", "goals", "--period", period, "-k", "3") == due[:3]


@pytest.mark.parametrize("period", ["all_time", "march", "2026-W10", str(D2)])
def test_the_lake_has_what_redis_does_not_serve(lake_only: World, period: str):
    due = [printed(row) for row in oracle(lake_only, "goals", period)]
    assert rows(lake_only, "top", "goals", "--period", period) == due
    assert rows(lake_only, "around", "goals", "ana", "--period", period, "--width", "1") == neighbours(due, "ana", 1)
    assert [row["percentile"] for row in rows(lake_only, "percentile", "goals", "ana", "--period", period)] == [
        str(row.percentile) for row in oracle(lake_only, "goals", period) if row.player_id == "ana"
    ]
    pages, cursor = [], ""
    while cursor is not None:
        out, err = board(
            lake_only, "page", "goals", "--period", period, "--size", "4", *cursor.split(), "--format", "csv"
        )
        pages += csv.DictReader(io.StringIO(out))
        cursor = err.partition("next page: ")[2] or None
    assert pages == due


def neighbours(due: list[dict[str, Any]], player: str, width: int) -> list[dict[str, Any]]:
    at = [row["player_id"] for row in due].index(player)
    return due[max(0, at - width) : at + width + 1]


@pytest.mark.parametrize("player", ["cai", "ana", "hal"])
def test_a_player_stands_among_his_neighbours(world: World, player: str):
    due = [printed(row) for row in oracle(world, "goals")]
    words = ("around", "goals", player, "--period", "march", "--width", "2")
    assert rows(world, *words) == neighbours(due, player, 2)
    (row,) = rows(world, "rank", "goals", player, "--period", "march")
    assert row == neighbours(due, player, 0)[0] | {"population": str(len(due))}


def test_the_state_goes_with_every_answer(world: World):
    out, err = board(world, "top", "goals", "--period", "march", "--format", "json")
    first = json.loads(out.splitlines()[0])
    assert (first["state"], first["as_of"], first["population"]) == ("exact", str(D3), len(oracle(world, "goals")))
    assert f"board=goals period=march state=exact as_of={D3}" in err


@pytest.mark.parametrize(("name", "period"), [("goals", str(D3)), ("peak", "all_time"), ("form", str(D3))])
def test_without_a_period_it_is_the_first_kind_at_the_newest_day(world: World, name: str, period: str):
    out, err = board(world, "top", name, "--format", "csv")
    assert f"period={period} " in err
    assert out == board(world, "top", name, "--period", period, "--format", "csv")[0]


def test_below_the_published_depth_points_and_percentile_are_known(world: World):
    due = oracle(world, "form", "march")
    last = due[-1]
    assert len(due) > 3
    words = ("form", last.player_id, "--period", "march", "--format", "csv")
    for command in ("rank", "percentile", "around"):
        out, err = board(world, command, *words)
        assert "below the 3 published places" in err
        (row,) = csv.DictReader(io.StringIO(out))
        assert row["points"] == f"{last.points:.0f}"
        assert row["rank"] == str(last.rank)
        if command == "percentile":
            assert (row["percentile"], row["population"]) == (str(last.percentile), str(len(due)))
        else:
            assert row["position"] == ""


@pytest.mark.parametrize("command", ["rank", "percentile", "around"])
def test_a_player_without_a_score_is_said_to_have_none(world: World, command: str):
    out, err = board(world, command, "goals", "nobody", "--period", "march", "--format", "csv")
    assert len(out.splitlines()) == 1
    assert "nobody has no score on board goals in march" in err


def test_pages_go_on_where_the_one_before_ended(world: World):
    due = [printed(row) for row in oracle(world, "goals")]
    out, err = board(world, "page", "goals", "--period", "march", "--size", "5", "--format", "csv")
    assert list(csv.DictReader(io.StringIO(out))) == due[:5]
    cursor = err.partition("next page: --after ")[2].strip()
    assert cursor == f"5:{due[4]['player_id']}"
    out, err = board(world, "page", "goals", "--period", "march", "--after", cursor, "--size", "50", "--format", "csv")
    assert list(csv.DictReader(io.StringIO(out))) == due[5:]
    assert "no further page" in err


def test_history_is_each_night_that_saw_the_player(world: World):
    found = rows(world, "history", "goals", "ana", "--period", "march")
    (due,) = (row for row in oracle(world, "goals") if row.player_id == "ana")
    assert [(row["as_of"], row["state"], row["version"]) for row in found] == [(str(D3), "exact", "")]
    assert (found[0]["rank"], found[0]["position"]) == (str(due.rank), str(due.position))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("top", "nothing"), "no board 'nothing'"),
        (("top", "goals", "--period", "2026"), "does not rank 2026"),
        (("top", "goals", "--period", "soon"), "'soon' is no period"),
        (("top", "goals", "--period", "2020-01-01"), "has no players in 2020-01-01"),
        (("page", "goals", "--period", "march", "--after", "first"), "is no cursor"),
        (("close", "goals", "all_time"), "has no end"),
        (("ban", "ana", "--since", "yesterday", "--reason", "x"), "--since 'yesterday' is not a time"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(world: World, words: tuple[str, ...], told: str):
    out, err = world.command("board", *words, code=2)
    assert out == ""
    assert told in err.splitlines()[-1]


def test_a_season_from_close_to_amendment(tmp_path: Path, engines: Engines):
    world = played_world(tmp_path / "home", engines["sail"])
    try:
        check_a_season(world)
    finally:
        stopped(world)


def check_a_season(world: World) -> None:
    """Closed, read, a late event accepted and another rejected, the winner banned and let back, all of it listed."""

    def told(*words: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(world.command("board", *words, "--format", "csv")[0])))

    (closed,) = told("close", "goals", "march")
    assert (closed["version"], closed["kind"]) == ("1", "close")
    assert told("close", "goals", "march") == [closed]
    out, err = board(world, "top", "goals", "--period", "march", "--format", "csv")
    assert list(csv.DictReader(io.StringIO(out))) == [printed(row) for row in oracle(world, "goals")]
    assert "state=closed" in err
    assert "version=1" in err

    ingest(world, "late.jsonl", [score("late-1", "ana", 5, f"{D2}T12:00"), score("late-2", "ben", 9, f"{D2}T12:00")])
    assert [(row["event_id"], row["state"]) for row in told("exceptions", "goals")] == [
        ("late-1", "open"),
        ("late-2", "open"),
    ]
    (amended,) = told("accept", "goals", "march", "late-1", "--reason", "the server was down", "--actor", "judge")
    assert (amended["version"], amended["kind"]) == ("2", "amendment")
    assert (
        told("reject", "goals", "march", "late-2", "--reason", "too late", "--actor", "judge")[0]["state"] == "rejected"
    )
    due = [printed(row) for row in oracle(world, "goals", without={"late-2"})]
    assert rows(world, "top", "goals", "--period", "march") == due

    winner = due[0]["player_id"]
    left = oracle(world, "goals", banned={winner: long_ago()}, without={"late-2"})
    before, after = {row["player_id"]: row["rank"] for row in due}, {row.player_id: str(row.rank) for row in left}
    moved = {player: (rank, after.get(player, "")) for player, rank in before.items() if rank != after.get(player)}
    changes = told("what-if", winner, "--since", "2026-01-01")
    of_march = [row for row in changes if (row["board"], row["period"], row["version"]) == ("goals", "march", "2")]
    told_ranks = {row["player_id"]: (row["old_rank"], row["new_rank"]) for row in of_march}
    assert moved.items() <= told_ranks.items()
    assert all(old == new for player, (old, new) in told_ranks.items() if player not in moved)
    reached = told("ban", winner, "--since", "2026-01-01", "--reason", "cheating", "--actor", "judge")
    assert {"board": "goals", "period": "march", "state": "closed", "version": "3"} in reached
    assert rows(world, "top", "goals", "--period", "march") == [printed(row) for row in left]
    assert rows(world, "rank", "goals", winner, "--period", "all_time") == []
    told("unban", winner, "--reason", "it was somebody else", "--actor", "judge")
    assert rows(world, "top", "goals", "--period", "march") == due

    told("void", "big", "--reason", "broken match", "--actor", "judge")
    without = [printed(row) for row in oracle(world, "goals", voided={"big"}, without={"late-2"})]
    assert rows(world, "top", "goals", "--period", "march") == without
    assert [(row["action"], row["actor"]) for row in told("audit")] == [
        (action, "judge") for action in ("accept", "reject", "ban", "unban", "void")
    ]
    versions = {row["version"] for row in rows(world, "history", "goals", "ana", "--period", "march")}
    assert versions == {"", "1", "2", "3", "4", "5"}


def test_stale_days_of_boards_are_found_by_the_night(tmp_path: Path, engines: Engines):
    world = played_world(tmp_path / "home", engines["sail"])
    try:
        ingest(world, "late.jsonl", [score("late", "ana", 5, f"{D2}T12:00")])
        out, err = world.command("nightly", "--stale")
        assert json.loads(out.splitlines()[-1])["first"] == str(D2)
        assert f"boards of a period ranked for {D2}" in err
        assert "no event at all" not in err
        assert rows(world, "top", "goals", "--period", "march") == [printed(row) for row in oracle(world, "goals")]
        assert "no day is stale" in world.command("nightly", "--stale")[1]
    finally:
        stopped(world)
