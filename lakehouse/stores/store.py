"""The store interface: how tables are written and read, whichever library does it.

Every implementation passes `tests/contracts/test_store.py`. What a commit says about itself is written and read
here, in one form for all: a JSON text in `userMetadata`, which `DESCRIBE HISTORY` shows as well.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from daybreak.errors import FenceRefusedError, LakeFailedError
from lakehouse.tables.registry import Table

if TYPE_CHECKING:
    from lakehouse.engines.engine import StagedTable


@dataclass(frozen=True)
class Transaction:
    """What a commit says about itself: one or more transaction ids with versions, and who made it."""

    versions: dict[str, int] = field(default_factory=dict)
    """app id -> version. The commit is refused unless each is above the last one recorded in the table."""
    run_id: str | None = None
    days: tuple[date, date] | None = None
    """The first and last day that the commit replaces."""
    based_on: int | None = None
    """The table's `sequence` when the rows were derived from it; a replace since then refuses this one."""


@dataclass(frozen=True)
class Commit:
    """One commit of a table's history, as it described itself."""

    version: int
    operation: str
    run_id: str | None
    """Who changed rows, or compacted them; None for a claim."""
    days: tuple[date, date] | None
    engine: str = ""
    """The library that committed, as it calls itself."""
    claimed_by: str | None = None
    """Who fenced the days off for a replace that follows as a commit of its own. A claim changes no row."""
    token: str | None = None
    """What tells this commit from any other, also of the same run."""


class StaleReadError(FenceRefusedError):
    """Rows that were derived from the table itself, of which days were replaced meanwhile: derive them again."""


class CommitConflictError(LakeFailedError):
    """Another commit came first, every time; nothing was written (exit 8)."""


def sequence_id(table: Table) -> str:
    """The transaction id that every replace of the table raises by one: a compare-and-swap over all its days."""
    return f"{table.name}/sequence"


def described(transaction: Transaction, *, claims: bool = False, token: str | None = None) -> str:
    """The `userMetadata` of a commit."""
    facts = {
        "claimed_by" if claims else "run_id": transaction.run_id,
        "days": "/".join(day.isoformat() for day in transaction.days) if transaction.days else None,
        "token": token,
    }
    return json.dumps({name: value for name, value in facts.items() if value is not None})


def commit_of(entry: Mapping[str, Any]) -> Commit:
    """A commit from its entry in the history; foreign ones say nothing about themselves."""
    try:
        facts = json.loads(entry.get("userMetadata") or "{}")
    except ValueError:
        facts = {}
    facts = dict(entry) | (facts if isinstance(facts, dict) else {})  # the first lakes had it beside `operation`
    first, _, last = str(facts.get("days", "")).partition("/")
    return Commit(
        version=entry["version"],
        operation=entry["operation"],
        run_id=facts.get("run_id"),
        days=(date.fromisoformat(first), date.fromisoformat(last)) if last else None,
        engine=str(entry.get("engineInfo", "")),
        claimed_by=facts.get("claimed_by"),
        token=facts.get("token"),
    )


class StoreReader(Protocol):
    """Tables under one root, as they are read. All versions are Delta versions of the table named."""

    def widen(self, table: Table) -> None:
        """Add the columns that the registry has and a table of an older version lacks; its rows have nulls there."""

    def exists(self, table: Table) -> bool:
        """Whether the table is there."""

    def version(self, table: Table) -> int:
        """The newest version; -1 when the table does not exist."""

    def sequence(self, table: Table) -> int:
        """How often days of the table were replaced; see `Transaction.based_on`."""

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

    def version_at(self, table: Table, instant: datetime) -> int:
        """The newest version that was committed by then; -1 when there was none."""

    def commits_after(self, table: Table, version: int) -> list[Commit]:
        """Each commit newer than `version`, oldest first."""


class StoreWriter(Protocol):
    """Tables under one root, as they are changed: each change is one version, seen whole or not at all."""

    def create(self, table: Table) -> None:
        """Make the table, empty, if it is not there: protocol 1/2, partitioned by day, comments set."""

    def append(
        self, table: Table, batches: pa.RecordBatchReader | pa.Table, transaction: Transaction | None = None
    ) -> int:
        """Append rows in one commit, creating the table if need be; returns the new version.

        Raises:
            FenceRefusedError: a transaction version not above the recorded one.
            CheckFailedError: rows that do not fit the table's schema.
            LakeFailedError: not writable, disk full.
        """

    def replace(
        self, table: Table, first: date, last: date, rows: "StagedTable | pa.Table", transaction: Transaction
    ) -> int:
        """Replace the days `first` to `last` whole or not at all (no rows clear them); returns the new version.

        A conflict with a commit of other days, or with an append, is tried again with the same rows.

        Raises:
            FenceRefusedError: a transaction version not above the recorded one, also one committed meanwhile.
            CheckFailedError: rows of another day, or that do not fit the table's schema.
            LakeFailedError: not writable, disk full, or others kept committing.
        """

    def optimize(self, table: Table, first: date, last: date, run_id: str | None = None) -> None:
        """Compact the small files of these days; no row changes."""

    def tidy(self, table: Table, most_files: int, run_id: str | None = None) -> None:
        """Compact a table without days that has more files than that, and vacuum it; no row changes."""

    def vacuum(self, table: Table) -> int:
        """Delete files that no kept version needs; returns how many. Never younger than the retention."""


class Store(StoreReader, StoreWriter, Protocol):
    """Tables under one root, read and changed."""
