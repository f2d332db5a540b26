"""Bad input and broken surroundings: one line that names the thing, the right exit code, nothing half written."""

import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from lakehouse.tables import registry as tables
from tests.integration.nights import D2, D3, World, some_days

pytestmark = pytest.mark.slow


def one_line(err: str) -> str:
    lines = [line for line in err.strip().splitlines() if line.startswith("daybreak: ")]
    assert len(lines) == 1, err
    assert "Traceback" not in err
    return lines[0]


def half_a_parquet_file(world: World) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = world.home / "whole.parquet"
    pq.write_table(pa.table({"event_id": ["a"] * 1000, "item_id": ["b"] * 1000}), whole)
    half = world.home / "half.parquet"
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    return half


@pytest.mark.parametrize("command", [["ingest"], ["stream", "--until-idle"]])
@pytest.mark.parametrize("what", ["random.jsonl", "random.csv", "random.parquet", "empty.jsonl", "half", "none.jsonl"])
def test_a_file_that_is_not_what_it_says_is_refused_whole(world: World, what: str, command: list[str]):
    path = half_a_parquet_file(world) if what == "half" else world.home / what
    if what.startswith("random"):
        path.write_bytes(b"\x00\xff\xfe" + bytes(range(256)) * 40)
    if what.startswith("empty"):
        path.write_bytes(b"")
    _, err = world.command(*command, str(path), code=7)
    assert path.name in one_line(err)
    assert world.store.version(tables.ITEM_EVENTS) <= 0
    assert not world.store.exists(tables.ITEM_EVENTS) or world.store.read(tables.ITEM_EVENTS).num_rows == 0


def test_a_lake_that_cannot_be_written_is_named(world: World):
    path = world.file("events.jsonl", some_days())
    blocked = world.home / "blocked"
    blocked.write_text("a file where the lake should be")
    _, err = world.command("ingest", str(path), code=8, DAYBREAK_LAKE__ROOT=str(blocked))
    assert "blocked" in one_line(err)


def test_redis_that_does_not_answer_stops_a_night_before_it_begins(world: World):
    world.ingest("events.jsonl", some_days(), through=D3)
    _, err = world.command("nightly", "--day", str(D2), code=6, DAYBREAK_REDIS__URL="redis://127.0.0.1:1/0")
    assert "redis://127.0.0.1:1/0" in one_line(err)
    assert world.store.version(tables.DAILY_COUNTS) == -1
    assert not world.settings.staging_root.exists() or not any(world.settings.staging_root.iterdir())


def test_sail_killed_while_it_works_is_an_error_that_says_so(world: World):
    world.ingest("events.jsonl", some_days(), through=D3)
    process = world.start("nightly", "--day", str(D2))
    killed = threading.Event()

    def kill() -> None:
        while not killed.is_set() and process.poll() is None:
            for child in psutil.Process(process.pid).children(recursive=True):
                if "spark" in child.cmdline() and any(world.settings.staging_root.glob("*/hourly_counts")):
                    os.kill(child.pid, signal.SIGKILL)
                    killed.set()
                    return
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    _, err = process.communicate(timeout=60)
    thread.join()
    assert killed.is_set()
    assert process.returncode == 8, err
    assert "Sail" in one_line(err)
    assert world.store.version(tables.DAILY_COUNTS) == -1
    world.command("nightly", "--day", str(D2))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nightly", "--day", "2026-13-01"], "2026-13-01"),
        (["nightly", "--from", "2026-03-02"], "--to"),
        (["nightly", "--from", "2026-03-02", "--to", "2026-03-01"], "after"),
        (["top", "--at", "noon"], "noon"),
        (["stream", "x.jsonl"], "--until-idle"),
        (["ingest", "x.jsonl", "--map", "ts"], "ts"),
        (["run", "dance", "--run-id", "x"], "dance"),
        (["run", "check", "--run-id", "unknown"], "unknown"),
        (["report", "--day", "2026-03-02"], "2026-03-02"),
        (["top", "--window", "day", "--at", "2026-03-02"], "2026-03-02"),
        (["estimate", "--window", "hour", "--at", "2026-03-02T10:00", "x"], "2026-03-02"),
    ],
)
def test_a_command_that_makes_no_sense_says_what_to_do(world: World, words: list[str], said: str):
    _, err = world.command(*words, code=2)
    assert said in one_line(err)


def test_an_unknown_setting_is_named_with_where_it_stands(world: World):
    _, err = world.command("status", code=2, DAYBREAK_NIGHT__LOOKBACK="5m")
    assert "night.lookback" in one_line(err)
