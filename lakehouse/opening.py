"""Which engine and which store the settings name; the one place that knows them all."""

from daybreak.errors import UsageError
from daybreak.settings import Settings
from lakehouse.engines.engine import Engine
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.stores.store import Store


def open_engine(settings: Settings) -> Engine:
    """The engine of `settings.engine`, not started yet.

    Raises:
        UsageError: engine `connect` without `spark.remote`.
    """
    match settings.engine:
        case "sail":
            from lakehouse.engines.sail import SailEngine

            return SailEngine(settings.home, settings.night.memory_pool)
        case "spark":
            from lakehouse.engines.spark import SparkEngine

            return SparkEngine(settings.spark, settings.home)
        case "connect":
            from lakehouse.engines.connect import ConnectEngine

            if not settings.spark.remote:
                raise UsageError("engine connect needs spark.remote, as in DAYBREAK_SPARK__REMOTE=sc://host:15002")
            parts = settings.spark.shuffle_partitions
            ours = {"spark.sql.shuffle.partitions": str(parts)} if parts else {}
            return ConnectEngine(settings.spark.remote, ours | settings.spark.conf)


def open_store(settings: Settings, engine: Engine) -> Store:
    """The store whose commits are made by `engine`'s kind: delta-rs beside Sail, delta-spark on Spark."""
    if engine.name == "sail":
        return DeltaRsStore(settings.lake_root, settings.lake.retention)
    from lakehouse.stores.delta_spark import DeltaSparkStore

    return DeltaSparkStore(settings.lake_root, settings.lake.retention, engine)
