"""Apache Spark with Delta: a JVM of this process, or the one that spark-submit started.

The one place where a classic session is built. The JVM's output goes to a log in the home; it ends with the
engine, and with the process however that ends (its standard input closes).
"""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daybreak.errors import LakeFailedError
from daybreak.settings import Spark
from lakehouse import jars
from lakehouse.engine import Engine, first_line
from lakehouse.java import Java, find_java

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit, which has started the JVM and chosen master, memory and packages."""

LOG_BYTES = 16 * 2**20
OUT_OF_MEMORY = (3, 52)
"""Exit codes of a JVM whose heap was too small: the flag below, and Spark's own."""

MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "true",
    "spark.databricks.delta.replaceWhere.dataColumns.enabled": "true",
}
"""What the rows' meaning hangs on; the same everywhere."""

TUNING = {
    "spark.sql.adaptive.enabled": "true",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.sql.debug.maxToStringFields": "200",
}
"""What suits a lake of small days: Delta's own defaults are 50 parts a snapshot and 10,000 tasks a vacuum."""

JVM = "-Duser.timezone=UTC -XX:+ExitOnOutOfMemoryError"


class SparkEngine(Engine):
    """One classic Spark session; a process can hold one at a time."""

    name = "spark"
    speaks_connect = False

    def __init__(self, settings: Spark, home: Path) -> None:
        super().__init__()
        self.settings = settings
        self.folder = home / "spark"
        self._gateway: Any = None

    @property
    def log(self) -> Path:
        """What the JVM said."""
        return self.folder / "spark.log"

    @property
    def master(self) -> str:
        """Where Spark runs when it is not spark-submit that says so."""
        return self.settings.conf.get("spark.master") or self.settings.master or "local[*]"

    @property
    def pid(self) -> int | None:
        """The JVM's process id; None when it is not ours or not running."""
        process = self._process
        return None if process is None else process.pid

    def java(self) -> Java:
        """The Java to run on."""
        return find_java(self.folder / "java")

    def warm(self) -> list[Path]:
        """Delta's jars, fetched now unless they are there."""
        return jars.fetch(self.java().home, self.settings.conf, self.log)

    def _start(self) -> "SparkSession":
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        if SparkContext._active_spark_context is not None:
            raise LakeFailedError("a Spark session of somebody else runs in this process; stop it first")
        hush()
        if SUBMITTED in os.environ:
            SparkContext._ensure_initialized()
            conf = SparkConf()
            self._fill(conf, TUNING, over=False)
        else:
            conf = SparkConf(loadDefaults=False)
            self._fill(conf, TUNING | self._placement(), over=True)
            self._fill(conf, self._local(), over=True)
        self._fill(conf, MEANING | self.settings.conf, over=True)
        try:
            if SUBMITTED not in os.environ:
                self._gateway = self._launch(conf)
            spark = SparkSession(SparkContext(conf=conf, gateway=self._gateway))
            spark.catalog.currentCatalog()  # loads Delta's catalog, or fails here
        except Exception as error:
            said = _failure_in(self.log) if SUBMITTED not in os.environ else None
            self._stop(None)
            raise LakeFailedError(self._why_not_started(said or _first(error))) from error
        return spark

    def _fill(self, conf: "SparkConf", values: dict[str, str], over: bool) -> None:
        for name, value in values.items():
            conf.set(name, value) if over else conf.setIfMissing(name, value)

    def _placement(self) -> dict[str, str]:
        """Where it runs and with which jars."""
        conf = {
            "spark.app.name": "daybreak",
            "spark.master": self.master,
            "spark.driver.memory": self.settings.driver_memory,
            "spark.driver.defaultJavaOptions": JVM,
            "spark.executor.defaultJavaOptions": JVM,
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
        }
        if "spark.jars.packages" not in self.settings.conf:
            conf["spark.jars"] = ",".join(str(jar) for jar in jars.cached() or self.warm())
        if self.settings.shuffle_partitions:
            conf["spark.sql.shuffle.partitions"] = str(self.settings.shuffle_partitions)
        return conf

    def _local(self) -> dict[str, str]:
        """What only holds where driver and workers are this machine."""
        if not self.master.startswith("local"):
            on_loopback = self.master.startswith(("spark://127.0.0.1:", "spark://localhost:"))
            return _LOOPBACK if on_loopback else {}
        return _LOOPBACK | {
            "spark.local.dir": str(self._scratch(os.getpid())),
            "spark.sql.shuffle.partitions": str(self.settings.shuffle_partitions or 2 * _cores(self.master)),
        }

    def _launch(self, conf: "SparkConf") -> Any:
        """A JVM with its gateway."""
        from pyspark import SparkContext
        from pyspark.java_gateway import launch_gateway

        _forget_gateway(SparkContext)
        self._sweep()
        self._scratch(os.getpid()).mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        changes = {
            "JAVA_HOME": str(self.java().home),
            "SPARK_HOME": str(jars.spark_home()),  # another Spark's home would run another Spark
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
            "TZ": "UTC",
            "SPARK_REMOTE": None,
            "SPARK_LOCAL_DIRS": None,
        }
        with self.log.open("ab") as log, _environment(changes):
            return launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log, "start_new_session": True})

    def _stop(self, spark: "SparkSession | None") -> None:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        process = self._process
        if process is not None and process.poll() is not None and SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context._jsc = None  # nobody is left to be told
        with suppress(Exception):
            if spark is not None:
                spark.stop()
            elif SparkContext._active_spark_context is not None:
                SparkContext._active_spark_context.stop()
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
        if self._gateway is None:
            return
        _forget_gateway(SparkContext)
        self._gateway = None
        if process is not None:
            _end(process)
        shutil.rmtree(self._scratch(os.getpid()), ignore_errors=True)

    @contextmanager
    def failing_as(self, what: str) -> Iterator[None]:
        """Failures of Spark inside become ours, the JVM's death told apart. Building a frame can fail too."""
        from py4j.protocol import Py4JError, Py4JNetworkError
        from pyarrow import ArrowException
        from pyspark.errors import PySparkException

        try:
            yield
        except (PySparkException, Py4JError, OSError, EOFError, ArrowException, AssertionError) as error:
            code = self._exit_code()
            if code is not None or isinstance(error, Py4JNetworkError | ConnectionError):
                self.stop()
                raise LakeFailedError(self._died_during(what, code)) from None
            if not isinstance(error, PySparkException | Py4JError):
                raise
            raise LakeFailedError(f"Spark failed during {what}: {_first(error)}; its log is {self.log}") from error

    def _died_during(self, what: str, code: int | None) -> str:
        how = "its connection broke" if code is None else _how(code)
        hint = "; run again"
        if code in OUT_OF_MEMORY:
            hint = f"; give it more than spark.driver_memory = {self.settings.driver_memory!r} and run again"
        return f"Spark's JVM died during {what} ({how}){hint}; its log is {self.log}"

    def _why_not_started(self, said: str) -> str:
        if SUBMITTED in os.environ:
            return (
                f"Spark does not start under spark-submit: {said}; if Delta is what it misses, add "
                f"--packages {','.join(jars.PACKAGES)}"
            )
        return f"Spark does not start on {self.master}: {said}; its log is {self.log}, and see: daybreak doctor"

    @property
    def _process(self) -> "subprocess.Popen[bytes] | None":
        return getattr(self._gateway, "proc", None) if self._gateway is not None else None

    def _exit_code(self) -> int | None:
        """How the JVM ended; None when it lives or is not ours."""
        if self._process is None:
            return None
        try:
            return self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return None

    def _scratch(self, pid: int) -> Path:
        return self.folder / "tmp" / str(pid)

    def _sweep(self) -> None:
        """Remove what Spark spilled for processes that are dead."""
        for left in (self.folder / "tmp").glob("*"):
            if left.name != str(os.getpid()) and not Path(f"/proc/{left.name}").exists():
                shutil.rmtree(left, ignore_errors=True)


def hush() -> None:
    """Keeps pyspark from printing failures, whole stack traces in JSON, that reach the caller as exceptions."""
    from pyspark.logger import PySparkLogger

    for logger in (logging.getLogger("py4j"), PySparkLogger.getLogger("SQLQueryContextLogger")):
        logger.setLevel(logging.CRITICAL)


_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _forget_gateway(context: Any) -> None:
    """Makes pyspark's next context start a JVM instead of calling one that is gone."""
    gateway, context._gateway, context._jvm = context._gateway, None, None
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Closes the JVM's standard input, which ends it; kills it when it lingers."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def _environment(changes: dict[str, str | None]) -> Iterator[None]:
    """`os.environ` with these changes; the JVM's launcher takes a copy of it."""
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set(changes)
        yield
    finally:
        _set(before)


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _cores(master: str) -> int:
    inside = master.removeprefix("local").strip("[]").split(",")[0]
    return int(inside) if inside.isdigit() else 1 if not inside else len(os.sched_getaffinity(0))


def _failure_in(log: Path) -> str | None:
    """The last line of the log that names an error."""
    if not log.exists():
        return None
    lines = log.read_text(errors="replace").splitlines()[-200:]
    found = [line.strip() for line in lines if "Error" in line or "Exception" in line]
    return found[-1] if found else None


def _first(error: Exception) -> str:
    """The line of an error that says most: the Java exception's, where there is one."""
    lines = [line.removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1]
    return lines[0].rstrip(" ;") if lines else first_line(error)


def _how(code: int) -> str:
    import signal

    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
