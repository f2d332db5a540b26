"""A season that is closed: once, exactly, with its prizes, whatever happens while it is."""

import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from daybreak import crashpoints
from daybreak.errors import DaybreakError, FenceRefusedError, InputIncompleteError, UsageError
from daybreak.queries.board_history import history
from daybreak.queries.boards import lookup
from jobs.closing import bans
from jobs.closing import versions as board_versions
from jobs.closing.amend import amend
from jobs.closing.close import Closed, close, due
from jobs.closing.exceptions import accept, exceptions
from jobs.run.context import Context
from lakehouse import closes
from lakehouse.tables import registry as tables
from tests.engines import NAMES, Engines
from tests.integration.nights import D1, D2, D3, World
from tests.integration.nights import event as item_event
from tests.integration.seasons import (
    BOARDS,
    final,
    ingest,
    oracle,
    played_world,
    score,
    seasonal_world,
    served,
    some_scores,
    stopped,
)

pytestmark = pytest.mark.slow
POINTS = [
    point for point in crashpoints.POINTS if point.startswith("close.") or point in ("board.staged", "board.swapped")
]
ANY_BOARDS = """
[total]
seasons = ["march"]
[total_of_label]
seasons = ["march"]
rank_style = "dense"
filter = { season = ["spring"] }
tie_breaks = ["more_events"]
[low]
semantics = "best"
order = "ascending"
seasons = ["march"]
reached_by = "received_at"
[newest]
semantics = "latest"
seasons = ["march"]
rank_style = "ordinal"
filter = { match_type = ["ranked"] }
"""
HALVES = "gold 1/2, silver 1/2"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Path:
    """A home with a corrected season, of which nothing is closed; nothing runs in it."""
    world = played_world(tmp_path_factory.mktemp("template") / "home", engines["sail"])
    stopped(world)
    return world.home


@pytest.fixture
def world(template: Path, tmp_path: Path, engines: Engines) -> Iterator[World]:
    shutil.copytree(template, tmp_path / "home")
    made = seasonal_world(tmp_path / "home", engines["sail"])
    yield made
    stopped(made)


@pytest.fixture(scope="module")
def undisturbed(template: Path, tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> str:
    """The digest of goals in march, closed in peace."""
    home = tmp_path_factory.mktemp("undisturbed") / "home"
    shutil.copytree(template, home)
    made = seasonal_world(home, engines["sail"])
    found = close(made.context, "goals", "march").content_hash
    stopped(made)
    return found


def at(world: World, now: datetime) -> Context:
    """The place at another time."""
    return replace(world.context, clock=lambda: now)


def table_rows(world: World, board: str) -> dict[str, int]:
    """How many rows of a board each table of closes has."""
    found = {}
    for table in (tables.SEASON_RANKS, tables.SEASON_PRIZES, tables.BOARD_CLOSES, tables.AMENDED_RANKS):
        found[table.name] = sum(row["board"] == board for row in world.store.read(table).to_pylist())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_board_of_a_season_is_closed_as_the_oracle_ranks_it(tmp_path: Path, engines: Engines, name: str):
    world = played_world(tmp_path / "home", engines[name])
    try:
        for board in ("goals", "peak", "form"):
            closed = close(world.context, board, "march")
            assert final(world, closed) == oracle(world, board)
            assert (closed.version, closed.kind, closed.population) == (1, "close", len(oracle(world, board)))
            rows = table_rows(world, board)
            assert close(world.context, board, "march") == closed
            assert table_rows(world, board) == rows
            meta = world.context.board_lists.meta(board, "march")
            assert (meta.state, meta.version, meta.population) == ("closed", 1, closed.population)
            depth = world.boards.board(board).depth
            assert served(world, board, "march") == [(row.rank, row.player_id) for row in oracle(world, board)[:depth]]
            amended = amend(world.context, closed, "again", "nothing changed")
            assert amended == closed, "the same events give the same digest"
    finally:
        stopped(world)


def test_prizes_are_those_of_the_board(world: World):
    close(world.context, "goals", "march")
    rows = world.store.read(tables.SEASON_PRIZES).to_pylist()
    found = {(row["player_id"], row["prize"]): (row["slots"], row["among"]) for row in rows}
    ranked = oracle(world, "goals")
    assert [row.player_id for row in ranked if (row.player_id, "cup") in found] == ["cai"]
    assert sum(slots / among for (_, prize), (slots, among) in found.items() if prize == "coins") == 2
    badges = {row.player_id for row in ranked if row.rank > 3 and row.percentile >= 25}
    assert {player for player, prize in found if prize == "badge"} >= badges


@pytest.mark.parametrize(
    ("policy", "due"),
    [
        ("all", {"ana": "gold", "ben": "gold", "cai": "silver", "dee": "silver"}),
        (
            "share",
            {"ana": "gold 1/2, silver 1/2", "ben": "gold 1/2, silver 1/2", "cai": "silver 1/2", "dee": "silver 1/2"},
        ),
        ("tie_break", {"ana": "gold", "ben": "silver", "cai": "silver"}),
    ],
)
def test_equals_at_the_edge_of_a_prize_get_what_the_policy_says(
    tmp_path: Path, engines: Engines, policy: str, due: dict[str, str]
):
    boards = f'[cup]\nperiods = ["day"]\nprize_ties = "{policy}"\n'
    boards += '[[cup.prizes]]\nprize = "gold"\nranks = [1, 1]\n[[cup.prizes]]\nprize = "silver"\nranks = [2, 3]\n'
    world = seasonal_world(tmp_path / "home", engines["sail"], boards)
    points = {"ana": 50, "ben": 50, "cai": 30, "dee": 30, "eli": 10}
    ingest(world, "s.jsonl", [score(p, p, n, f"{D1}T10:0{i}") for i, (p, n) in enumerate(points.items())], through=D1)
    world.night(D1)
    try:
        close(world.context, "cup", str(D1))
        found: dict[str, list[str]] = {}
        for row in sorted(world.store.read(tables.SEASON_PRIZES).to_pylist(), key=lambda row: row["prize"]):
            part = "" if row["among"] == 1 else f" {row['slots']}/{row['among']}"
            found.setdefault(row["player_id"], []).append(row["prize"] + part)
        assert {player: ", ".join(won) for player, won in found.items()} == due
    finally:
        stopped(world)


def test_a_close_waits_for_the_end_and_the_grace(world: World):
    end = datetime(2026, 3, 4, tzinfo=UTC)
    with pytest.raises(InputIncompleteError, match=r"2026-03-04 00:00 UTC and can be closed 2:00:00 later"):
        close(at(world, end + timedelta(hours=2, seconds=-1)), "goals", "march")
    assert close(at(world, end + timedelta(hours=2)), "goals", "march").version == 1


def test_what_has_no_end_or_is_unknown_is_refused(world: World):
    with pytest.raises(UsageError, match="all_time has no end"):
        close(world.context, "goals", "all_time")
    with pytest.raises(UsageError, match="no board 'gaols'"):
        close(world.context, "gaols", "march")
    with pytest.raises(UsageError, match="does not rank 2026-W10"):
        close(world.context, "peak", "2026-W10")


def test_days_that_are_open_stale_or_not_corrected_are_refused_with_the_command_that_mends_it(world: World):
    with pytest.raises(InputIncompleteError, match="2026-03-08 is not complete"):
        close(world.context, "goals", "2026-W10")
    ingest(world, "late.jsonl", [score("late", "eli", 9, f"{D2}T12:00")])
    with pytest.raises(InputIncompleteError, match=f"daybreak nightly --from {D2} --to {D2}"):
        close(world.context, "goals", "march")
    world.night(D2)
    assert close(world.context, "goals", "march").version == 1
    ingest(world, "more.jsonl", [score("more", "eli", 9, "2026-03-05T12:00")], through=D3 + timedelta(days=5))
    with pytest.raises(InputIncompleteError, match="2026-03-05 to 2026-03-05 must be corrected first"):
        close(world.context, "goals", "2026-W10")


def test_days_that_were_derived_by_other_rules_are_refused(world: World):
    changed = BOARDS.format(goals="", peak="", form="") + '[fresh]\nseasons = ["march"]\n'
    other = seasonal_world(
        world.home, world.engine, changed.replace('match_type = ["ranked"]', 'match_type = ["casual"]')
    )
    for board in ("fresh", "peak"):
        with pytest.raises(InputIncompleteError, match=f"daybreak nightly --from {D1} --to {D3}"):
            close(other.context, board, "march")
    assert close(other.context, "goals", "march").version == 1
    other.night(D1, D3)
    for board in ("fresh", "peak"):
        assert final(other, close(other.context, board, "march")) == oracle(other, board)


@pytest.mark.parametrize("seed", range(4))
def test_any_season_is_closed_as_by_the_oracle_and_amended_without_changes_to_the_same_digest(
    tmp_path: Path, engines: Engines, seed: int
):
    world = seasonal_world(tmp_path / "home", engines["sail"], ANY_BOARDS)
    events = any_scores(Random(seed))
    for number in range(3):
        ingest(world, f"part-{number}.jsonl", events[number::3], through=D3 if number == 2 else None)
    world.night(D1, D2)
    world.night(D3)
    try:
        for board in world.boards:
            closed = close(world.context, board.name, "march")
            assert final(world, closed) == oracle(world, board.name), board.name
            assert amend(world.context, closed, "again", "nothing changed") == closed, board.name
    finally:
        stopped(world)


def test_a_board_of_items_is_closed_and_amended_like_any_other(tmp_path: Path, engines: Engines):
    boards = '[plays]\nsource = "item_events"\nfilter = { category = ["song"] }\nseasons = ["march"]\n'
    world = seasonal_world(tmp_path / "home", engines["sail"], boards)
    items = [item_event(f"e{n}", f"song-{n % 3}", f"{D2}T10:0{n}", weight=n, category="song") for n in range(1, 8)]
    world.ingest("items.jsonl", [*items, item_event("e9", "talk", f"{D2}T10:00", category="talk")], through=D3)
    world.night(D1, D3)
    try:
        closed = close(world.context, "plays", "march")
        assert [(row.player_id, row.points) for row in final(world, closed)] == [
            ("song-1", 12),
            ("song-0", 9),
            ("song-2", 7),
        ]
        world.ingest("late.jsonl", [item_event("late", "song-2", f"{D2}T11:00", weight=9, category="song")])
        assert [(row["player_id"], row["points"]) for row in exceptions(world.context)] == [("song-2", 9)]
        made = accept(world.context, "plays", "march", "late", "the log was late")
        best = final(world, made)[0]
        assert (best.player_id, best.points) == ("song-2", 16)
    finally:
        stopped(world)


def any_scores(random: Random) -> list[dict[str, object]]:
    """Scores of few players and few values, so that they tie; copies on one day and across midnight."""
    found = []
    for number in range(150):
        day, minute = random.choice((D1, D2, D3)), random.choice((0, 5, 700, 1390, 1439))
        at = f"{day}T{minute // 60:02}:{minute % 60:02}"
        event_id = f"e{random.randrange(130)}"
        points = random.choice((0, 0, 1, -2, 3, "0.5", "12.25"))
        player = random.choice(("ana", "Ana", "ben", "cai", "dee", "élan", "zoë"))
        made = score(event_id, player, points, at, random.choice(("ranked", "casual")))
        found.append(made | {"season": random.choice(("spring", "summer")), "match_id": f"m{number}"})
    return found


def test_a_night_that_corrects_a_day_leaves_the_closed_period_alone(world: World):
    closed = close(world.context, "goals", "march")
    ingest(world, "late.jsonl", [score("late", "gus", 90, f"{D2}T12:00")])
    world.night(D2)
    assert close(world.context, "goals", "march") == closed
    assert served(world, "goals", "march")[0] == (1, "cai")
    assert served(world, "goals", "all_time")[0] == (1, "gus"), "an open period counts what came late at once"


@pytest.mark.parametrize("point", POINTS)
def test_a_close_killed_anywhere_is_completed_by_the_next_with_late_events_arriving(
    world: World, undisturbed: str, point: str
):
    words = ("board", "close", "goals", "march", "--format", "json")
    world.command(*words, code=-9, DAYBREAK_CRASH_AT=point)
    if point.startswith("close."):
        ingest(world, "late.jsonl", [score("late", "gus", 90, f"{D2}T12:00")])
    out, _ = world.command(*words)
    assert json.loads(out)["content_hash"] == undisturbed
    assert_one_version(world, undisturbed)
    if point.startswith("close."):
        assert "late.jsonl" not in "".join(closes.versions(world.store)[0].counted)


def test_a_close_that_died_with_its_ranks_is_amended_by_what_came_before_the_next(world: World):
    """The ban knew of no closed period, and the ranks that were there already knew of no ban."""
    words = ("board", "close", "goals", "march", "--format", "json")
    world.command(*words, code=-9, DAYBREAK_CRASH_AT="close.ranks")
    bans.ban(world.context, "cai", datetime(2026, 1, 1, tzinfo=UTC), "cheating")
    out, _ = world.command(*words)
    assert json.loads(out)["version"] == 2
    first, second = closes.versions(world.store)
    assert final(world, first) == oracle(world, "goals")
    assert final(world, second) == oracle(world, "goals", banned={"cai": datetime(2026, 1, 1, tzinfo=UTC)})
    assert served(world, "goals", "march")[0] != (1, "cai")
    assert json.loads(world.command(*words)[0])["version"] == 2


def test_a_dry_run_shows_what_the_close_then_makes_and_writes_nothing(world: World):
    def versions() -> dict[str, int]:
        return {name: world.store.version(table) for name, table in tables.TABLES.items()}

    before, staged = versions(), set(world.settings.staging_root.iterdir())
    assert due(world.context) == [(name, "march") for name in ("goals", "peak", "form")]
    out, err = world.command("board", "close", "goals", "march", "--dry-run", "--format", "json")
    shown = [json.loads(line) for line in out.splitlines()]
    assert [(row["rank"], row["player_id"]) for row in shown] == [(r.rank, r.player_id) for r in oracle(world, "goals")]
    assert shown[0]["prizes"] == "cup"
    banned = world.command("board", "ban", "cai", "--since", "2026-01-01", "--reason", "x", "--dry-run")[1]
    assert "would change" in banned
    assert (versions(), set(world.settings.staging_root.iterdir())) == (before, staged)
    assert served(world, "goals", "march")[0] == (1, "cai")
    assert close(world.context, "goals", "march").content_hash in err
    assert "is closed already" in world.command("board", "close", "goals", "march", "--dry-run")[1]
    assert due(world.context) == [("peak", "march"), ("form", "march")]
    world.command("board", "close", "--due")
    assert due(world.context) == []
    assert "--due goes alone" in world.command("board", "close", "goals", "--due", code=2)[1]


def test_two_closes_at_once_make_one_version(world: World, undisturbed: str):
    found: list[Closed | DaybreakError] = []

    def once() -> None:
        try:
            found.append(close(world.context, "goals", "march"))
        except DaybreakError as error:
            found.append(error)

    threads = [threading.Thread(target=once) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any(isinstance(each, Closed) for each in found)
    assert all(isinstance(each, Closed | FenceRefusedError) for each in found), found
    close(world.context, "goals", "march")
    assert_one_version(world, undisturbed)


def test_a_close_that_lost_its_lease_does_not_make_a_second_version(
    world: World, undisturbed: str, monkeypatch: pytest.MonkeyPatch
):
    staging = board_versions.append_ranks

    def overtaken(*given: object) -> None:
        monkeypatch.setattr(board_versions, "append_ranks", staging)
        world.lists.client.flushall()  # the lease is gone, and another close gets through
        close(world.context, "goals", "march")
        staging(*given)

    monkeypatch.setattr(board_versions, "append_ranks", overtaken)
    with pytest.raises(FenceRefusedError, match="season_ranks/goals/march is at version 1"):
        close(world.context, "goals", "march")
    assert_one_version(world, undisturbed)


def test_a_redis_that_was_lost_gets_the_closed_board_back(world: World):
    closed = close(world.context, "goals", "march")
    before = served(world, "goals", "march")
    world.lists.client.flushall()
    assert close(world.context, "goals", "march") == closed
    assert served(world, "goals", "march") == before


def test_a_closed_period_keeps_the_rules_that_it_was_published_by(world: World):
    closed = close(world.context, "goals", "march")
    changed = BOARDS.format(goals="", peak="", form="").replace("[goals]", '[goals]\nrank_style = "ordinal"')
    other = seasonal_world(world.home, world.engine, changed)
    assert amend(other.context, closed, "again", "nothing changed") == closed
    other.lists.client.flushall()
    found = lookup(other.store, other.context.board_lists, other.boards, "goals", "march").top(100)
    assert found.meta.rank_style == "competition"
    assert [(context.rank, context.player_id) for context in found.places] == [
        (row.rank, row.player_id) for row in final(world, closed)
    ]


def test_an_empty_period_can_be_closed(tmp_path: Path, engines: Engines):
    world = seasonal_world(tmp_path / "home", engines["sail"])
    ingest(world, "s.jsonl", [score("e1", "ana", 50, f"{D1}T10:00")], through=D2)
    world.night(D1, D2)
    try:
        closed = close(world.context, "goals", str(D2))
        assert (closed.population, final(world, closed)) == (0, [])
        assert close(world.context, "goals", str(D2)) == closed
    finally:
        stopped(world)


def test_the_history_of_a_player_is_each_night_and_each_version(world: World):
    close(world.context, "goals", "march")
    rows = history(world.context, "goals", "cai", "march")
    assert [(row["state"], row["version"], row["rank"]) for row in rows] == [("exact", 0, 1), ("closed", 1, 1)]
    assert history(world.context, "goals", "nobody") == []
    assert {row["period"] for row in history(world.context, "goals", "cai")} >= {
        str(D1),
        str(D2),
        "2026-W09",
        "all_time",
    }
    with pytest.raises(UsageError, match="no board 'gaols'"):
        history(world.context, "gaols", "cai")


def assert_one_version(world: World, content_hash: str) -> None:
    """Version 1 of goals in march is there once, in the lake and in Redis, with this digest."""
    (made,) = [each for each in closes.versions(world.store) if each.board == "goals"]
    assert (made.version, made.content_hash) == (1, content_hash)
    assert table_rows(world, "goals")["season_ranks"] == made.population == 9
    due = oracle(world, "goals", without={"late"})
    assert final(world, made) == due
    assert world.context.board_lists.meta("goals", "march").version == 1
    assert served(world, "goals", "march") == [(row.rank, row.player_id) for row in due]
    generations = [row for row in world.store.read(tables.PUBLICATIONS).to_pylist() if row["period"] == "march"]
    assert max(row["generation"] for row in generations if row["board"] == "goals") == 1


def test_the_scores_of_these_tests_hold_what_they_say():
    assert len({row["event_id"] for row in some_scores()}) == len(some_scores()) - 1
