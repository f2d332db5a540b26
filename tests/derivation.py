"""The three derived tables as an engine stages them from event files: what the engines' tests compare."""

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from daybreak.events import ITEM_EVENT
from jobs.items.daily_counts import daily_counts
from jobs.items.hourly_counts import hourly_counts
from jobs.items.top_lists import top_lists
from lakehouse.audit import recount
from lakehouse.audit.first_copies import CountedDays
from lakehouse.engines.engine import Engine
from lakehouse.tables import registry as tables

LOOKBACK = timedelta(hours=1)
Row = dict[str, Any]


@dataclass(frozen=True)
class Derived:
    """What one engine staged for a range of days."""

    first: date
    last: date
    depth: int
    event_files: list[str]
    files: dict[str, list[str]]

    def rows(self, table: tables.Table) -> list[Row]:
        """The staged rows, by grain."""
        found = [row for file in self.files[table.name] for row in pq.read_table(file).to_pylist()]
        return sorted(found, key=lambda row: [row[name] for name in table.grain])

    def all_rows(self) -> dict[str, list[Row]]:
        """The rows of every derived table."""
        return {table.name: self.rows(table) for table in tables.DERIVED}

    def recounted(self, day_rows: dict[date, int]) -> list[str]:
        """What DuckDB counts differently."""
        return recount.differences(
            self.event_files,
            self.files,
            days=CountedDays(self.first, self.last, LOOKBACK),
            day_rows=day_rows,
            depth=self.depth,
            full_below=10**9,
        )


def derive(engine: Engine, event_files: list[str], folder: Path, first: date, last: date, depth: int) -> Derived:
    """Stage the days from these files, which also hold the day before the first."""
    files: dict[str, list[str]] = {}

    def staged(table: tables.Table) -> Any:
        return engine.read(files[table.name], table.schema)

    for table, frame in (
        (tables.HOURLY_COUNTS, lambda: hourly_counts(engine.read(event_files, ITEM_EVENT), first, last, LOOKBACK)),
        (tables.DAILY_COUNTS, lambda: daily_counts(staged(tables.HOURLY_COUNTS), [])),
        (tables.TOP_LISTS, lambda: top_lists(staged(tables.HOURLY_COUNTS), staged(tables.DAILY_COUNTS), depth)),
    ):
        files[table.name] = list(engine.stage(frame(), table, folder / engine.name / table.name).files)
    return Derived(first, last, depth, event_files, files)
