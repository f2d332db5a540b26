"""The tables of evidence: what was served while a day was provisional, and how wrong that was."""

import pyarrow as pa

from daybreak.events import INSTANT
from lakehouse.tables.items import LIST
from lakehouse.tables.table import Table, column

SERVED_LISTS = Table(
    "served_lists",
    "The provisional day and hour lists that Redis served just before the night replaced them.",
    pa.schema(
        [
            *LIST,
            column("position", pa.int64()),
            column("item_id", pa.string()),
            column("estimate", pa.int64()),
        ]
    ),
    ("day", "window", "bucket_start", "dimension", "position"),
    {"estimate": "what the list showed; never below the stream's true count"},
    {"position": 1, "estimate": 1},
)

SERVED_SKETCHES = Table(
    "served_sketches",
    "State of each served bucket: its meta and, where kept, its sketches of counted and late events.",
    pa.schema(
        [
            *LIST,
            column("as_of", INSTANT),
            column("depth", pa.int64()),
            column("events_total", pa.int64()),
            column("items_total", pa.int64(), True),
            column("total_weight", pa.int64()),
            column("error_bound", pa.float64()),
            column("confidence", pa.float64()),
            column("provenance", pa.string()),
            column("sketch", pa.binary(), True),
            column("late_sketch", pa.binary(), True),
            column("accounting", pa.string(), True),
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
            *LIST,
            column("lake_version", pa.int64()),
            column("k", pa.int64()),
            column("recall", pa.float64()),
            column("precision", pa.float64()),
            column("missed", pa.int64()),
            column("intruders", pa.int64()),
            column("max_rank_shift", pa.int64()),
            column("mean_rank_shift", pa.float64()),
            column("max_overcount", pa.int64()),
            column("mean_overcount", pa.float64()),
            column("mean_relative_error", pa.float64()),
            column("error_bound", pa.float64()),
            column("bound_coverage", pa.float64()),
            column("below_truth", pa.int64()),
            column("one_sided_holds", pa.bool_(), True),
            column("lost_cells", pa.int64(), True),
            column("stream_weight", pa.int64()),
            column("late_weight", pa.int64()),
            column("exact_weight", pa.int64()),
            column("refused_count", pa.int64(), True),
            column("ahead_count", pa.int64(), True),
            column("duplicate_count", pa.int64(), True),
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
