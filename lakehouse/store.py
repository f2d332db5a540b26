"""The store interface: how tables are written and read, whichever library does it.

Every implementation passes `tests/contracts/test_store.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from lakehouse.tables import Table


@dataclass(frozen=True)
class Transaction:
    """What a commit says about itself: one or more transaction ids with versions, and who made it."""

    versions: dict[str, int] = field(default_factory=dict)
    """app id -> version. The commit is refused unless each is above the last one recorded in the table."""
    run_id: str | None = None
    days: tuple[date, date] | None = None
    """The first and last day that the commit replaces."""


@dataclass(frozen=True)
class Commit:
    """One commit of a table's history, as it described itself."""

    version: int
    operation: str
    run_id: str | None
    days: tuple[date, date] | None


class Store(Protocol):
    """Tables under one root. All versions are Delta versions of the table named."""

    def create(self, table: Table) -> None:
        """Make the table, empty, if it is not there: protocol 1/2, partitioned by day, comments set."""

    def exists(self, table: Table) -> bool:
        """Whether the table is there."""

    def version(self, table: Table) -> int:
        """The newest version; -1 when the table does not exist."""

    def append(
        self, table: Table, batches: pa.RecordBatchReader | pa.Table, transaction: Transaction | None = None
    ) -> int:
        """Append rows in one commit, creating the table if need be; returns the new version.

        Raises:
            FenceRefusedError: a transaction version not above the recorded one.
            LakeFailedError: not writable, disk full.
        """

    def replace(
        self,
        table: Table,
        first: date,
        last: date,
        batches: pa.RecordBatchReader | pa.Table,
        transaction: Transaction,
    ) -> int:
        """Replace the days `first` to `last` in one commit with `batches` (streamed; empty clears them)."""

    def transaction_version(self, table: Table, app_id: str) -> int | None:
        """The last recorded version of `app_id`, None if never seen or no table."""

    def transaction_versions(self, table: Table, app_ids: Iterable[str]) -> dict[str, int]:
        """The last recorded version of each of these ids that was ever seen."""

    def files(self, table: Table, version: int, first: date, last: date) -> list[str]:
        """Absolute paths of the Parquet files of these days at that version; opens only the log."""

    def row_counts(self, table: Table, version: int, first: date, last: date) -> dict[date, int]:
        """Rows per day at that version, from the log alone; days without rows are absent."""

    def dataset(self, table: Table, version: int | None = None) -> ds.Dataset:
        """The table at a version (newest: None), `day` included as a column; empty when there is no table."""

    def read(self, table: Table, version: int | None = None, days: Sequence[date] | None = None) -> pa.Table:
        """Rows of small tables, in memory, schema order."""

    def commits_after(self, table: Table, version: int) -> list[Commit]:
        """Each commit newer than `version`, oldest first."""

    def optimize(self, table: Table, first: date, last: date, run_id: str | None = None) -> None:
        """Compact the small files of these days; no row changes."""

    def vacuum(self, table: Table) -> int:
        """Delete files that no kept version needs; returns how many. Never younger than the retention."""
