"""A night by `nightly` and a night step by step, as a scheduler runs it, leave equal lakes and an equal Redis."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daybreak.errors import InputIncompleteError
from jobs.night import run_step
from jobs.run import optimize
from jobs.steps import STEPS
from lakehouse.tables import registry as tables
from tests.engines import Engines
from tests.integration.nights import D1, D2, D3, World, some_days
from tests.integration.seasons import ingest, seasonal_world, some_scores, stopped

pytestmark = pytest.mark.slow
CLOCKED = {"run_id", "committed_at", "started_at", "published_at", "recorded_at", "as_of", "profile"}
"""Columns that the clock or a run's name is in; the rest must be equal."""
WHATS = {"items only": (True, False), "scores only": (False, True), "both": (True, True)}


def filled(home: Path, engines: Engines, has_items: bool, has_scores: bool) -> World:
    """A world whose days came in several files, so that there is something to compact."""
    world = seasonal_world(home, engines["sail"])
    for n in range(6):
        if has_items:
            world.ingest(f"items-{n}.jsonl", some_days()[n::6], through=D3)
        if has_scores:
            ingest(world, f"scores-{n}.jsonl", some_scores()[n::6], through=D3)
    return world


def by_nightly(world: World) -> None:
    world.night(D1)


def by_steps(world: World) -> None:
    """As the DAG does: each step with the run's id alone, once it was pinned with its day."""
    for step in STEPS:
        run_step(world.context, step.name, "scheduled", (D1, D1) if step.needs is None else None, False)


def rows_of(world: World) -> dict[str, list[str]]:
    """All rows of the lake, without what the clock or a run's name is in."""
    found = {}
    for name, table in tables.TABLES.items():
        kept = [column for column in table.schema.names if column not in CLOCKED]
        rows = world.store.read(table).select(kept).to_pylist()
        for row in rows:
            row.pop("checks", None)
            if "content_hash" in row and name == "board_closes":
                row.pop("content_hash")
        found[name] = sorted(json.dumps(row, default=str) for row in rows)
    return found


def files_of(world: World) -> dict[str, int]:
    """How many files the derived tables and the events have per table: what compaction shows in."""
    found = {}
    for table in (tables.ITEM_EVENTS, tables.SCORE_EVENTS, *tables.DERIVED, *tables.BOARD_TABLES):
        version = world.store.version(table)
        found[table.name] = len(world.store.files(table, version, D1, D1)) if version >= 0 else 0
    return found


def redis_of(world: World) -> dict[str, Any]:
    """Everything that Redis serves, without what the clock or a run's name is in."""
    client, found = world.lists.client, {}
    for key in sorted(client.scan_iter("daybreak:*")):
        kind = client.type(key)
        if kind == b"zset":
            found[key] = client.zrange(key, 0, -1, withscores=True)
        elif kind == b"hash":
            fields = client.hgetall(key)
            found[key] = {name: value for name, value in fields.items() if name not in (b"run_id", b"as_of")}
        elif b"lease" not in key:
            found[key] = client.smembers(key) if kind == b"set" else client.get(key)
    return found


@pytest.mark.parametrize("what", WHATS)
def test_both_ways_leave_equal_lakes_and_an_equal_redis(
    tmp_path: Path, engines: Engines, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimize, "FILES_PER_DAY", 1)  # so that a few files are worth compacting
    ways: dict[str, Callable[[World], None]] = {"nightly": by_nightly, "steps": by_steps}
    left = []
    stopped(filled(tmp_path / "filled", engines, *WHATS[what]))
    for name, way in ways.items():
        shutil.copytree(tmp_path / "filled", tmp_path / name)
        world = seasonal_world(tmp_path / name, engines["sail"])
        try:
            way(world)
            left.append((rows_of(world), files_of(world), redis_of(world)))
        finally:
            stopped(world)
    (rows, files, redis), (other_rows, other_files, other_redis) = left
    assert rows == other_rows
    assert files == other_files
    assert redis == other_redis
    has_items, has_scores = WHATS[what]
    assert (bool(rows["daily_counts"]), bool(rows["board_snapshots"])) == (has_items, has_scores)
    events = "item_events" if has_items else "score_events"
    assert files[events] == 1, "six files were compacted into one"
    if has_scores:
        assert files["score_events"] == 1, "a scheduled night compacts what boards read, too"


def test_a_lake_without_events_is_told_what_is_missing_either_way(tmp_path: Path, engines: Engines) -> None:
    world = seasonal_world(tmp_path / "home", engines["sail"])
    try:
        with pytest.raises(InputIncompleteError, match=f"{D1} is not complete: no source has said so"):
            world.night(D1)
        for step in STEPS[:2]:
            with pytest.raises(InputIncompleteError, match=f"{D1} is not complete: no source has said so"):
                run_step(world.context, step.name, "scheduled", (D1, D1), False)
        with pytest.raises(InputIncompleteError, match="no item_events at"):
            world.night(D1, allow_incomplete=True)
        assert not any(world.store.exists(table) for table in tables.TABLES.values())
        assert redis_of(world) == {}
    finally:
        stopped(world)


def test_boards_without_events_do_not_fail_the_night_of_the_items(tmp_path: Path, engines: Engines) -> None:
    world = filled(tmp_path / "home", engines, has_items=True, has_scores=False)
    try:
        assert len(world.boards.boards) == 3
        done = world.night(D1)
        assert (done.boards, done.rows > 0) == (0, True)
    finally:
        stopped(world)


def test_the_days_of_a_lake_that_has_boards_alone_are_shown(tmp_path: Path, engines: Engines) -> None:
    from daybreak.queries.days import status

    world = filled(tmp_path / "home", engines, has_items=False, has_scores=True)
    try:
        by_nightly(world)
        shown = status(world.context.lake, world.lists, None, None)
        assert [(day.day, day.state) for day in shown] == [(D1, "exact"), (D2, "none"), (D3, "none")]
        assert all(day.is_complete and day.rows for day in shown)
        ingest(world, "late.jsonl", [some_scores()[0] | {"event_id": "late"}])
        assert [day.state for day in status(world.context.lake, world.lists, D1, D2)] == ["stale", "none"]
    finally:
        stopped(world)
