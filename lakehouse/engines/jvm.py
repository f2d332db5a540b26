"""The JVM that a classic Spark session runs in: started by Spark's own launcher, quiet, ended with the engine."""

import logging
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lakehouse.engines.jars import spark_home
from lakehouse.engines.scratch import writing

OPTIONS = "-Duser.timezone=UTC -XX:+ExitOnOutOfMemoryError"
OUT_OF_MEMORY = (3, 52)
"""How a JVM ends whose heap was too small: by the option above, or by Spark itself."""


class Jvm:
    """One JVM with the gateway that pyspark calls it through. It ends when its standard input closes."""

    def __init__(self, conf: Any, java_home: Path, log: Path) -> None:
        from pyspark import SparkContext
        from pyspark.java_gateway import launch_gateway

        _forget_gateway(SparkContext)
        changes = {
            "JAVA_HOME": str(java_home),
            "SPARK_HOME": str(spark_home()),  # another Spark's home would run another Spark
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
            "TZ": "UTC",
            "SPARK_REMOTE": None,
            "SPARK_LOCAL_DIRS": None,
        }
        with writing(log), log.open("ab") as out, _environment(changes):
            self.gateway = launch_gateway(conf, popen_kwargs={"stdout": out, "stderr": out, "start_new_session": True})
        self.process: subprocess.Popen[bytes] = self.gateway.proc

    def exit_code(self, within: float = 0.5) -> int | None:
        """How it ended; None when it lives."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Close its standard input, which ends it; kill it when it lingers."""
        from pyspark import SparkContext

        _forget_gateway(SparkContext)
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()
        if self.exit_code(5) is None:
            self.process.kill()
            self.process.wait()


def close_session(is_alive: bool) -> None:
    """Stop pyspark's session and forget it, so that the next is a new one; a JVM that is gone is not called.

    For whoever started it: pyspark holds one session a process, and does not say whose it is.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context, session = SparkContext._active_spark_context, SparkSession._instantiatedSession
    if context is not None and not is_alive:
        context._jsc = None
    for each in (session, context) if is_alive else (context,):
        if each is not None:
            with suppress(Exception):
                each.stop()
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def hush() -> None:
    """Keeps pyspark from printing failures, whole stack traces in JSON, that reach the caller as exceptions."""
    from pyspark.logger import PySparkLogger

    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    for logger in (logging.getLogger("py4j"), PySparkLogger.getLogger("SQLQueryContextLogger")):
        logger.setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4j)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    """py4j reports on the root logger itself that a JVM has died."""
    return Path(record.pathname).parent.name != "py4j"


def failure_in(log: Path, start: int) -> str | None:
    """The last line of the log, from byte `start` on, that names an error."""
    if not log.exists():
        return None
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").splitlines()
    found = [line.strip() for line in lines if "Error" in line or "Exception" in line]
    return found[-1] if found else None


def how(code: int) -> str:
    """An exit code in words."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def _forget_gateway(context: Any) -> None:
    """Makes pyspark's next context start a JVM instead of calling one that is gone."""
    gateway, context._gateway, context._jvm = context._gateway, None, None
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """`os.environ` with these changes; the launcher takes a copy of it."""
    before = {name: os.environ.get(name) for name in changes}
    try:
        _set(changes)
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
