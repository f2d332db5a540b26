"""The tables of bookkeeping: how far the input has come, what was published, and every finished run."""

import pyarrow as pa

from daybreak.events import INSTANT
from lakehouse.tables.table import DAY, Table, column

PROGRESS = Table(
    "progress",
    "How far each partition of each source has come; the newest row of a partition counts.",
    pa.schema(
        [
            column("source", pa.string()),
            column("partition", pa.int32()),
            column("complete_through", INSTANT),
            column("basis", pa.string()),
            column("recorded_at", INSTANT),
        ]
    ),
    ("source", "partition", "recorded_at"),
    {"basis": "declared (by --complete-through, needs no grace) or log_time"},
)

PUBLICATIONS = Table(
    "publications",
    "Every generation ever published; Redis can be rebuilt from here.",
    pa.schema(
        [
            DAY,
            column("generation", pa.int64()),
            column("content_hash", pa.string()),
            column("run_id", pa.string()),
            column("lake_version", pa.int64()),
            column("action", pa.string()),
            column("published_at", INSTANT),
            column("board", pa.string(), True),
            column("period", pa.string(), True),
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
        column("day", pa.date32()),
        column("rows", pa.int64()),
        column("lookback_rows", pa.int64()),
        column("previous_rows", pa.int64()),
        column("distinct", pa.int64()),
        column("duplicate", pa.int64()),
        column("is_complete", pa.bool_()),
    ]
)

RUNS = Table(
    "runs",
    "Every finished run; the newest row with outcome `committed` is the manifest that the views follow.",
    pa.schema(
        [
            column("run_id", pa.string()),
            column("kind", pa.string()),
            column("first_day", pa.date32()),
            column("last_day", pa.date32()),
            column("lake_version", pa.int64()),
            column("attempt", pa.int64()),
            column("table_versions", pa.map_(pa.string(), pa.int64())),
            pa.field("days", pa.list_(RUN_DAY), nullable=False),
            column("profile", pa.string()),
            column("checks", pa.string()),
            column("code_version", pa.string()),
            column("parameters_hash", pa.string()),
            column("outcome", pa.string()),
            column("committed_at", INSTANT),
            column("started_at", INSTANT, True),
            column("rules", pa.map_(pa.string(), pa.string()), True),
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
