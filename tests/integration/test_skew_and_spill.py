"""A skewed day is counted right, and a day larger than an engine's memory spills and gives equal rows."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daybreak.errors import LakeFailedError
from daybreak.events import ITEM_EVENT
from daybreak.settings import Spark
from lakehouse.engines.engine import Engine
from lakehouse.engines.sail import SailEngine
from lakehouse.engines.spark import SparkEngine
from lakehouse.tables import registry as tables
from tests.derivation import derive
from tests.engines import QUICK

pytestmark = pytest.mark.slow

DAY = date(2026, 3, 1)
START = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000
DAY_US = 86_400_000_000
HOT, REPEATED = "hot", "again and again"
POOL = 128 * 2**20


def write_day(folder: Path, count: int, repeated: int, items: int = 5_000) -> list[str]:
    """A day's file: one item has 40 % of the events, one event id occurs `repeated` times with other items."""
    chance = np.random.default_rng(7)
    ids = np.array([f"{number:032x}" for number in chance.permutation(count)])
    ids[chance.choice(count, repeated, replace=False)] = REPEATED
    item = np.where(chance.random(count) < 0.4, HOT, np.char.add("item-", chance.integers(0, items, count).astype(str)))
    at = pa.array(START + chance.integers(0, DAY_US, count)).cast(ITEM_EVENT.field("occurred_at").type)
    columns = {
        "event_id": pa.array(ids),
        "item_id": pa.array(item),
        "occurred_at": at,
        "weight": pa.array(chance.integers(1, 5, count)),
        "schema_version": pa.array(np.ones(count, np.int32)),
        "received_at": at,
        "source": pa.array(["s"] * count),
        "partition": pa.array(np.zeros(count, np.int32)),
        "offset": pa.array(np.arange(count)),
    }
    stored = pa.schema([field for field in ITEM_EVENT if field.name != "day"])
    rows = pa.table({f.name: columns.get(f.name, pa.nulls(count, f.type)) for f in stored}, schema=stored)
    file = folder / f"day={DAY}" / "events.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(rows, file, row_group_size=100_000)
    return [str(file)]


def naive_day(files: list[str]) -> Counter[str]:
    """Total weight per item, event by event in plain Python."""
    first: dict[str, tuple[datetime, int, str, int]] = {}
    columns = ["event_id", "occurred_at", "offset", "item_id", "weight"]
    table = pq.ParquetFile(files[0]).read(columns)
    for event_id, *rest in zip(*(table[name].to_pylist() for name in columns), strict=True):
        copy = (rest[0], rest[1], rest[2], rest[3])
        first[event_id] = min(first.get(event_id, copy), copy)
    total: Counter[str] = Counter()
    for _, _, item, weight in first.values():
        total[item] += weight
    return total


def hash_of(files: list[str], table: tables.Table) -> tuple[object, ...]:
    """The rows' number and a digest of all of them in order, small enough to hand over between processes."""
    with duckdb.connect() as duck:
        duck.execute("set TimeZone = 'UTC'")
        duck.read_parquet(files).create_view("t")
        names = ", ".join(f'"{name}"' for name in table.schema.names)
        order = ", ".join(f'"{name}"' for name in table.grain)
        query = f"select count(*), md5(string_agg(concat_ws('|', {names}), chr(10) order by {order})) from t"
        return tuple(duck.execute(query).fetchone())


def digests(engine: Engine, files: list[str], folder: Path) -> dict[str, tuple[object, ...]]:
    found = derive(engine, files, folder, DAY, DAY, 100)
    return {table.name: hash_of(found.files[table.name], table) for table in tables.DERIVED}


@contextmanager
def watched(folder: Path, pattern: str) -> Iterator[list[int]]:
    """The largest number of bytes seen in such files under `folder` while inside, as the only entry of a list."""
    seen, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            sizes = []
            for file in folder.rglob(pattern):
                try:
                    sizes.append(file.stat().st_size if file.is_file() else 0)
                except FileNotFoundError:
                    continue
            seen[0] = max(seen[0], sum(sizes))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


@pytest.fixture(scope="module")
def skewed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_day(tmp_path_factory.mktemp("skewed"), 200_000, repeated=40_000)


@pytest.fixture(scope="module")
def expected(skewed: list[str]) -> Counter[str]:
    found = naive_day(skewed)
    assert found[HOT] > 0.38 * found.total()
    return found


def test_one_item_with_two_fifths_of_a_day_and_one_id_a_fifth(
    engine: Engine, skewed: list[str], expected: Counter[str], tmp_path: Path
) -> None:
    found = derive(engine, skewed, tmp_path, DAY, DAY, 100)
    assert {row["item_id"]: row["count"] for row in found.rows(tables.DAILY_COUNTS)} == expected
    assert found.recounted({DAY: 200_000}) == []


def with_enough_memory(files: list[str], count: int, home: Path) -> dict[str, tuple[object, ...]]:
    """What an engine that spills nothing gives; the recount agrees."""
    with SailEngine(home, memory_pool=4 * 2**30) as engine:
        found = derive(engine, files, home / "out", DAY, DAY, 100)
    assert found.recounted({DAY: count}) == []
    return {table.name: hash_of(found.files[table.name], table) for table in tables.DERIVED}


def test_sail_spills_and_gives_equal_rows(tmp_path: Path) -> None:
    count = 1_200_000
    files = write_day(tmp_path, count, repeated=10_000, items=100_000)
    due = with_enough_memory(files, count, tmp_path / "enough")
    with SailEngine(tmp_path, memory_pool=POOL) as engine, watched(engine.folder, "tmp/*/?*/**/*") as spilled:
        assert digests(engine, files, tmp_path / "out") == due
    assert spilled[0] > POOL / 8
    assert not list(tmp_path.glob("sail/tmp/*/lock"))


def test_sail_says_so_when_its_memory_is_too_small_even_to_spill(tmp_path: Path) -> None:
    files = write_day(tmp_path, 300_000, repeated=10)
    with SailEngine(tmp_path, memory_pool=8 * 2**20) as engine, pytest.raises(LakeFailedError, match="exhausted"):
        digests(engine, files, tmp_path / "out")


SMALL_SPARK = Spark(
    master="local[2]",
    driver_memory="640m",
    conf={
        "spark.memory.fraction": "0.05",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": QUICK,
    },
)
"""A twentieth of what the heap has above Spark's own reserve: 17 MB for all that is sorted and grouped."""


def spark_with_little_memory(files: list[str], home: Path) -> dict[str, tuple[object, ...]]:
    """What a Spark of its own stages."""
    with SparkEngine(SMALL_SPARK, home) as engine:
        return digests(engine, files, home / "out")


def test_spark_spills_and_gives_equal_rows(tmp_path: Path) -> None:
    """In a process of its own: one process has one Spark."""
    count = 250_000
    files = write_day(tmp_path, count, repeated=10_000, items=20_000)
    due = with_enough_memory(files, count, tmp_path / "enough")
    script = "import json, sys; from pathlib import Path; from tests.integration import test_skew_and_spill as t; "
    script += "print(json.dumps(t.spark_with_little_memory(sys.argv[2:], Path(sys.argv[1]))))"
    with watched(tmp_path / "spark", "temp_local_*") as spilled:
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path), *files],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=200,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: tuple(digest) for name, digest in found.items()} == due
    assert spilled[0] > 2**20
