"""Nights on a standalone Spark cluster: the bundle through spark-submit, and the command with a master set.

The workers' environment lets no Python run; the submitted driver has the bundle on its path, not this checkout.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

import pytest

from daybreak.serving.embedded import EmbeddedServer
from lakehouse.engines import jars
from lakehouse.engines.engine import Engine
from lakehouse.engines.java import find_java
from lakehouse.tables import registry as tables
from tests.integration.clusters import (
    QUICK,
    Cluster,
    active_tasks,
    free_port,
    name_of,
    task_ends,
    tasks_by_executor,
    wait_until,
)
from tests.integration.nights import D1, D2, D3, World, some_days

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
OVERLAY = """
engine = "spark"
[spark]
master = "{master}"
driver_memory = "1g"
shuffle_partitions = 4
[spark.conf]
"spark.executor.memory" = "512m"
"spark.executor.extraJavaOptions" = "{options}"
"spark.driver.extraJavaOptions" = "{options}"
"spark.cores.max" = "2"
"spark.scheduler.minRegisteredResourcesRatio" = "1.0"
"spark.eventLog.enabled" = "true"
"spark.eventLog.dir" = "{logs}"
"spark.eventLog.compress" = "false"
"spark.eventLog.rolling.enabled" = "false"
"""


class Site:
    """A home whose nights run on a cluster, as a user has one: a folder with `conf/`, and the bundle."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder = folder
        self.cluster = cluster
        self.world = World(folder / "home")
        self.store = self.world.store
        shutil.copytree(ROOT / "conf", folder / "conf")
        build = [sys.executable, str(ROOT / "deploy" / "bundle.py"), "--folder", str(folder / "build")]
        subprocess.run(build, check=True, timeout=60, stdout=subprocess.DEVNULL)
        java = find_java(folder / "java").home
        self.jars = jars.cached() or jars.fetch(java, {}, folder / "fetch.log")
        self.python = folder / "python"
        self.python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # -S: no editable install
        self.python.chmod(0o755)

    def logs(self, run: str) -> Path:
        """Where Spark logs the events of the run of this name."""
        return self.folder / "events" / run

    def submit(self, run: str, *words: str, conf: Sequence[str] = ()) -> subprocess.Popen[str]:
        """The bundle's command through spark-submit, in client mode."""
        spark_submit = [
            str(jars.spark_home() / "bin" / "spark-submit"),
            *("--master", self.cluster.master, "--deploy-mode", "client", "--driver-memory", "1g"),
            *("--driver-java-options", QUICK),
            *("--jars", ",".join(map(str, self.jars))),
            *("--py-files", str(self.folder / "build" / "daybreak.zip")),
            *("--conf", f"spark.pyspark.driver.python={self.python}"),
            *("--conf", "spark.pyspark.python=/nonexistent/python"),
            *(word for each in conf for word in ("--conf", each)),
            str(self.folder / "build" / "daybreak_submit.py"),
        ]
        environ = self.cluster.environ | {"PYTHONPATH": sysconfig.get_path("purelib"), "PYTHONSAFEPATH": "1"}
        return self._start([*spark_submit, *words], run, environ)

    def command(self, run: str, *words: str) -> subprocess.Popen[str]:
        """The command as installed; the settings name the master."""
        return self._start([sys.executable, "-m", "daybreak.cli", *words], run, dict(os.environ))

    def rows(self, day: date) -> dict[str, list[dict[str, object]]]:
        return {table.name: rows_of(self.world, table, day) for table in tables.DERIVED}

    def makers(self, day: date) -> set[str]:
        """Who committed the rows of this day, as the commits say."""
        commits = [each for table in tables.DERIVED for each in self.store.commits_after(table, -1)]
        return {each.engine.partition("/")[0] for each in commits if f"-{day}-" in (each.run_id or "") and each.token}

    def _start(self, command: list[str], run: str, environ: dict[str, str]) -> subprocess.Popen[str]:
        self.logs(run).mkdir(parents=True)
        overlay = OVERLAY.format(master=self.cluster.master, logs=self.logs(run).as_uri(), options=QUICK)
        (self.folder / "conf" / f"{run}.toml").write_text(overlay)
        environ |= {"DAYBREAK_HOME": str(self.world.home), "DAYBREAK_ENV": run}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environ, cwd=self.folder, stdout=pipe, stderr=pipe, text=True)


def rows_of(world: World, table: tables.Table, day: date) -> list[dict[str, object]]:
    rows = world.store.read(table, days=[day]).to_pylist()
    return sorted(rows, key=lambda row: str([row[name] for name in table.grain]))


def ended(process: subprocess.Popen[str], code: int = 0) -> str:
    """What the process said, once it has ended with this code; spark-submit sends all of it to standard output."""
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code, f"exit {process.returncode}\n{out}\n{err}"
    return out + err


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"), cluster)
    made.world.ingest("events.jsonl", some_days(), through=D3)
    yield made
    EmbeddedServer(made.world.home).stop()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The same events on Sail, in another home."""
    world = World(tmp_path_factory.mktemp("sail") / "home")
    world.ingest("events.jsonl", some_days(), through=D3)
    with world.context:
        world.night(D1, D3)
    yield world
    EmbeddedServer(world.home).stop()


def require_same(site: Site, expected: World, day: date) -> None:
    """The day is on Spark what it is on Sail: rows of every derived table, and served lists."""
    assert site.makers(day) == {"Apache-Spark"}
    for table in tables.DERIVED:
        assert rows_of(site.world, table, day) == rows_of(expected, table, day), table.name
    assert site.rows(day)["daily_counts"]
    assert site.world.served(day) == expected.served(day) != {}


def test_spark_submit_runs_a_night_on_both_workers_without_python(site: Site, expected: World):
    ended(site.submit("submitted", "nightly", "--day", str(D1)))
    require_same(site, expected, D1)
    assert sorted(tasks_by_executor(site.logs("submitted"))) == ["0", "1"]


def test_the_command_runs_a_night_on_the_master_that_the_settings_name(site: Site, expected: World):
    ended(site.command("named", "nightly", "--day", str(D2)))
    require_same(site, expected, D2)
    assert sorted(tasks_by_executor(site.logs("named"))) == ["0", "1"]


def test_a_refusal_arrives_as_the_exit_code_of_spark_submit(site: Site):
    said = ended(site.submit("refused", "nightly", "--day", str(D3 + timedelta(days=1))), code=3)
    assert "daybreak: " in said


def test_a_night_outlives_a_worker_that_dies_with_a_task(site: Site, cluster: Cluster, expected: World):
    page = free_port()
    conf = ("spark.ui.enabled=true", f"spark.ui.port={page}")
    night = site.submit("killed", "nightly", "--day", str(D3), conf=conf)
    try:
        wait_until(lambda: has_staged(site, D3), "the night has staged its first table")
        victim = cluster.workers[0]
        executor = cluster.executor(victim)
        executor.suspend()  # so that it never finishes what it is given next
        wait_until(lambda: active_tasks(page, name_of(executor)) > 0, "the executor was given a task")
        cluster.kill(victim)
        ended(night)
    finally:
        night.kill()
        night.wait()
        cluster.complete()
    require_same(site, expected, D3)
    assert "ExecutorLostFailure" in {event["Task End Reason"]["Reason"] for event in task_ends(site.logs("killed"))}


def test_a_frame_without_rows_needs_no_python_either(spark_engine: Engine):
    for table in (tables.ITEM_EVENTS, *tables.DERIVED):
        frame = spark_engine.read([], table.schema)
        assert frame.columns == table.schema.names
        plan = frame._jdf.queryExecution().toString()
        assert "LogicalRDD" not in plan, plan  # rows out of Python objects, as createDataFrame makes them
        assert frame.count() == 0


def has_staged(site: Site, day: date) -> bool:
    """Whether the night of this day has its first table; others are to come."""
    return any((site.world.home / "staging").glob(f"night-{day}-*/hourly_counts/_SUCCESS"))
