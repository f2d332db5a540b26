"""The engines that tests share: one Sail and one JVM per pytest process, started when first asked for."""

from pathlib import Path

from daybreak.errors import DaybreakError
from daybreak.settings import Settings
from lakehouse.engines.engine import Engine
from lakehouse.opening import open_engine

NAMES = ("sail", "spark")
INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
COMPILED = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}
CLASSES = Path(__file__).parents[1] / ".pytest_cache" / "spark.jsa"
"""Spark's classes as a JVM has them in its memory; `make test` lets `tests.spark_classes` write the file."""
SIMPLE = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC"
SHARED = f" -XX:SharedArchiveFile={CLASSES} -Xlog:disable -Xlog:all=error:stderr"
QUICK = SIMPLE + SHARED if CLASSES.exists() and " " not in str(CLASSES) else SIMPLE
"""Options of a JVM that lives for a test run."""
SHORT_LIVED = {
    "spark.driver.extraJavaOptions": QUICK,
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    **INTERPRETED,
}
"""A Spark that lives for a test run: quickly compiled code beats well compiled code, and for a few rows plans that are
interpreted beat compiled ones. (The cache of compiled code is small with such a compiler, and full after some minutes.)
"""
MAKERS = {"sail": "delta-rs", "spark": "Apache-Spark"}
"""How the commits of each engine's store name who made them."""


def started(name: str, home: Path) -> Engine:
    """An engine for tests: small memory, little data."""
    conf = Settings.model_validate(
        {"home": home, "engine": name, "spark": {"master": "local[2]", "driver_memory": "2g", "conf": SHORT_LIVED}}
        | {"night": {"memory_pool": 2**30}}
    )
    return open_engine(conf).__enter__()


class Engines:
    """Engines by name, each started once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: dict[str, Engine] = {}
        self.refused: dict[str, DaybreakError] = {}
        self.is_compiled = False
        """Whether Spark compiles plans, as it does for users."""

    def __getitem__(self, name: str) -> Engine:
        """The engine, ready to build frames."""
        if name in self.refused:  # a repository out of reach takes minutes to say so, once
            raise self.refused[name]
        if name not in self.running:
            try:
                self.running[name] = started(name, self.home)
            except DaybreakError as error:
                self.refused[name] = error
                raise
        engine = self.running[name]
        engine.activate()
        if name == "spark":
            for key, value in (COMPILED if self.is_compiled else INTERPRETED).items():
                engine.spark.conf.set(key, value)
        return engine

    def stop(self) -> None:
        """End all of them."""
        for engine in self.running.values():
            engine.activate()
            engine.stop()
