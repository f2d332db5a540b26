"""The registry: every table of the lake as data.

DuckDB's comments, the reference page, the checks and each job's last `select` come from here.
"""

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
from lakehouse.tables.bookkeeping import PROGRESS, PUBLICATIONS, RUNS
from lakehouse.tables.events import EVENTS, ITEM_EVENTS, KINDS, REFUSALS, SCORE_EVENTS
from lakehouse.tables.evidence import CORRECTIONS, SERVED_LISTS, SERVED_SKETCHES
from lakehouse.tables.items import DAILY_COUNTS, HOURLY_COUNTS, TOP_LISTS
from lakehouse.tables.table import DAY, SPARK_TYPES, TOTAL, Table, partition_filter

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
    "EVENTS",
    "HOURLY_COUNTS",
    "ITEM_EVENTS",
    "KINDS",
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
