"""Which copy of an event counts on which day: one rule for items and boards.

Of the copies of one event id the smallest by the order key counts; a copy in a day whose id occurs in the look-back
slice before it is a duplicate.
"""

from datetime import date, timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from daybreak.events import ORDER_KEY
from daybreak.windows import MICROSECONDS_PER_MINUTE, day_bounds
from lakehouse.engines.literals import instant_literal

SHARDS = 16
"""Parallel parts of the deduplication; a sort per part instead of one hash entry per event id."""

MICROSECONDS_PER_DAY = 1440 * MICROSECONDS_PER_MINUTE


def with_counted_day(events: DataFrame, first: date, last: date, lookback: timedelta) -> DataFrame:
    """The events of the days under their own `counted_day`, and those of the look-back slices under the next one.

    An event of a slice can only take copies of the next day away; `filter_own_day` drops it afterwards.
    """
    start, _ = day_bounds(first)
    _, end = day_bounds(last)
    last_slice_end, _ = day_bounds(last)
    micros = F.pmod(F.unix_micros("occurred_at"), F.lit(MICROSECONDS_PER_DAY))
    slice_start = MICROSECONDS_PER_DAY - lookback // timedelta(microseconds=1)
    own = events.filter(F.col("occurred_at") >= instant_literal(start))
    own = own if last == date.max else own.filter(F.col("occurred_at") < instant_literal(end))
    before = events.filter(F.col("occurred_at") < instant_literal(last_slice_end)).filter(micros >= F.lit(slice_start))
    before = before if first == date.min else before.filter(F.col("occurred_at") >= instant_literal(start - lookback))
    return own.withColumn("counted_day", F.to_date("occurred_at")).unionByName(
        before.withColumn("counted_day", F.date_add(F.to_date("occurred_at"), 1))
    )


def filter_first_copies(events: DataFrame) -> DataFrame:
    """The copy of each event id that counts in its `counted_day`: the smallest by the order key.

    Sorting shards and keeping each run's first row takes a tenth of the time and memory of grouping by id.
    """
    shard = F.pmod(F.crc32(F.col("event_id").cast("binary")), F.lit(SHARDS))
    in_order = Window.partitionBy("counted_day", "shard").orderBy("event_id", *ORDER_KEY)
    return (
        events.withColumn("shard", shard)
        .withColumn("previous_id", F.lag("event_id").over(in_order))
        .filter(F.col("previous_id").isNull() | (F.col("previous_id") != F.col("event_id")))
    )


def filter_own_day(events: DataFrame) -> DataFrame:
    """Events whose own day is the one they are counted under."""
    return events.filter(F.to_date("occurred_at") == F.col("counted_day"))
