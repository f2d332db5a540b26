"""`python -m tests.spark_classes`: the archive of Spark's classes that every JVM of the tests starts with.

A JVM of Spark reads, checks and links some 15,000 classes from jars before its first row, for half of what its start
costs. Java keeps them, as they are after that, in a file (class data sharing) that other JVMs map into their memory.
A Java that the file does not fit, or that cannot make one, starts without it.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from daybreak.settings import Spark
from lakehouse.engines.spark import SparkEngine
from tests.engines import CLASSES, SHORT_LIVED, SIMPLE

OPTIONS = "spark.driver.extraJavaOptions"


def make(goal: Path) -> bool:
    """Whether a JVM that has read and written Delta kept its classes in this file."""
    goal.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=goal.parent) as folder:
        file = Path(folder) / goal.name
        conf = SHORT_LIVED | {OPTIONS: f"{SIMPLE} -XX:ArchiveClassesAtExit={file}"}
        engine = SparkEngine(Spark(master="local[2]", driver_memory="2g", conf=conf), Path(folder))
        engine.__enter__()
        table = str(Path(folder) / "table")
        rows = engine.spark.range(9).selectExpr("id", "id % 3 as day", "cast(id as string) as name")
        rows.write.format("delta").partitionBy("day").save(table)
        rows.where("day = 1").write.format("delta").mode("overwrite").option("replaceWhere", "day = 1").save(table)
        counts = engine.spark.read.format("delta").load(table).groupBy("day", "name").agg({"id": "sum"})
        counts.orderBy("name").write.parquet(f"{table}-staged")
        assert counts.toArrow().num_rows == 9
        process = engine._jvm.process if engine._jvm else None
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()  # it ends of itself, and takes longer to write the file than an engine would wait
        process.wait(300)
        engine.stop()
        if file.exists():
            file.rename(goal)
            return True
    return False


if __name__ == "__main__":
    print(f"{CLASSES} is made" if make(CLASSES) else "this Java keeps no classes; tests of Spark take longer")
