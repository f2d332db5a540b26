"""What each player did on each board on closed UTC days: partials from which every period is merged.

Reads   score_events, item_events  at the pinned versions: the days, and the look-back slice before each
Stages  player_days                replaces the days' partitions and nothing else
Grain   one row per (day, board, season, player_id)
Rerun   same events, boards and voids give the same rows; no column comes from the clock
"""

from collections.abc import Collection, Iterable
from datetime import date, timedelta
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from daybreak.events import INSTANT
from daybreak.rules.boards import Board
from jobs.first_copies import filter_first_copies, filter_own_day, with_counted_day
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import DAY, TOTAL, Table

SCORED = Table(
    "scored_events",
    "Events that count, one row per event id, of one source; staged by a run and read by each of its boards.",
    pa.schema(
        [
            DAY,
            pa.field("event_id", pa.string(), nullable=False),
            pa.field("player_id", pa.string(), nullable=False),
            pa.field("points", TOTAL, nullable=False),
            pa.field("occurred_at", INSTANT, nullable=False),
            pa.field("received_at", INSTANT, nullable=False),
            pa.field("source", pa.string(), nullable=False),
            pa.field("partition", pa.int32(), nullable=False),
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("region", pa.string()),
            pa.field("match_type", pa.string()),
            pa.field("category", pa.string()),
            pa.field("season", pa.string()),
        ]
    ),
    ("day", "event_id"),
)
PLAYER = ("day", "board", "season", "player_id")
LAST = ("last_occurred_at", "last_received_at", "last_source", "last_partition", "last_offset")


def scored_events(events: DataFrame, source: str, first: date, last: date, lookback: timedelta) -> DataFrame:
    """The events of the days that count, as SCORED. `events` holds the days and the day before the first."""
    is_score = source == tables.SCORE_EVENTS.name
    renamed = {
        "day": F.col("counted_day"),
        "player_id": F.col("player_id" if is_score else "item_id"),
        "points": F.col("points" if is_score else "weight"),
        "match_type": F.col("match_type") if is_score else F.lit(None),
        "season": F.col("season") if is_score else F.lit(None),
        "category": F.lit(None) if is_score else F.col("category"),
    }
    distinct = (
        events.transform(with_counted_day, first, last, lookback)
        .transform(filter_first_copies)
        .transform(filter_own_day)
    )
    return SCORED.conform(
        distinct.select(*(renamed.get(name, F.col(name)).alias(name) for name in SCORED.schema.names))
    )


def filter_board(scored: DataFrame, board: Board, voided: Collection[str]) -> DataFrame:
    """The events of one board, with its `board` and the `at` that its order goes by; voided ones are out."""
    chosen = scored.withColumn("board", F.lit(board.name)).withColumn("at", F.col(board.reached_by))
    for column, values in board.filter.columns().items():
        chosen = chosen.filter(F.col(column).isin(*values))
    return chosen.filter(~F.col("event_id").isin(*sorted(voided))) if voided else chosen


def with_season(chosen: DataFrame, labels: Iterable[str]) -> DataFrame:
    """The events once for each label of the board that they fall under; the label '' takes all."""
    slices = [
        (chosen.filter(F.col("season") == F.lit(label)) if label else chosen).withColumn("season", F.lit(label))
        for label in labels
    ]
    return reduce(DataFrame.unionByName, slices)


def summed(events: DataFrame) -> DataFrame:
    """Totals; `changed_at` is the last event with points."""
    changing = events.withColumn("changing_at", F.when(F.col("points") != F.lit(0), F.col("at")))
    return changing.groupBy(*PLAYER).agg(
        F.sum("points").alias("points"),
        F.sum(F.lit(1).cast("bigint")).alias("event_count"),
        F.min("at").alias("first_at"),
        F.max("changing_at").alias("changed_at"),
    )


def best_of(events: DataFrame, sign: int) -> DataFrame:
    """The best points and when they were first reached."""
    by_points = events.groupBy(*PLAYER, "points").agg(
        F.sum(F.lit(1).cast("bigint")).alias("equals"), F.min("at").alias("reached_at")
    )
    best = F.max("points") if sign > 0 else F.min("points")
    players = by_points.groupBy(*PLAYER).agg(
        best.alias("points"), F.sum("equals").alias("event_count"), F.min("reached_at").alias("first_at")
    )
    reached = by_points.select(*PLAYER, "points", F.col("reached_at").alias("changed_at"))
    return players.join(reached, [*PLAYER, "points"])


def latest_of(events: DataFrame) -> DataFrame:
    """The latest event's points; of equal times the larger order key is the later."""
    newest = Window.partitionBy(*PLAYER).orderBy(
        *(F.col(name).desc_nulls_last() for name in ("at", *(name.removeprefix("last_") for name in LAST)))
    )
    counts = events.groupBy(*PLAYER).agg(
        F.sum(F.lit(1).cast("bigint")).alias("event_count"), F.min("at").alias("first_at")
    )
    last = events.withColumn("newness", F.row_number().over(newest)).filter(F.col("newness") == F.lit(1))
    return counts.join(
        last.select(
            *PLAYER,
            "points",
            F.col("at").alias("changed_at"),
            *(F.col(name.removeprefix("last_")).alias(name) for name in LAST),
        ),
        [*PLAYER],
    )


def without_last() -> dict[str, Column]:
    """The order key's columns of boards that do not need them."""
    types = {field.name: tables.SPARK_TYPES[field.type] for field in tables.PLAYER_DAYS.schema}
    return {name: F.lit(None).cast(types[name]) for name in LAST}


def player_days(scored: DataFrame, board: Board, labels: Iterable[str], voided: Collection[str] = ()) -> DataFrame:
    """One board's rows, in schema order, from the events of its source (as SCORED)."""
    events = scored.transform(filter_board, board, voided).transform(with_season, labels)
    match board.semantics:
        case "sum":
            found = summed(events).withColumns(without_last())
        case "best":
            found = best_of(events, board.sign).withColumns(without_last())
        case "latest":
            found = latest_of(events)
    return tables.PLAYER_DAYS.conform(found.withColumn("on_day", F.col("day")))
