"""A remote Spark over Connect: staging, Delta commits, a whole night, and servers that are not there.

The server is a process of its own; it has Delta's jars but not Delta's plugin for Connect.
"""

import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from daybreak.errors import CheckFailedError, LakeFailedError
from daybreak.serving.embedded import EmbeddedServer
from lakehouse.engines.connect import ConnectEngine
from lakehouse.stores.delta_spark import DeltaSparkStore
from lakehouse.stores.store import Transaction
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import DAILY_COUNTS
from tests.engines import Engines
from tests.integration.connect_server import connect_server, free_port
from tests.integration.nights import D1, D2, D3, World, some_days

pytestmark = pytest.mark.slow
NEXT = date(2026, 3, 2)
YEAR_1 = datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
END = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as server:
        yield server.url


@pytest.fixture
def engine(url: str) -> Iterator[ConnectEngine]:
    with ConnectEngine(url) as engine:
        yield engine


def daily(*rows: tuple[date, str, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "day": day,
                "item_id": item,
                "count": count,
                "event_count": 1,
                "first_occurred_at": YEAR_1,
                "last_occurred_at": END,
                "is_complete": True,
            }
            for day, item, count in rows
        ],
        schema=DAILY_COUNTS.schema,
    )


def test_what_is_committed_over_connect_is_what_was_read(engine: ConnectEngine, tmp_path: Path) -> None:
    store = DeltaSparkStore(tmp_path / "a lake é", timedelta(days=30), engine)
    rows = daily((D1, "café", 2**53 + 1), (D1, "Lets\nCrash", 1), (NEXT, "x", 3))
    version = store.append(DAILY_COUNTS, rows)
    frame = engine.read(store.files(DAILY_COUNTS, version, D1, NEXT), DAILY_COUNTS.schema)
    staged = engine.stage(DAILY_COUNTS.conform(frame), DAILY_COUNTS, tmp_path / "staging" / "daily_counts")
    copied = DeltaSparkStore(tmp_path / "copy", timedelta(days=30), engine)
    copied.replace(DAILY_COUNTS, D1, NEXT, staged, Transaction({"t": 1}))
    assert copied.read(DAILY_COUNTS).sort_by("item_id") == rows.sort_by("item_id")
    assert copied.commits_after(DAILY_COUNTS, -1)[-1].engine.startswith("Apache-Spark/")


def test_a_replace_over_connect_touches_its_days_alone(engine: ConnectEngine, tmp_path: Path) -> None:
    store = DeltaSparkStore(tmp_path / "lake", timedelta(days=30), engine)
    store.append(DAILY_COUNTS, daily((D1, "old", 1), (NEXT, "stays", 1)))
    store.replace(DAILY_COUNTS, D1, D1, daily((D1, "new", 2)), Transaction({"t": 1}))
    assert sorted(store.read(DAILY_COUNTS)["item_id"].to_pylist()) == ["new", "stays"]
    with pytest.raises(CheckFailedError):
        store.replace(DAILY_COUNTS, D1, D1, daily((NEXT, "astray", 2)), Transaction({"t": 2}))
    store.optimize(DAILY_COUNTS, D1, NEXT)
    assert store.vacuum(DAILY_COUNTS) == 0
    assert sorted(store.read(DAILY_COUNTS)["item_id"].to_pylist()) == ["new", "stays"]


def test_the_session_is_utc_and_keeps_microseconds(engine: ConnectEngine) -> None:
    assert engine.spark.conf.get("spark.sql.session.timeZone") == "UTC"
    found = engine.one_row(engine.spark.sql("select timestamp'0001-01-01 00:00:00.000001Z' as at"))
    assert found["at"] == YEAR_1


def test_a_query_that_cannot_run_names_the_server(engine: ConnectEngine, url: str) -> None:
    with pytest.raises(LakeFailedError, match=f"{url} failed during a query: .*no_such_column"):
        engine.one_row(engine.spark.range(3).selectExpr("no_such_column"))


def test_a_whole_night_over_connect_gives_the_rows_of_sail(url: str, engines: Engines, tmp_path: Path) -> None:
    remote = World(tmp_path / "remote", ConnectEngine(url), spark={"remote": url})
    local = World(tmp_path / "local", engines["sail"])
    try:
        for world in (remote, local):
            world.engine.activate()
            world.ingest("events.jsonl", some_days(), through=D3)
            world.night(D1)
            world.night(D2, D3)
        for table in (tables.HOURLY_COUNTS, tables.DAILY_COUNTS, tables.TOP_LISTS):
            keys = [(name, "ascending") for name in table.schema.names]
            assert remote.store.read(table).sort_by(keys) == local.store.read(table).sort_by(keys), table.name
        assert remote.served(D2) == local.served(D2) != {}
        assert "Apache-Spark" in remote.makers()
    finally:
        remote.engine.stop()
        for world in (remote, local):
            EmbeddedServer(world.home).stop()


def test_a_server_that_is_not_there_is_said_fast() -> None:
    url = f"sc://127.0.0.1:{free_port()}"
    before = time.monotonic()
    with pytest.raises(LakeFailedError, match=rf"no Spark Connect server answers at {url} .*spark\.remote"):
        ConnectEngine(url).__enter__()
    assert time.monotonic() - before < 10


def test_a_listener_that_is_no_spark_is_said_fast() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"sc://127.0.0.1:{listener.getsockname()[1]}"
        before = time.monotonic()
        with pytest.raises(LakeFailedError, match=url):
            ConnectEngine(url).__enter__()
        assert time.monotonic() - before < 30


def test_a_server_that_dies_in_mid_query_is_said(tmp_path: Path) -> None:
    with connect_server(tmp_path) as server, ConnectEngine(server.url) as engine:
        slow = engine.spark.range(3_000_000_000_000).selectExpr("sum(id % 7 * (id % 11)) as n")
        threading.Timer(3.0, server.process.kill).start()
        before = time.monotonic()
        with pytest.raises(LakeFailedError, match=f"{server.url} failed during a query"):
            engine.one_row(slow)
        assert time.monotonic() - before < 20
        with pytest.raises(LakeFailedError, match="no Spark Connect server answers"):
            engine.one_row(engine.spark.range(1))
