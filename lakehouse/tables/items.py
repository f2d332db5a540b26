"""The tables that a night derives of the items: exact counts of hours and days, and the lists cut from them."""

import pyarrow as pa

from daybreak.events import INSTANT
from lakehouse.tables.table import DAY, Table, column

LIST = [DAY, column("window", pa.string()), column("bucket_start", INSTANT), column("dimension", pa.string())]
"""What tells one list of items from another: its window on the day, and what it is restricted to."""

HOURLY_COUNTS = Table(
    "hourly_counts",
    "Exact counts of one item in one hour of one closed UTC day.",
    pa.schema(
        [
            DAY,
            column("hour", pa.int32()),
            column("item_id", pa.string()),
            column("count", pa.int64()),
            column("event_count", pa.int64()),
            column("first_occurred_at", INSTANT),
            column("last_occurred_at", INSTANT),
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
            column("item_id", pa.string()),
            column("count", pa.int64()),
            column("event_count", pa.int64()),
            column("first_occurred_at", INSTANT),
            column("last_occurred_at", INSTANT),
            column("is_complete", pa.bool_()),
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
            *LIST,
            column("position", pa.int64()),
            column("item_id", pa.string()),
            column("count", pa.int64()),
            column("rank", pa.int64()),
            column("population", pa.int64()),
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
