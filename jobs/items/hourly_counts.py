"""Exact counts per item and hour of closed UTC days, from events deduplicated once.

Reads   item_events    at the pinned version: the days, and the look-back slice before each
Stages  hourly_counts  replaces the days' partitions and nothing else
Grain   one row per (day, hour, item_id)
Rerun   same events give the same rows; no column comes from the clock

A run of more events than `night.part_rows` is counted in parts of event ids, one after the other. Only
events whose id may occur again are put in order there, which takes half the time of ordering all.
"""

import shutil
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.first_copies import SHARDS, filter_first_copies, filter_own_day, with_counted_day
from jobs.run.run import Run
from lakehouse.engines.engine import StagedTable
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

PARTS = "hourly_counts.parts"
"""Folder in a run's staging for what a count in parts keeps until its end."""

KEYS = Table("copy_keys", "one per event", pa.schema([pa.field("copy_key", pa.int64())]), ())
COPIED = Table(
    "copied_keys", "keys of several events", KEYS.schema.append(pa.field("copies", pa.int64())), ("copy_key",)
)


def part_count(rows: int, part_rows: int) -> int:
    """Parts so that each has about `part_rows` of `rows` events; at least one.

    >>> [part_count(rows, 10) for rows in (0, 10, 11, 100)]
    [1, 1, 2, 10]
    """
    return max(1, -(-rows // part_rows))


def filter_part(keyed: DataFrame, part: int, part_total: int) -> DataFrame:
    """The rows whose `copy_key` falls into `part` of `part_total`; all copies of an event fall into the same.

    The key modulo shards times parts gives both places: its lowest digits are the shard, the rest the part.
    So a part spreads evenly over all shards.
    """
    if part_total == 1:
        return keyed
    place = F.pmod(F.col("copy_key"), F.lit(SHARDS * part_total))
    return keyed.filter((place >= F.lit(SHARDS * part)) & (place < F.lit(SHARDS * (part + 1))))


def with_copy_key(events: DataFrame) -> DataFrame:
    """`copy_key`: the counted day above 32 bits of the event id's hash. Copies share it; few others do."""
    day = F.unix_date("counted_day").cast("bigint") * F.lit(2**32)
    return events.withColumn("copy_key", day + F.crc32(F.col("event_id").cast("binary")))


def count_copies(keys: DataFrame) -> DataFrame:
    """(copy_key, copies) of the keys that occur more than once."""
    return keys.groupBy("copy_key").agg(F.sum(F.lit(1).cast("bigint")).alias("copies")).filter(F.col("copies") > 1)


def count_items_by_hour(events: DataFrame) -> DataFrame:
    """One row per (day, hour, item) with its exact `count` (total weight) and `event_count`.

    A bigint sum is exact here: `pin` refuses days whose rows x largest weight could pass 2^63.
    """
    return (
        events.withColumn("hour", F.hour("occurred_at"))
        .groupBy(F.col("counted_day").alias("day"), "hour", "item_id")
        .agg(
            F.sum("weight").alias("count"),
            F.sum(F.lit(1).cast("bigint")).alias("event_count"),
            F.min("occurred_at").alias("first_occurred_at"),
            F.max("occurred_at").alias("last_occurred_at"),
        )
    )


def merge_parts(parts: DataFrame) -> DataFrame:
    """One row per (day, hour, item) of counts that were made part by part."""
    return parts.groupBy("day", "hour", "item_id").agg(
        F.sum("count").alias("count"),
        F.sum("event_count").alias("event_count"),
        F.min("first_occurred_at").alias("first_occurred_at"),
        F.max("last_occurred_at").alias("last_occurred_at"),
    )


def hourly_counts(events: DataFrame, first: date, last: date, lookback: timedelta) -> DataFrame:
    """The days' whole table, in schema order. `events` holds the days and the day before the first."""
    return tables.HOURLY_COUNTS.conform(
        events.transform(with_counted_day, first, last, lookback)
        .transform(filter_first_copies)
        .transform(filter_own_day)
        .transform(count_items_by_hour)
    )


def stage(run: Run) -> StagedTable:
    """Stage the run's days; in parts when they are large."""
    lookback, part_rows = run.settings.night.dedup_lookback, run.settings.night.part_rows
    rows = sum(day.rows + day.lookback_rows for day in run.pin.days)
    events, first, last = run.pinned_events(), run.pin.first, run.pin.last
    if rows <= part_rows:
        return run.stage(tables.HOURLY_COUNTS, hourly_counts(events, first, last, lookback))
    parts = run.folder / PARTS
    shutil.rmtree(parts, ignore_errors=True)
    keyed = events.transform(with_counted_day, first, last, lookback).transform(with_copy_key)
    files = staged_parts(run, keyed, parts, part_count(rows, part_rows))
    merged = run.engine.read(files, tables.HOURLY_COUNTS.schema).transform(merge_parts)
    staged = run.stage(tables.HOURLY_COUNTS, tables.HOURLY_COUNTS.conform(merged))
    shutil.rmtree(parts)
    return staged


def staged_parts(run: Run, keyed: DataFrame, parts: Path, part_total: int) -> list[str]:
    """Files of counts whose sum is the table, made in steps that hold no more than a part at a time.

    The keys of all events are kept in files; part by part those that occur more than once are found.
    Events of other keys have no copy and are counted as they are read. Only the rest is put in order: at
    once when it is no larger than a part, which it is unless whole files came twice.
    """
    engine, part_rows = run.engine, run.settings.night.part_rows
    keys = engine.stage(keyed.select("copy_key"), KEYS, parts / "keys")
    copied = [
        engine.stage(
            engine.read(keys.files, KEYS.schema).transform(filter_part, part, part_total).transform(count_copies),
            COPIED,
            parts / f"copied-{part}",
        )
        for part in range(part_total)
    ]
    shutil.rmtree(keys.folder)
    at_once = sum(map(copied_events, copied)) <= part_rows
    files: list[str] = []
    for part, found in enumerate([copied] if at_once else [[each] for each in copied]):
        names = [name for each in found for name in each.files]
        of_part = keyed.transform(filter_part, part, 1 if at_once else part_total)
        known = engine.read(names, COPIED.schema).select("copy_key")
        single = of_part.join(known, "copy_key", "left_anti")
        first = of_part.join(known, "copy_key", "left_semi").transform(filter_first_copies)
        for kind, events in (("single", single), ("first", first)):
            counted = events.transform(filter_own_day).transform(count_items_by_hour)
            folder = parts / f"{kind}-{part}"
            files += engine.stage(tables.HOURLY_COUNTS.conform(counted), tables.HOURLY_COUNTS, folder).files
    return files


def copied_events(found: StagedTable) -> int:
    """Events of all keys that occur more than once."""
    return sum(pc.sum(batch.column("copies")).as_py() for batch in found.reader() if batch.num_rows)
