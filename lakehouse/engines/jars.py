"""Delta's jars, which pyspark does not bring: fetched once per user, then passed to Spark as files.

So a start of Spark neither asks a repository nor resolves anything. Spark's own resolver fetches them, with
whatever the user set for it (`spark.jars.ivySettings`, `spark.jars.repositories`).
"""

import fcntl
import os
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from daybreak.errors import LakeFailedError
from lakehouse.engines.scratch import rotated, writing

FETCH_SECONDS = 180.0
"""For some 10 MB; a repository that is slower than that is taken for absent."""
DELTA = version("delta-spark")
PACKAGES = (f"io.delta:delta-spark_4.2_2.13:{DELTA}", f"io.delta:delta-storage:{DELTA}")
"""All of Delta that these jobs load; what else its description names is in pyspark, or for catalogs of others."""

EXCLUDES = ("com.*:*", "io.delta:delta-kernel-*", "io.unitycatalog:*", "org.*:*")
"""Left out: newer copies are in pyspark's own folder, or no code path of ours reaches them."""


def spark_home() -> Path:
    """The folder of the Spark that pyspark brings."""
    import pyspark

    return Path(pyspark.__file__).parent


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where this user's jars of this version are kept, for every home."""
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "daybreak" / "jars" / f"delta-spark_4.2_2.13-{DELTA}"


def cached() -> list[Path] | None:
    """The jars, when they are all there."""
    files = [folder() / f"{group}_{name}-{version}.jar" for group, name, version in (x.split(":") for x in PACKAGES)]
    return files if all(file.is_file() for file in files) else None


def fetch(java_home: Path, conf: Mapping[str, str], log: Path) -> list[Path]:
    """The jars; fetched when they are not there yet. Several processes may ask at once.

    Raises:
        LakeFailedError: the repository cannot be reached, or does not have them; the cache cannot be written.
    """
    goal = folder()
    with writing(goal, "set XDG_CACHE_HOME to a folder that can"):
        goal.parent.mkdir(parents=True, exist_ok=True)
        with (goal.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (found := cached()) is not None:
                return found
            with TemporaryDirectory(dir=goal.parent, prefix="new-") as scratch:
                _resolve(java_home, conf, Path(scratch), log)
                goal.mkdir(exist_ok=True)
                for jar in (Path(scratch) / "jars").glob("*.jar"):
                    jar.replace(goal / jar.name)
    if (found := cached()) is None:
        raise LakeFailedError(f"the repository gave other jars than {', '.join(PACKAGES)}; look into {goal}")
    return found


def _resolve(java_home: Path, conf: Mapping[str, str], ivy: Path, log: Path) -> None:
    """Has spark-submit fetch the packages for a program that does nothing."""
    settings = {name: value for name, value in conf.items() if name.startswith("spark.jars.")}
    settings |= {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.jars.excludes": ",".join(EXCLUDES),
        "spark.jars.ivy": str(ivy),
    }
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", "local[1]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "scala.util.Properties", "spark-internal"]
    dropped = ("SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")
    environ = {name: value for name, value in os.environ.items() if name not in dropped}
    environ |= {"JAVA_HOME": str(java_home), "SPARK_HOME": str(spark_home()), "SPARK_CONNECT_MODE": "0"}
    rotated(log)
    with log.open("ab") as out:
        try:
            done = subprocess.run(
                command,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=FETCH_SECONDS,
                check=False,
            )
            code: int | str = done.returncode
        except subprocess.TimeoutExpired:
            code = f"none within {FETCH_SECONDS:.0f} s"
    if code != 0 or len(list((ivy / "jars").glob("*.jar"))) < len(PACKAGES):
        raise LakeFailedError(
            f"Delta's jars ({', '.join(PACKAGES)}) cannot be fetched (exit {code}); see {log}, and where the Maven "
            "repository can be reached run: daybreak doctor --warm"
        )
