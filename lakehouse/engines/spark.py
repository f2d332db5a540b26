"""Apache Spark with Delta: in a JVM of this process, or in the one that spark-submit started.

The one place where a classic session is built. What the JVM prints goes to a log in the home.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from daybreak.errors import LakeFailedError
from daybreak.settings import Spark
from lakehouse.engines import jars
from lakehouse.engines.engine import Engine
from lakehouse.engines.java import Java, find_java
from lakehouse.engines.jvm import OPTIONS, OUT_OF_MEMORY, Jvm, close_session, failure_in, how, hush
from lakehouse.engines.scratch import Scratch, rotated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit, which has started the JVM and chosen master, memory and packages."""

MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.datetime.java8API.enabled": "true",  # else bounds pushed to files lose the days of October 1582
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "true",
}
"""What the rows' meaning hangs on: the same on every Spark, Connect's sessions included."""

CATALOG = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
}

TUNING = {
    "spark.sql.adaptive.enabled": "true",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    "spark.sql.debug.maxToStringFields": "200",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}
"""What suits a lake of small days; Delta's own defaults are 50 parts a snapshot and 10,000 tasks a vacuum."""

LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


class SparkEngine(Engine):
    """One classic Spark session; a process can hold one at a time."""

    name = "spark"
    speaks_connect = False

    def __init__(self, settings: Spark, home: Path) -> None:
        super().__init__()
        self.settings = settings
        self.folder = home / "spark"
        self.scratch = Scratch(self.folder / "tmp")
        self._jvm: Jvm | None = None
        self._has_session = False

    @property
    def spark(self) -> "SparkSession":
        """The session; a new one when the JVM has died since."""
        if self._jvm is not None and self._jvm.exit_code(0) is not None:
            self.stop()
        return super().spark

    @property
    def log(self) -> Path:
        """What the JVM prints."""
        return self.folder / "spark.log"

    @property
    def pid(self) -> int | None:
        """The JVM's process id; None when none of ours is running."""
        return None if self._jvm is None else self._jvm.process.pid

    def java(self) -> Java:
        """The Java to run on."""
        return find_java(self.folder / "java")

    def warm(self) -> list[Path]:
        """Delta's jars, fetched now unless they are there."""
        return jars.fetch(self.java().home, self.settings.conf, self.log)

    def _start(self) -> "SparkSession":
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        is_submitted = SUBMITTED in os.environ
        if not is_submitted:  # what a machine lacks is named before what a process has
            self.java()
            self._files()
        if SparkContext._active_spark_context is not None:
            raise LakeFailedError("another Spark session runs in this process; stop it first")
        self._has_session = True
        hush()
        if is_submitted:
            SparkContext._ensure_initialized()  # so that the next line reads what spark-submit was given
        conf = SparkConf(loadDefaults=is_submitted)
        given = dict(conf.getAll()) if is_submitted else {}
        for name, value in (submitted_conf(self.settings, given) if is_submitted else self._own_conf()).items():
            conf.set(name, value)
        log_start = rotated(self.log)
        try:
            if not is_submitted:
                self._jvm = Jvm(conf, self.java().home, self.log)
            spark = SparkSession(SparkContext(conf=conf, gateway=self._jvm and self._jvm.gateway))
            spark.catalog.currentCatalog()  # loads Delta's catalog, or fails here
        except Exception as error:
            why = first_of(error) if is_submitted else failure_in(self.log, log_start) or first_of(error)
            self._stop(None)
            raise LakeFailedError(self._not_started(why, is_submitted)) from error
        return spark

    def _own_conf(self) -> dict[str, str]:
        return own_conf(self.settings, self.folder, self.scratch.open(), self._files())

    def _files(self) -> list[Path] | None:
        """Delta's jars, fetched when they are not there; None where the settings name packages of their own."""
        return None if "spark.jars.packages" in self.settings.conf else jars.cached() or self.warm()

    def _not_started(self, why: str, is_submitted: bool) -> str:
        if is_submitted:
            packages = ",".join(jars.PACKAGES)
            return f"Spark does not start under spark-submit: {why}; if it misses Delta, add --packages {packages}"
        return f"Spark does not start on {master_of(self.settings)}: {why}; its log is {self.log}; try: daybreak doctor"

    def _stop(self, spark: "SparkSession | None") -> None:
        if self._has_session:
            close_session(is_alive=self._jvm is None or self._jvm.exit_code(0) is None)
        self._has_session = False
        jvm, self._jvm = self._jvm, None
        if jvm is not None:
            jvm.end()
        self.scratch.close()

    @contextmanager
    def failing_as(self, what: str) -> Iterator[None]:
        """Failures of Spark inside become ours, the JVM's death by itself. Building a frame can fail too."""
        from py4j.protocol import Py4JError, Py4JNetworkError
        from pyarrow import ArrowException
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, Py4JError, ArrowException, OSError, EOFError, AssertionError) as error:
            code = None if self._jvm is None else self._jvm.exit_code()
            if code is not None or isinstance(error, Py4JNetworkError):
                self.stop()
                raise LakeFailedError(self._died(what, code)) from None
            if not isinstance(error, PySparkException | Py4JError):
                raise
            raise LakeFailedError(f"Spark failed during {what}: {first_of(error)}; its log is {self.log}") from error

    def _died(self, what: str, code: int | None) -> str:
        """The next use starts a new JVM, but frames of the old one are lost."""
        ended = "its connection broke" if code is None else how(code)
        more = f"; give it more than spark.driver_memory = {self.settings.driver_memory!r}, and"
        hint = more if code in OUT_OF_MEMORY else ";"
        return f"Spark's JVM died during {what} ({ended}){hint} run again; its log is {self.log}"


def own_conf(settings: Spark, folder: Path, scratch: Path, files: list[Path] | None) -> dict[str, str]:
    """All of Spark's settings for a JVM of ours; the user's own win."""
    master = master_of(settings)
    conf = MEANING | CATALOG | TUNING
    conf |= {
        "spark.app.name": "daybreak",
        "spark.master": master,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.defaultJavaOptions": OPTIONS,
        "spark.executor.defaultJavaOptions": OPTIONS,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    if files is not None:
        conf["spark.jars"] = ",".join(map(str, files))
    if master.startswith("local"):
        conf |= {"spark.local.dir": str(scratch), "spark.sql.shuffle.partitions": str(2 * cores(master))}
    if master.startswith(("local", "spark://127.0.0.1:", "spark://localhost:")):
        conf |= LOOPBACK
    if settings.shuffle_partitions:
        conf["spark.sql.shuffle.partitions"] = str(settings.shuffle_partitions)
    return conf | settings.conf


def submitted_conf(settings: Spark, given: Mapping[str, str]) -> dict[str, str]:
    """What is added to what spark-submit was given: the rows' meaning always, tuning where that is silent."""
    conf = {name: value for name, value in TUNING.items() if name not in given}
    if settings.shuffle_partitions:
        conf["spark.sql.shuffle.partitions"] = str(settings.shuffle_partitions)
    return conf | MEANING | CATALOG | settings.conf


def master_of(settings: Spark) -> str:
    """Where Spark runs when it is not spark-submit that says so."""
    return settings.conf.get("spark.master") or settings.master or "local[*]"


def cores(master: str) -> int:
    """Cores of a local master.

    >>> cores("local"), cores("local[3]"), cores("local[2,4]")
    (1, 3, 2)
    """
    inside = master.removeprefix("local").strip("[]").split(",")[0]
    if inside == "*":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(inside) if inside.isdigit() else 1


def first_of(error: Exception) -> str:
    """The line of an error that says most: the Java exception's, where there is one."""
    lines = [line.removeprefix(": ").rstrip(" ;") for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1]
    return lines[0] if lines else type(error).__name__
