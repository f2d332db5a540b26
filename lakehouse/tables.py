"""The registry: every table of the lake as data.

DuckDB's comments, the reference page, the checks and each job's last `select` come from here.
"""

from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from daybreak.errors import CheckFailedError
from daybreak.events import INSTANT, ITEM_EVENT, REFUSAL, SCORE_EVENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOTAL = pa.decimal128(28, 4)
"""Sums of points: any day's points (each decimal(18,4)) fit."""

SPARK_TYPES = {
    pa.string(): "string",
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.float64(): "double",
    INSTANT: "timestamp",
    TOTAL: "decimal(28,4)",
}


@dataclass(frozen=True)
class Table:
    """One table: its name, schema, grain and who writes it."""

    name: str
    comment: str
    schema: pa.Schema
    grain: tuple[str, ...]
    comments: dict[str, str] = field(default_factory=dict)
    at_least: dict[str, int] = field(default_factory=dict)
    """Smallest allowed value per numeric column; a check of the night."""

    @property
    def partition_by(self) -> tuple[str, ...]:
        return ("day",) if "day" in self.schema.names else ()

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.schema if not f.nullable)

    def conform(self, frame: "DataFrame", **constants: object) -> "DataFrame":
        """`frame` in schema order with the schema's types; `constants` fill columns that it lacks.

        Raises:
            CheckFailedError: a column is missing or unknown.
        """
        from pyspark.sql import functions as F

        have, want = {*frame.columns, *constants}, set(self.schema.names)
        if have != want:
            raise CheckFailedError(
                f"{self.name}: columns missing {sorted(want - have)}, unknown {sorted(have - want)}; "
                f"mend the job that stages {self.name}"
            )
        return frame.select(
            *(
                (F.lit(constants[f.name]) if f.name in constants else F.col(f.name))
                .cast(SPARK_TYPES[f.type])
                .alias(f.name)
                for f in self.schema
            )
        )


def _f(name: str, kind: pa.DataType, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable)


DAY = _f("day", pa.date32())
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
        ]
    ),
    ("run_id",),
    {
        "kind": "what the run derived: items or boards",
        "table_versions": "the manifest: version of every derived table after this run's commits",
        "profile": "JSON",
        "checks": "JSON",
    },
)

_BOARD = [DAY, _f("board", pa.string()), _f("period", pa.string())]
_STANDING = [
    _f("points", TOTAL),
    _f("reached_at", INSTANT),
    _f("event_count", pa.int64()),
    _f("rank", pa.int64()),
    _f("population", pa.int64()),
]
AS_OF = _f("as_of", pa.date32())
PERIOD_COMMENTS = {
    "period": "2026-03-01, 2026-W28, 2026, all_time or a season's name",
    "position": "1 to N without gaps, by points, the board's tie-breaks, then player_id (UTF-8 bytes)",
    "rank": "by points alone, in the board's style",
    "population": "players on the board",
    "reached_at": "sum: last event that changed it; best: first time it was reached; latest: time of that event",
}

PLAYER_DAYS = Table(
    "player_days",
    "What one player did on one board on one closed UTC day; any period is merged from these.",
    pa.schema(
        [
            DAY,
            _f("board", pa.string()),
            _f("season", pa.string()),
            _f("player_id", pa.string()),
            _f("points", TOTAL),
            _f("event_count", pa.int64()),
            _f("first_at", INSTANT),
            _f("changed_at", INSTANT, True),
            _f("last_received_at", INSTANT, True),
            _f("last_source", pa.string(), True),
            _f("last_partition", pa.int32(), True),
            _f("last_offset", pa.int64(), True),
            _f("last_occurred_at", INSTANT, True),
            _f("on_day", pa.date32()),
        ]
    ),
    ("day", "board", "season", "player_id"),
    {
        "season": "label that the events carry; empty: all events of the board",
        "points": "sum, best or latest, as the board says",
        "changed_at": "sum: last event with points, null if none; best: first time of the best; latest: its time",
        "on_day": "the same as `day`, inside the files: many days are then one plain read on every engine",
        "last_offset": "with last_*: order key of the latest event; null on boards that are not `latest`",
    },
    {"event_count": 1},
)

BOARD_SNAPSHOTS = Table(
    "board_snapshots",
    "The first players of every board period, as of the end of `day`.",
    pa.schema([*_BOARD, _f("position", pa.int64()), _f("player_id", pa.string()), *_STANDING, AS_OF]),
    ("day", "board", "period", "position"),
    PERIOD_COMMENTS | {"day": "as of the end of this day", "as_of": "the same as `day`, inside the files"},
    {"position": 1, "rank": 1, "population": 1, "event_count": 1},
)

BOARD_HISTOGRAMS = Table(
    "board_histograms",
    "How many players have how many points in every board period, as of the end of `day`: all players.",
    pa.schema([*_BOARD, _f("points", TOTAL), _f("players", pa.int64()), AS_OF]),
    ("day", "board", "period", "points"),
    {
        "day": "as of the end of this day",
        "as_of": "the same as `day`, inside the files",
        "period": PERIOD_COMMENTS["period"],
    },
    {"players": 1},
)

SEASON_RANKS = Table(
    "season_ranks",
    "Final ranks of all players of a closed period; a correction is a further version, never a change.",
    pa.schema(
        [
            *_BOARD,
            _f("version", pa.int64()),
            _f("position", pa.int64()),
            _f("player_id", pa.string()),
            *_STANDING,
            _f("percentile", pa.float64()),
            _f("lake_version", pa.int64()),
        ]
    ),
    ("board", "period", "version", "player_id"),
    PERIOD_COMMENTS | {"day": "the period's last day", "percentile": "100 x players strictly worse / population"},
)

SEASON_PRIZES = Table(
    "season_prizes",
    "Who won what at a close: slots / among of one prize.",
    pa.schema(
        [
            *_BOARD,
            _f("version", pa.int64()),
            _f("player_id", pa.string()),
            _f("prize", pa.string()),
            _f("slots", pa.int64()),
            _f("among", pa.int64()),
        ]
    ),
    ("board", "period", "version", "player_id", "prize"),
)

BOARD_CLOSES = Table(
    "board_closes",
    "Closed periods; a version of `season_ranks` holds once its row is here.",
    pa.schema(
        [
            *_BOARD,
            _f("version", pa.int64()),
            _f("kind", pa.string()),
            _f("content_hash", pa.string()),
            _f("population", pa.int64()),
            _f("lake_version", pa.int64()),
            _f("counted", pa.map_(pa.string(), pa.int64())),
            pa.field("accepted", pa.list_(pa.string()), nullable=False),
            _f("policy", pa.string()),
            _f("reason", pa.string()),
            _f("run_id", pa.string()),
            _f("closed_at", INSTANT),
        ]
    ),
    ("board", "period", "version"),
    {
        "kind": "close or amendment",
        "counted": "source[partition] -> largest offset that was counted; later ones are exceptions",
        "accepted": "event ids of exceptions that count",
        "policy": "JSON: prizes and rules as published with version 1",
    },
)

AMENDED_RANKS = Table(
    "amended_ranks",
    "What an amendment changed: one row per player whose rank, points or prize differ from the version before.",
    pa.schema(
        [
            *_BOARD,
            _f("version", pa.int64()),
            _f("player_id", pa.string()),
            _f("old_rank", pa.int64(), True),
            _f("new_rank", pa.int64(), True),
            _f("old_points", TOTAL, True),
            _f("new_points", TOTAL, True),
            _f("old_prizes", pa.string(), True),
            _f("new_prizes", pa.string(), True),
        ]
    ),
    ("board", "period", "version", "player_id"),
)

BOARD_ACTIONS = Table(
    "board_actions",
    "Bans, voids and decisions about exceptions, in the order in which they were taken; nothing is ever removed.",
    pa.schema(
        [
            _f("action_id", pa.string()),
            _f("at", INSTANT),
            _f("action", pa.string()),
            _f("player_id", pa.string(), True),
            _f("event_id", pa.string(), True),
            _f("board", pa.string(), True),
            _f("period", pa.string(), True),
            _f("since", INSTANT, True),
            _f("reason", pa.string()),
            _f("actor", pa.string()),
        ]
    ),
    ("action_id",),
    {"action": "ban, unban, void, accept or reject", "since": "a ban removes the player from periods that end later"},
)

BOARD_EXCEPTIONS = Table(
    "board_exceptions",
    "Events that arrived after their period was closed; `board_actions` says what was decided.",
    pa.schema(
        [
            *_BOARD,
            _f("event_id", pa.string()),
            _f("player_id", pa.string()),
            _f("points", TOTAL),
            _f("occurred_at", INSTANT),
            _f("received_at", INSTANT),
            _f("reason", pa.string()),
            _f("found_at", INSTANT),
        ]
    ),
    ("board", "period", "event_id"),
    {"day": "the event's day"},
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


def partition_filter(first: date, last: date) -> str:
    """SQL predicate that prunes to the days from `first` to `last`, both included."""
    return f"day >= '{first.isoformat()}' AND day <= '{last.isoformat()}'"
