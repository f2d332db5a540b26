"""A real Sail process: staging, reading back, and its death."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from daybreak.errors import CheckFailedError, LakeFailedError
from lakehouse.engines.sail import SailEngine
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.stores.store import Transaction
from lakehouse.tables.registry import DAILY_COUNTS

pytestmark = pytest.mark.slow
DAY = date(2026, 3, 1)
AT = datetime(2026, 3, 1, 9, 30, 0, 1, tzinfo=UTC)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SailEngine]:
    with SailEngine(tmp_path, 2**30) as engine:
        yield engine


def daily(*rows: tuple[date, str, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "day": day,
                "item_id": item,
                "count": count,
                "event_count": 1,
                "first_occurred_at": AT,
                "last_occurred_at": AT,
                "is_complete": True,
            }
            for day, item, count in rows
        ],
        schema=DAILY_COUNTS.schema,
    )


def test_what_is_committed_from_staging_is_what_was_read(engine: SailEngine, tmp_path: Path) -> None:
    store = DeltaRsStore(tmp_path / "a lake é")
    rows = daily((DAY, "café", 2**53 + 1), (DAY, "Lets\nCrash", 1), (date(2026, 3, 2), "x", 3))
    version = store.append(DAILY_COUNTS, rows)
    files = store.files(DAILY_COUNTS, version, DAY, date(2026, 3, 2))
    frame = engine.read(files, DAILY_COUNTS.schema)
    staged = engine.stage(DAILY_COUNTS.conform(frame), DAILY_COUNTS, tmp_path / "staging" / "daily_counts")
    assert staged.rows == 3
    copied = DeltaRsStore(tmp_path / "copy")
    copied.replace(DAILY_COUNTS, DAY, date(2026, 3, 2), staged, Transaction({"t": 1}))
    assert copied.read(DAILY_COUNTS).sort_by("item_id") == rows.sort_by("item_id")


def test_an_empty_frame_stages_no_rows_and_is_whole(engine: SailEngine, tmp_path: Path) -> None:
    staged = engine.stage(engine.read([], DAILY_COUNTS.schema), DAILY_COUNTS, tmp_path / "s")
    assert (staged.rows, staged.files) == (0, ())
    assert staged.reader().read_all().num_rows == 0


def test_a_wrong_type_is_refused(engine: SailEngine, tmp_path: Path) -> None:
    frame = engine.spark.range(3)
    with pytest.raises(CheckFailedError, match="count"):
        engine.stage(frame, DAILY_COUNTS, tmp_path / "s")


def test_a_query_that_cannot_run_names_the_engine_log(engine: SailEngine) -> None:
    with pytest.raises(LakeFailedError, match=r"sail\.log"):
        engine.one_row(engine.spark.range(3).selectExpr("no_such_column"))


def test_death_in_mid_query_is_said_within_a_second(engine: SailEngine) -> None:
    killed = []

    def kill() -> None:
        killed.append(time.monotonic())
        os.kill(engine.pid, signal.SIGKILL)

    slow = engine.spark.range(30_000_000_000).selectExpr("sum(id % 7 * (id % 11)) as n")
    threading.Timer(1.0, kill).start()
    with pytest.raises(LakeFailedError, match=r"died during a query .*SIGKILL"):
        engine.one_row(slow)
    assert time.monotonic() - killed[0] < 2.0


def test_nothing_is_left_after_stop(tmp_path: Path) -> None:
    with SailEngine(tmp_path, 2**30) as engine:
        pid = engine.pid
    assert not Path(f"/proc/{pid}").exists()
    assert not list((tmp_path / "sail" / "tmp").glob("*/lock"))


def test_the_child_dies_with_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from lakehouse.engines.sail import SailEngine\n"
        "with SailEngine(Path(sys.argv[1]), 2**30) as engine: print(engine.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and _is_running(child):
        time.sleep(0.05)
    assert not _is_running(child)


def _is_running(pid: int) -> bool:
    """Whether the process is there and no zombie that nobody has collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
