"""Exact counts per item of closed UTC days.

Reads   hourly_counts  as staged by this run
Stages  daily_counts   replaces the days' partitions and nothing else
Grain   one row per (day, item_id)
Rerun   same events give the same rows; no column comes from the clock
"""

from collections.abc import Sequence
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.run.run import Run
from lakehouse.engines.engine import StagedTable
from lakehouse.engines.literals import day_literal
from lakehouse.tables import registry as tables


def count_items(hourly: DataFrame) -> DataFrame:
    """One row per (day, item) with its exact `count` (total weight) and `event_count`."""
    return hourly.groupBy("day", "item_id").agg(
        F.sum("count").alias("count"),
        F.sum("event_count").alias("event_count"),
        F.min("first_occurred_at").alias("first_occurred_at"),
        F.max("last_occurred_at").alias("last_occurred_at"),
    )


def daily_counts(hourly: DataFrame, incomplete: Sequence[date]) -> DataFrame:
    """The days' whole table, in schema order; `incomplete` names the days counted before all had arrived."""
    is_complete = ~F.col("day").isin(*map(day_literal, incomplete)) if incomplete else F.lit(True)
    return tables.DAILY_COUNTS.conform(hourly.transform(count_items).withColumn("is_complete", is_complete))


def stage(run: Run) -> StagedTable:
    """Stage the run's days."""
    incomplete = [day.day for day in run.pin.days if not day.is_complete]
    return run.stage(tables.DAILY_COUNTS, daily_counts(run.staged(tables.HOURLY_COUNTS), incomplete))
