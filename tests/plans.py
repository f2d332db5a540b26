"""What is wrong with a frame's physical plan on Apache Spark, whatever the size of its data."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

AGGREGATES = ("HashAggregate", "ObjectHashAggregate", "SortAggregate")
CROSS = ("BroadcastNestedLoopJoin", "CartesianProduct")


@contextmanager
def without_broadcasts(spark: SparkSession) -> Iterator[None]:
    """Plans as they are when no side of a join is small."""
    name = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(name)
    spark.conf.set(name, "-1")
    try:
        yield
    finally:
        spark.conf.set(name, before)


def nodes(frame: DataFrame) -> list[Any]:
    """Every node of the physical plan as it is before execution, top down; the first says whether it is adaptive."""
    return list(_below(frame._jdf.queryExecution().executedPlan()))


def faults(frame: DataFrame) -> list[str]:
    """Steps that do not scale, in words: all rows in one task, each row with each, a plan that cannot adapt."""
    found, plan = [], nodes(frame)
    for node in plan:
        kind, text = node.nodeName(), node.simpleString(200)
        if kind.startswith("Window") and node.partitionSpec().isEmpty():
            found.append(f"a window over all rows at once: {text}")
        if kind in CROSS:
            found.append(f"a join of each row with each: {text}")
        if kind == "Exchange" and "SinglePartition" in node.outputPartitioning().toString():
            child = node.child().nodeName()
            if child not in AGGREGATES:
                found.append(f"all rows of {child} in one task: {text}")
    if any(node.nodeName() == "Exchange" for node in plan) and plan[0].nodeName() != "AdaptiveSparkPlan":
        found.append("adaptive execution is off")
    return found


def _below(node: Any) -> Iterator[Any]:
    yield node
    if node.nodeName() == "AdaptiveSparkPlan":
        yield from _below(node.initialPlan())
    children = node.children()
    for number in range(children.size()):
        yield from _below(children.apply(number))
