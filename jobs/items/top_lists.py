"""Exact lists of the most played items, per day and per hour.

Reads   hourly_counts, daily_counts  as staged by this run
Stages  top_lists                    replaces the days' partitions and nothing else
Grain   one row per (day, window, bucket_start, dimension, position)
Rerun   same events give the same rows; no column comes from the clock
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from daybreak import windows
from jobs.run.run import Run
from lakehouse.engines.engine import StagedTable
from lakehouse.tables import registry as tables

BUCKET = ("day", "window", "bucket_start")


def bucket_counts(hourly: DataFrame, daily: DataFrame) -> DataFrame:
    """(day, window, bucket_start, item_id, count) of every hour and day."""
    midnight = F.col("day").cast("timestamp")
    micros = F.unix_micros(midnight) + F.col("hour").cast("bigint") * F.lit(windows.Window.HOUR.microseconds)
    hours = hourly.select(
        "day",
        F.lit(windows.Window.HOUR.value).alias("window"),
        F.timestamp_micros(micros).alias("bucket_start"),
        "item_id",
        "count",
    )
    days = daily.select(
        "day",
        F.lit(windows.Window.DAY.value).alias("window"),
        midnight.alias("bucket_start"),
        "item_id",
        "count",
    )
    return hours.unionByName(days)


def rank_by_counting(counts: DataFrame, depth: int) -> DataFrame:
    """The first `depth` positions of every bucket: `position`, competition `rank` and `population`.

    Items per distinct count are few rows; cumulated they say how many stand before each count. Only the
    counts that reach the list are joined back, and only equals are ordered among themselves, by item_id
    descending (UTF-8 bytes): what a plain ZREVRANGE gives. No window spans a whole bucket's items.
    """
    steps = counts.groupBy(*BUCKET, "count").agg(F.sum(F.lit(1).cast("bigint")).alias("equals"))
    best_first = Window.partitionBy(*BUCKET).orderBy(F.col("count").desc_nulls_last())
    upto = best_first.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    whole = Window.partitionBy(*BUCKET)
    reached = (
        steps.withColumn("upto", F.sum("equals").over(upto))
        .withColumn("population", F.sum("equals").over(whole))
        .withColumn("before", F.col("upto") - F.col("equals"))
        .filter(F.col("before") < F.lit(depth))
        .select(*BUCKET, "count", "before", "population")
    )
    among_equals = Window.partitionBy(*BUCKET, "count").orderBy(F.col("item_id").desc_nulls_last())
    return (
        counts.join(reached, [*BUCKET, "count"])
        .withColumn("among", F.row_number().over(among_equals).cast("bigint"))
        .withColumn("position", F.col("before") + F.col("among"))
        .withColumn("rank", F.col("before") + F.lit(1).cast("bigint"))
        .filter(F.col("position") <= F.lit(depth))
        .select(*BUCKET, "position", "item_id", "count", "rank", "population")
    )


def top_lists(hourly: DataFrame, daily: DataFrame, depth: int) -> DataFrame:
    """The days' whole table, in schema order."""
    ranked = bucket_counts(hourly, daily).transform(rank_by_counting, depth)
    return tables.TOP_LISTS.conform(ranked, dimension="")


def stage(run: Run) -> StagedTable:
    """Stage the run's days."""
    hourly, daily = run.staged(tables.HOURLY_COUNTS), run.staged(tables.DAILY_COUNTS)
    return run.stage(tables.TOP_LISTS, top_lists(hourly, daily, run.settings.stream.list_depth))
