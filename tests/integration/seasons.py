"""A world of scores with boards and a season that is over: what the tests of closes, bans and exceptions share."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from daybreak import clock
from daybreak.events import Kind
from daybreak.serving.embedded import EmbeddedServer
from jobs.closing import versions
from jobs.ingest import declare_complete, ingest_file
from lakehouse.closes import Version
from lakehouse.engines.engine import Engine
from lakehouse.tables import registry as tables
from tests.integration.nights import D1, D2, D3, World
from tests.oracles import boards as oracles_boards
from tests.oracles.boards import Row

SEASONS = """
[march]
from = 2026-03-01
to = 2026-03-03
"""
PRIZES = """
[[{board}.prizes]]
prize = "cup"
ranks = [1, 1]
[[{board}.prizes]]
prize = "coins"
ranks = [2, 3]
[[{board}.prizes]]
prize = "badge"
percentile = [25, 100]
"""
BOARDS = """
[goals]
periods = ["day", "week", "all_time"]
seasons = ["march"]
prize_ties = "share"
{goals}
[peak]
semantics = "best"
periods = ["all_time"]
seasons = ["march"]
filter = {{ match_type = ["ranked"] }}
rank_style = "dense"
{peak}
[form]
semantics = "latest"
order = "ascending"
periods = ["day"]
seasons = ["march"]
prize_ties = "tie_break"
tie_breaks = ["fewer_events", "reached_at"]
depth = 3
{form}
"""
Event = dict[str, object]


def score(event_id: str, player: str, points: int | str, at: str, match_type: str = "ranked") -> Event:
    """One score; `at` is `2026-03-02T10:00`, UTC."""
    return {
        "event_id": event_id,
        "match_id": "m1",
        "match_type": match_type,
        "player_id": player,
        "points": points,
        "occurred_at": f"{at}:00Z",
    }


def some_scores() -> list[Event]:
    """Three days of eight players: ties, copies, a copy across midnight, a zero, casual matches, no negative luck."""
    found = []
    for day in (D1, D2, D3):
        for n, player in enumerate(("ana", "ben", "cai", "dee", "eli", "fay", "gus", "Ana")):
            points = (n * n * 7 + day.day * 3) % 11
            kind = "casual" if (n + day.day) % 4 == 0 else "ranked"
            found.append(score(f"{day}-{player}", player, points, f"{day}T1{n}:0{day.day}", kind))
    found += [score("tie-1", "eli", 4, f"{D1}T20:00"), score("tie-2", "gus", 4, f"{D1}T20:00")]
    found += [score("twice", "ben", 3, f"{D1}T23:40"), score("twice", "ben", 3, f"{D2}T00:10")]
    return [*found, score("big", "cai", 40, f"{D2}T09:00"), score("zero", "hal", 0, f"{D3}T23:59")]


def seasonal_world(home: Path, engine: Engine, boards: str = "", **overrides: Any) -> World:
    """A world with its own boards, empty."""
    conf = home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "seasons.toml").write_text(SEASONS)
    prizes = {name: PRIZES.format(board=name) for name in ("goals", "peak", "form")}
    (conf / "boards.toml").write_text(boards or BOARDS.format(**prizes))
    return World(home, engine, boards_folder=conf, **overrides)


def ingest(world: World, name: str, events: Iterable[Mapping[str, object]], through: date | None = None) -> None:
    """Take scores in, and say how far they are complete."""
    file = world.file(name, events)
    taken = ingest_file(
        world.store, world.settings, clock.now, file, kind=Kind.SCORES, mapping={}, default_timezone=None
    )
    assert taken.refused == 0
    if through:
        declare_complete(world.store, clock.now, Kind.SCORES, through)


def played_world(home: Path, engine: Engine, boards: str = "", **overrides: Any) -> World:
    """The same with three complete and corrected days."""
    world = seasonal_world(home, engine, boards, **overrides)
    ingest(world, "scores.jsonl", some_scores(), through=D3)
    world.night(D1, D3)
    return world


def stopped(world: World) -> None:
    """End the world's Redis."""
    EmbeddedServer(world.home).stop()


def oracle(
    world: World,
    board: str,
    period: str = "march",
    banned: Mapping[str, datetime] = {},
    voided: Collection[str] = (),
    without: Collection[str] = (),
) -> list[Row]:
    """The board by the oracle, from the lake's events without some ids."""
    rules = world.boards.board(board)
    events = [row for row in world.store.read(tables.SCORE_EVENTS).to_pylist() if row["event_id"] not in without]
    return oracles_boards.board(events, rules, world.boards.period(rules, period), banned, voided)


def final(world: World, version: Version) -> list[Row]:
    """What a version holds, as the oracle says it."""
    rows = versions.final(world.store, version.key, version.day, version.version)
    return [Row(**row) for row in rows.to_pylist()]


def served(world: World, board: str, period: str) -> list[tuple[int, str]]:
    """(rank, player) of what Redis serves."""
    found = world.context.board_lists.top(board, period, 100)
    return [(place.rank, place.player_id) for place in found.places] if found else []


def everything_served(world: World) -> dict[tuple[str, str], list[tuple[int, str]]]:
    """All that Redis serves of every board."""
    lists = world.context.board_lists
    return {
        (board.name, period): served(world, board.name, period)
        for board in world.boards
        for period in lists.periods(board.name)
    }


def long_ago() -> datetime:
    """An instant before every event."""
    return datetime(2026, 1, 1, tzinfo=UTC)
