"""Whole nights with boards on a real lake and a real Redis, against the oracle in plain Python."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from daybreak import clock
from daybreak.errors import InputIncompleteError
from daybreak.events import Kind
from daybreak.queries.boards import lookup
from daybreak.serving.embedded import EmbeddedServer
from jobs.closing import bans, close
from jobs.ingest import declare_complete, ingest_file
from jobs.night import run_step
from lakehouse.engines.engine import Engine
from lakehouse.reading import analyst
from lakehouse.runs import newest_manifest
from lakehouse.tables import registry as tables
from tests.engines import MAKERS, NAMES, Engines
from tests.integration.nights import D1, D2, D3, World, some_days
from tests.oracles import boards as oracles_boards

pytestmark = pytest.mark.slow

CONF = """
[points]
seasons = ["spring", "cup"]

[fastest]
semantics = "best"
order = "ascending"
rank_style = "dense"
periods = ["day", "all_time"]
depth = 5

[newest]
semantics = "latest"
periods = ["week", "all_time"]
tie_breaks = ["more_events"]

[items]
source = "item_events"
periods = ["day"]
"""
SEASONS = """
[spring]
from = 2026-03-01
to = 2026-05-31
[cup]
label = "Cup"
"""
Score = dict[str, object]


def score(event_id: str, player: str, points: object, at: datetime, **more: object) -> Score:
    fields = {"event_id": event_id, "match_id": "m", "player_id": player, "points": str(points)}
    return fields | {"occurred_at": at.isoformat()} | more


def some_scores() -> list[Score]:
    """Three days with ties, copies, a copy over midnight, zeros, negatives and decimals."""
    scores = []
    for n, day in enumerate((D1, D2, D3)):
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        for k in range(60):
            points = Decimal((k * 7 + n) % 11 - 3) + (Decimal("0.5") if k % 13 == 0 else 0)
            more = {"season": "Cup"} if k % 3 == 0 else {}
            scores.append(score(f"{day}-{k}", f"player-{k % 17}", points, start + timedelta(minutes=20 * k), **more))
    midnight = datetime(D2.year, D2.month, D2.day, tzinfo=UTC)
    scores += [score("copy", "Zoë", 4, midnight - timedelta(minutes=10)), score("copy", "Zoë", 4, midnight)]
    scores.append(score(f"{D2}-5", "player-5", 99, midnight + timedelta(hours=20)))
    return scores


class BoardWorld(World):
    """A world with the boards above."""

    def scores(self, name: str, scores: list[Score], through: date | None = None) -> None:
        path = self.file(name, scores)
        options = {"kind": Kind.SCORES, "mapping": {}, "default_timezone": None}
        ingest_file(self.store, self.settings, clock.now, path, **options)
        if through:
            declare_complete(self.store, clock.now, Kind.SCORES, through)

    def expected(self, board: str, period: str, as_of: date) -> list[oracles_boards.Row]:
        """The oracle's board, from the events as they were accepted."""
        conf = self.boards.board(board)
        events = self.store.read(tables.TABLES[conf.source]).to_pylist()
        return oracles_boards.board(events, conf, self.boards.period(conf, period), as_of=as_of)[: conf.depth]

    def check_board(self, board: str, period: str, as_of: date) -> None:
        """Redis and the lake have what the oracle has."""
        due = self.expected(board, period, as_of)
        wanted = [(r.position, r.rank, r.player_id, r.points, r.reached_at, r.event_count) for r in due]
        served = self.context.board_lists.top(board, period, 1000)
        assert served is not None, (board, period)
        places = [(p.position, p.rank, p.player_id, p.points, p.reached_at, p.event_count) for p in served.places]
        assert places == wanted, (board, period)
        rows = self.store.read(tables.BOARD_SNAPSHOTS, days=[as_of]).to_pylist()
        kept = sorted(
            (r["position"], r["rank"], r["player_id"], r["points"], r["reached_at"], r["event_count"])
            for r in rows
            if (r["board"], r["period"]) == (board, period)
        )
        assert kept == wanted, (board, period)
        if due:
            assert served.meta.population == due[0].population


def board_world(home: Path, engine: Engine) -> BoardWorld:
    """A world with the boards above, empty."""
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "boards.toml").write_text(CONF)
    (home / "conf" / "seasons.toml").write_text(SEASONS)
    return BoardWorld(home, engine, boards_folder=home / "conf")


@pytest.fixture(params=NAMES)
def world(request: pytest.FixtureRequest, tmp_path: Path, engines: Engines) -> Iterator[BoardWorld]:
    """A world with boards, on each engine."""
    made = board_world(tmp_path / "home", engines[request.param])
    yield made
    assert made.makers() <= {MAKERS[request.param]}
    EmbeddedServer(made.home).stop()


def test_boards_after_each_night_are_the_oracle(world: BoardWorld):
    world.ingest("events.jsonl", some_days(), through=D3)
    world.scores("scores.jsonl", some_scores(), through=D3)
    for day in (D1, D2, D3):
        done = world.night(day)
        assert done.boards > 0
    for board, period in (("points", "all_time"), ("points", "2026-W10"), ("points", "2026"), ("points", "spring")):
        world.check_board(board, period, D3)
    for board, period in (("points", "cup"), ("fastest", "all_time"), ("newest", "2026-W10"), ("newest", "all_time")):
        world.check_board(board, period, D3)
    for day in (D1, D2, D3):
        for board in ("points", "fastest", "items"):
            world.check_board(board, str(day), day)
    world.check_board("points", "2026-W09", D1)


def test_a_range_and_a_late_score_give_the_same_boards_and_need_no_items(world: BoardWorld):
    scores = some_scores()
    world.scores("scores.jsonl", scores[1:], through=D3)
    done = world.night(D1, D3)
    assert done.rows == 0
    assert done.boards > 0
    world.check_board("points", str(D3), D3)
    late = [scores[0]]
    world.scores("late.jsonl", late)
    world.night(D1)
    for board, period in (
        ("points", "all_time"),
        ("points", "spring"),
        ("fastest", "all_time"),
        ("newest", "all_time"),
    ):
        world.check_board(board, period, D3)
    world.check_board("points", str(D1), D1)
    world.check_board("points", "2026-W09", D1)
    before = {board: world.context.board_lists.meta(board, "all_time") for board in ("points", "fastest")}
    world.night(D1, D3)
    for board, meta in before.items():
        again = world.context.board_lists.meta(board, "all_time")
        assert (again.content_hash, again.generation) == (meta.content_hash, meta.generation)


def test_scores_that_are_not_complete_leave_the_lists_of_items_published(world: BoardWorld):
    world.ingest("events.jsonl", some_days(), through=D3)
    world.scores("scores.jsonl", some_scores(), through=D1)
    with pytest.raises(InputIncompleteError, match=str(D2)):
        world.night(D2)
    assert world.lists.day_state(D2).state == "exact"
    assert world.context.board_lists.top("points", str(D2), 10) is None
    world.night(D1)
    world.check_board("points", str(D1), D1)


def test_an_empty_day_has_an_empty_board(world: BoardWorld):
    world.scores("scores.jsonl", some_scores(), through=date(2026, 3, 4))
    world.night(D1, date(2026, 3, 4))
    served = world.context.board_lists.top("points", "2026-03-04", 10)
    assert served is not None
    assert served.places == ()


@pytest.mark.parametrize("world", ["sail"], indirect=True)
def test_an_incomplete_day_holds_back_the_periods_that_hold_it_and_no_others(world: BoardWorld):
    world.scores("scores.jsonl", some_scores(), through=D2)
    world.night(D1, D3, allow_incomplete=True)
    for day in (D1, D2):
        world.check_board("points", str(day), day)
    world.check_board("points", "2026-W09", D1)
    lists = world.context.board_lists
    for period in (str(D3), "2026-W10", "all_time"):
        assert lists.top("points", period, 10) is None
    world.night(D1)
    assert lists.top("points", str(D3), 10) is None, "another day's night does not publish it"


@pytest.mark.parametrize("world", ["sail"], indirect=True)
def test_what_boards_toml_ranks_no_more_is_taken_out_of_redis_and_what_is_closed_stays(world: BoardWorld):
    world.scores("scores.jsonl", some_scores(), through=D3)
    world.night(D1, D3)
    close.close(world.context, "points", str(D1))
    fewer = world.home / "fewer"
    fewer.mkdir()
    (fewer / "boards.toml").write_text('[newest]\nsemantics = "latest"\nperiods = ["all_time"]\n')
    other = world.beside(boards_folder=fewer)
    other.night(D3)
    lists = other.context.board_lists
    assert lists.periods("newest") == ["all_time"]
    assert lists.periods("points") == [str(D1)]
    assert lists.periods("fastest") == []


@pytest.mark.parametrize("world", ["sail"], indirect=True)
def test_a_period_that_a_ban_has_emptied_is_empty_in_the_lake_too(world: BoardWorld):
    alone = [each for each in some_scores() if each["player_id"] == "player-1"]
    world.scores("scores.jsonl", alone, through=D3)
    for day in (D1, D2, D3):
        world.night(day)
    assert lookup(world.store, world.context.board_lists, world.boards, "points", "all_time").top(5).places
    bans.ban(world.context, "player-1", datetime(2026, 1, 1, tzinfo=UTC), "cheating")
    world.lists.client.flushall()
    found = lookup(world.store, world.context.board_lists, world.boards, "points", "all_time").top(5)
    assert (found.places, found.meta.population, found.meta.as_of) == ((), 0, D3)


WEEKLY = """
[weekly]
periods = ["week"]
grace = "0s"
"""


@pytest.fixture
def weekly(tmp_path: Path, engines: Engines) -> Iterator[BoardWorld]:
    """A world with one board of weeks, whose scores of a week are in."""
    home = tmp_path / "home"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "boards.toml").write_text(WEEKLY)
    made = BoardWorld(home, engines["sail"], boards_folder=home / "conf")
    made.scores("scores.jsonl", some_scores(), through=date(2026, 3, 8))
    yield made
    EmbeddedServer(home).stop()


def test_a_run_that_ranks_nothing_keeps_the_snapshots_of_its_days(weekly: BoardWorld):
    weekly.night(D2)
    weekly.night(D3, date(2026, 3, 8))
    close.close(weekly.context, "weekly", "2026-W10")
    kept = weekly.store.read(tables.BOARD_SNAPSHOTS, days=[D2]).num_rows
    late = score("late", "player-1", 3, datetime(2026, 3, 2, 12, tzinfo=UTC))
    weekly.scores("late.jsonl", [late])
    assert weekly.night(D2).boards == 0
    assert weekly.store.read(tables.BOARD_SNAPSHOTS, days=[D2]).num_rows == kept > 0


def test_a_repeated_step_of_boards_is_in_a_manifest_of_its_own(weekly: BoardWorld):
    run_step(weekly.context, "boards", "again", (D2, D2), False)
    weekly.scores("late.jsonl", [score("late", "player-1", 3, datetime(2026, 3, 2, 12, tzinfo=UTC))])
    run_step(weekly.context, "boards", "again", (D2, D2), False)
    assert newest_manifest(weekly.store)["player_days"] == weekly.store.version(tables.PLAYER_DAYS)
    assert weekly.store.read(tables.RUNS).num_rows == 2


def test_boards_of_items_alone_leave_the_scores_readable(weekly: BoardWorld):
    items = weekly.home / "items"
    items.mkdir()
    (items / "boards.toml").write_text('[items]\nsource = "item_events"\nperiods = ["day"]\n')
    other = weekly.beside(boards_folder=items)
    other.ingest("events.jsonl", some_days(), through=D3)
    other.night(D2)
    found = analyst.connect(other.store).execute("select count(*) from score_events").fetchone()
    assert found == (len(some_scores()),)


def test_the_staging_of_boards_goes_with_its_time_on_a_lake_of_scores(weekly: BoardWorld):
    hasty = weekly.beside(boards_folder=weekly.home / "conf", lake={"staging_keep": "0s"})
    for day in (D2, D3):
        hasty.night(day)
    assert len(list(hasty.settings.staging_root.iterdir())) == 1
