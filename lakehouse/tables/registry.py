"""The registry: every table of the lake as data.

DuckDB's comments, the reference page, the checks and each job's last `select` come from here.
"""

import pyarrow as pa

from daybreak.events import INSTANT, ITEM_EVENT, REFUSAL, SCORE_EVENT
from lakehouse.tables.boards import (
    AMENDED_RANKS,
    BOARD_ACTIONS,
    BOARD_CLOSES,
    BOARD_EXCEPTIONS,
    BOARD_HISTOGRAMS,
    BOARD_SNAPSHOTS,
    PLAYER_DAYS,
    SEASON_PRIZES,
    SEASON_RANKS,
)
from lakehouse.tables.table import DAY, SPARK_TYPES, TOTAL, Table, partition_filter
from lakehouse.tables.table import column as _f

__all__ = [
    "AMENDED_RANKS",
    "BOARD_ACTIONS",
    "BOARD_CLOSES",
    "BOARD_EXCEPTIONS",
    "BOARD_HISTOGRAMS",
    "BOARD_SNAPSHOTS",
    "BOARD_TABLES",
    "CLOSED_TABLES",
    "CORRECTIONS",
    "DAILY_COUNTS",
    "DAY",
    "DERIVED",
    "HOURLY_COUNTS",
    "ITEM_EVENTS",
    "PLAYER_DAYS",
    "PROGRESS",
    "PUBLICATIONS",
    "REFUSALS",
    "RUNS",
    "SCORE_EVENTS",
    "SEASON_PRIZES",
    "SEASON_RANKS",
    "SERVED_LISTS",
    "SERVED_SKETCHES",
    "SPARK_TYPES",
    "TABLES",
    "TOP_LISTS",
    "TOTAL",
    "Table",
    "partition_filter",
]

_LIST = [DAY, _f("window", pa.string()), _f("bucket_start", INSTANT), _f("dimension", pa.string())]

ITEM_EVENTS = Table("item_events", "Item events as accepted.", ITEM_EVENT, ("source", "partition", "offset"))
SCORE_EVENTS = Table("score_events", "Score events as accepted.", SCORE_EVENT, ("source", "partition", "offset"))
REFUSALS = Table(
    "refusals", "Rows that broke the contract, with the reason.", REFUSAL, ("source", "partition", "offset")
)

PROGRESS = Table(
    "progress",
    "How far each partition of each source has come; the newest row of a partition counts.",
    pa.schema(
        [
            _f("source", pa.string()),
            _f("partition", pa.int32()),
            _f("complete_through", INSTANT),
            _f("basis", pa.string()),
            _f("recorded_at", INSTANT),
        ]
    ),
    ("source", "partition", "recorded_at"),
    {"basis": "declared (by --complete-through, needs no grace) or log_time"},
)

HOURLY_COUNTS = Table(
    "hourly_counts",
    "Exact counts of one item in one hour of one closed UTC day.",
    pa.schema(
        [
            DAY,
            _f("hour", pa.int32()),
            _f("item_id", pa.string()),
            _f("count", pa.int64()),
            _f("event_count", pa.int64()),
            _f("first_occurred_at", INSTANT),
            _f("last_occurred_at", INSTANT),
        ]
    ),
    ("day", "hour", "item_id"),
    {"count": "exact total weight", "event_count": "number of distinct events", "hour": "0 to 23, UTC"},
    {"count": 1, "event_count": 1, "hour": 0},
)

DAILY_COUNTS = Table(
    "daily_counts",
    "Exact counts of one item in one closed UTC day.",
    pa.schema(
        [
            DAY,
            _f("item_id", pa.string()),
            _f("count", pa.int64()),
            _f("event_count", pa.int64()),
            _f("first_occurred_at", INSTANT),
            _f("last_occurred_at", INSTANT),
            _f("is_complete", pa.bool_()),
        ]
    ),
    ("day", "item_id"),
    {
        "count": "exact total weight",
        "event_count": "number of distinct events",
        "is_complete": "false when the day was counted before all of it had arrived",
    },
    {"count": 1, "event_count": 1},
)

TOP_LISTS = Table(
    "top_lists",
    "Exact lists of the most played items, per day and per hour.",
    pa.schema(
        [
            *_LIST,
            _f("position", pa.int64()),
            _f("item_id", pa.string()),
            _f("count", pa.int64()),
            _f("rank", pa.int64()),
            _f("population", pa.int64()),
        ]
    ),
    ("day", "window", "bucket_start", "dimension", "position"),
    {
        "dimension": "empty for the whole, else NAME=VALUE",
        "position": "1 to N without gaps; ties by item_id descending (UTF-8 bytes)",
        "rank": "competition rank: 1 + items with a larger count",
        "population": "items in the bucket, before the list is cut",
    },
    {"position": 1, "count": 1, "rank": 1, "population": 1},
)

SERVED_LISTS = Table(
    "served_lists",
    "The provisional day and hour lists that Redis served just before the night replaced them.",
    pa.schema(
        [
            *_LIST,
            _f("position", pa.int64()),
            _f("item_id", pa.string()),
            _f("estimate", pa.int64()),
        ]
    ),
    ("day", "window", "bucket_start", "dimension", "position"),
    {"estimate": "what the list said; never below the stream's true count"},
    {"position": 1, "estimate": 1},
)

SERVED_SKETCHES = Table(
    "served_sketches",
    "State of each served bucket: its meta and, where kept, its sketches of counted and late events.",
    pa.schema(
        [
            *_LIST,
            _f("as_of", INSTANT),
            _f("depth", pa.int64()),
            _f("events_total", pa.int64()),
            _f("items_total", pa.int64(), True),
            _f("total_weight", pa.int64()),
            _f("error_bound", pa.float64()),
            _f("confidence", pa.float64()),
            _f("provenance", pa.string()),
            _f("sketch", pa.binary(), True),
            _f("late_sketch", pa.binary(), True),
            _f("accounting", pa.string(), True),
        ]
    ),
    ("day", "window", "bucket_start", "dimension"),
    {
        "provenance": "pairs (exact) or cells (sketch)",
        "accounting": "JSON: counted, late, ahead, refused, read",
    },
)

CORRECTIONS = Table(
    "corrections",
    "How wrong each served list was, measured against the exact one; one row per list and lake_version.",
    pa.schema(
        [
            *_LIST,
            _f("lake_version", pa.int64()),
            _f("k", pa.int64()),
            _f("recall", pa.float64()),
            _f("precision", pa.float64()),
            _f("missed", pa.int64()),
            _f("intruders", pa.int64()),
            _f("max_rank_shift", pa.int64()),
            _f("mean_rank_shift", pa.float64()),
            _f("max_overcount", pa.int64()),
            _f("mean_overcount", pa.float64()),
            _f("mean_relative_error", pa.float64()),
            _f("error_bound", pa.float64()),
            _f("bound_coverage", pa.float64()),
            _f("below_truth", pa.int64()),
            _f("one_sided_holds", pa.bool_(), True),
            _f("lost_cells", pa.int64(), True),
            _f("stream_weight", pa.int64()),
            _f("late_weight", pa.int64()),
            _f("exact_weight", pa.int64()),
            _f("refused_count", pa.int64(), True),
            _f("ahead_count", pa.int64(), True),
            _f("duplicate_count", pa.int64(), True),
        ]
    ),
    ("day", "window", "bucket_start", "dimension", "lake_version"),
    {
        "recall": "share of the exact top k (ties as a set) that was served",
        "bound_coverage": "share of served estimates with overcount <= error_bound",
        "below_truth": "served estimates below the exact count",
        "one_sided_holds": "every cell rebuilt from exact counts <= stream + late; null without a sketch",
        "lost_cells": "cells above stream + late: proof that the stream lost events",
        "duplicate_count": "events of the day that the night took out as copies; null for hours",
    },
)

PUBLICATIONS = Table(
    "publications",
    "Every generation ever published; Redis can be rebuilt from here.",
    pa.schema(
        [
            DAY,
            _f("generation", pa.int64()),
            _f("content_hash", pa.string()),
            _f("run_id", pa.string()),
            _f("lake_version", pa.int64()),
            _f("action", pa.string()),
            _f("published_at", INSTANT),
            _f("board", pa.string(), True),
            _f("period", pa.string(), True),
        ]
    ),
    ("day", "board", "period", "generation"),
    {
        "action": "publish or rollback",
        "board": "null for the lists of items",
        "period": "null for the lists of items, else the board's period; `day` is then the day it is as of",
    },
)

RUN_DAY = pa.struct(
    [
        _f("day", pa.date32()),
        _f("rows", pa.int64()),
        _f("lookback_rows", pa.int64()),
        _f("previous_rows", pa.int64()),
        _f("distinct", pa.int64()),
        _f("duplicate", pa.int64()),
        _f("is_complete", pa.bool_()),
    ]
)

RUNS = Table(
    "runs",
    "Every finished run; the newest row with outcome `committed` is the manifest that the views follow.",
    pa.schema(
        [
            _f("run_id", pa.string()),
            _f("kind", pa.string()),
            _f("first_day", pa.date32()),
            _f("last_day", pa.date32()),
            _f("lake_version", pa.int64()),
            _f("attempt", pa.int64()),
            _f("table_versions", pa.map_(pa.string(), pa.int64())),
            pa.field("days", pa.list_(RUN_DAY), nullable=False),
            _f("profile", pa.string()),
            _f("checks", pa.string()),
            _f("code_version", pa.string()),
            _f("parameters_hash", pa.string()),
            _f("outcome", pa.string()),
            _f("committed_at", INSTANT),
            _f("started_at", INSTANT, True),
            _f("rules", pa.map_(pa.string(), pa.string()), True),
        ]
    ),
    ("run_id",),
    {
        "started_at": "null in rows of before it was a column",
        "rules": "board -> digest of the rules that its partials were derived by; null for a run of items",
        "kind": "what the run derived: items or boards",
        "table_versions": "the manifest: version of every derived table after this run's commits",
        "profile": "JSON",
        "checks": "JSON",
    },
)

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        ITEM_EVENTS,
        SCORE_EVENTS,
        REFUSALS,
        PROGRESS,
        HOURLY_COUNTS,
        DAILY_COUNTS,
        TOP_LISTS,
        SERVED_LISTS,
        SERVED_SKETCHES,
        CORRECTIONS,
        PUBLICATIONS,
        RUNS,
        PLAYER_DAYS,
        BOARD_SNAPSHOTS,
        BOARD_HISTOGRAMS,
        SEASON_RANKS,
        SEASON_PRIZES,
        BOARD_CLOSES,
        AMENDED_RANKS,
        BOARD_ACTIONS,
        BOARD_EXCEPTIONS,
    )
}
DERIVED = (HOURLY_COUNTS, DAILY_COUNTS, TOP_LISTS)
"""What a night derives of the items."""
BOARD_TABLES = (PLAYER_DAYS, BOARD_SNAPSHOTS, BOARD_HISTOGRAMS)
"""What a night derives of the boards."""
CLOSED_TABLES = (SEASON_RANKS, SEASON_PRIZES, AMENDED_RANKS)
"""What a version of a closed period consists of; it holds once its row is in `board_closes`."""
