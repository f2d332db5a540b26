"""The store on delta-rs: Delta tables below one folder, written by one process at a time per commit.

Guarantees, held by `tests/contracts/test_store.py` and `test_store_concurrency.py`:

- a commit shows whole or not at all, and only the days it names change;
- a commit whose transaction version is not above the recorded one is refused: the version is looked up on
  the very handle that is written with, and delta-rs itself refuses a twin committed in between;
- a replace that meets another commit on its way looks at its fences anew and tries again with the same rows;
- tables stay at protocol 1/2, so that Spark, Sail, DuckDB and delta-rs all read them.
"""

import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalake import Transaction as DeltaTransaction

from daybreak.errors import LakeFailedError
from lakehouse.engines.engine import StagedTable
from lakehouse.stores.conform import Conformed, check_staged
from lakehouse.stores.delta_rs_reader import DeltaRsReader
from lakehouse.stores.failures import failing_as
from lakehouse.stores.fences import is_claimed, require_free, require_fresh, sequence_of
from lakehouse.stores.store import CommitConflictError, Transaction, described, sequence_id
from lakehouse.tables.registry import Table, partition_filter

PROTOCOL = (1, 2)
TRIES = 10
"""Of a commit that meets others; one of them lands each time, so that many writers at once all come through."""
WAIT_SECONDS = 0.02
LONG_COMMIT = 1000
"""A commit about more days than this is followed by a checkpoint: every reader would parse its text otherwise."""


class DeltaRsStore(DeltaRsReader):
    """`lakehouse.stores.store.Store` over delta-rs."""

    def __init__(self, root: Path, retention: timedelta = timedelta(days=30)) -> None:
        super().__init__(root)
        self.retention = retention

    def create(self, table: Table) -> None:
        """Make the table, empty, if it is not there: protocol 1/2, partitioned by day, comments set."""
        if self.exists(table):
            return
        with failing_as(self.path(table), "made"):
            self.path(table).mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                str(self.path(table)),
                schema=_commented(table),
                mode="ignore",
                partition_by=list(table.partition_by) or None,
                name=table.name,
                description=table.comment,
                configuration=self._properties,
                raise_if_key_not_exists=False,
            )

    def widen(self, table: Table) -> None:
        """Add the columns that the registry has and a table of an older version lacks; its rows have nulls there."""

        def attempt(handle: DeltaTable) -> int:
            known = {field.name for field in handle.schema().fields}
            missing = [field for field in _commented(table) if field.name not in known]
            if missing:
                with failing_as(self.path(table), "altered"):
                    handle.alter.add_columns(Schema.from_arrow(pa.schema(missing)).fields)
            return int(handle.version())

        self.until_no_conflict(table, attempt)

    def append(
        self, table: Table, batches: pa.RecordBatchReader | pa.Table, transaction: Transaction | None = None
    ) -> int:
        """Append rows in one commit, creating the table if need be; returns the new version.

        Raises:
            FenceRefusedError: a transaction version not above the recorded one.
            CheckFailedError: rows that do not fit the table's schema.
            LakeFailedError: not writable, disk full; or a reader's rows met a replace: they cannot be read twice.
        """
        made = transaction or Transaction()

        def attempt(handle: DeltaTable) -> int:
            require_free(table, handle, made)
            rows = Conformed(table, batches)
            return self._write(table, handle, rows, made.versions, described(made), mode="append")

        if isinstance(batches, pa.Table):
            return self.until_no_conflict(table, attempt)
        try:
            return attempt(self.writable(table))
        except CommitConflictError:
            require_free(table, self.writable(table), made)
            raise

    def replace(
        self, table: Table, first: date, last: date, rows: StagedTable | pa.Table, transaction: Transaction
    ) -> int:
        """Replace the days `first` to `last` in one commit with `rows` (streamed; none clear them).

        Raises:
            FenceRefusedError: a transaction version not above the recorded one.
            CheckFailedError: rows of another day, or that do not fit the table's schema.
            LakeFailedError: not writable, disk full, or others kept committing.
        """
        if isinstance(rows, StagedTable):
            check_staged(table, rows.files, (first, last))

        def attempt(handle: DeltaTable) -> int:
            if not is_claimed(handle, transaction):
                require_free(table, handle, transaction)
            require_fresh(table, handle, transaction.based_on)
            source = Conformed(table, rows.reader() if isinstance(rows, StagedTable) else rows, (first, last))
            versions = transaction.versions | {sequence_id(table): sequence_of(table, handle) + 1}
            how = {"mode": "overwrite", "predicate": partition_filter(first, last)}
            return self._write(table, handle, source, versions, described(transaction), **how)

        return self.until_no_conflict(table, attempt)

    def claim(self, table: Table, handle: DeltaTable, transaction: Transaction) -> None:
        """Record the fences of a replace that another library will make, and the table's next sequence; no row.

        Raises:
            FenceRefusedError: a transaction version not above the one that `handle` shows.
            CommitConflictError: another replace or claim came after `handle` was opened.
        """
        require_free(table, handle, transaction)
        versions = transaction.versions | {sequence_id(table): sequence_of(table, handle) + 1}
        nothing = Conformed(table, table.schema.empty_table())
        self._write(table, handle, nothing, versions, described(transaction, claims=True), mode="append")

    def optimize(self, table: Table, first: date, last: date, run_id: str | None = None) -> None:
        """Compact the small files of these days; no row changes."""
        self._compact(table, [("day", ">=", first.isoformat()), ("day", "<=", last.isoformat())], run_id)

    def tidy(self, table: Table, most_files: int, run_id: str | None = None) -> None:
        """Compact a table without days that has more files than that, and vacuum it; no row changes."""
        handle = self._open(table)
        if handle is not None and len(handle.file_uris()) > most_files:
            self._compact(table, None, run_id)
            self.vacuum(table)

    def _compact(self, table: Table, days: list[tuple[str, str, str]] | None, run_id: str | None) -> None:
        if not self.exists(table):
            return

        def attempt(handle: DeltaTable) -> int:
            with failing_as(self.path(table), "compacted"):
                handle.optimize.compact(
                    partition_filters=days,
                    commit_properties=_properties({}, described(Transaction(run_id=run_id))),
                )
            return int(handle.version())

        self.until_no_conflict(table, attempt)

    def vacuum(self, table: Table) -> int:
        """Delete files that no kept version needs; returns how many. Never younger than the retention.

        Also deletes what failed and repeated commits left behind, which no version ever named.
        """
        if not self.exists(table):
            return 0
        self.configure(table)
        with failing_as(self.path(table), "vacuumed"):
            return len(
                self.writable(table).vacuum(
                    retention_hours=self._kept_hours, dry_run=False, enforce_retention_duration=True, full=True
                )
            )

    def configure(self, table: Table) -> None:
        """Bring a table that was made under other settings to the properties of these."""

        def attempt(handle: DeltaTable) -> int:
            found = handle.metadata().configuration
            changed = {name: value for name, value in self._properties.items() if found.get(name) != value}
            if changed:
                with failing_as(self.path(table), "altered"):
                    handle.alter.set_table_properties(changed, raise_if_not_exists=False)
            return int(handle.version())

        self.until_no_conflict(table, attempt)

    @property
    def _kept_hours(self) -> int:
        return max(1, self.retention // timedelta(hours=1))

    @property
    def _properties(self) -> dict[str, str]:
        """Delta's own settings of every table; its retention guards each vacuum, whoever runs it."""
        kept = f"interval {self._kept_hours} hours"
        return {
            "delta.logRetentionDuration": kept,
            "delta.deletedFileRetentionDuration": kept,
            "delta.writePartitionColumnsToParquet": "false",  # Spark would put `day` into files, delta-rs does not
        }

    def writable(self, table: Table) -> DeltaTable:
        """A fresh handle of the table, made if need be, at a protocol that every engine reads."""
        self.create(table)
        handle = self._open(table)
        if handle is None:
            raise LakeFailedError(f"{self.path(table)} vanished while it was written; run again")
        _check_protocol(table, handle)
        return handle

    def until_no_conflict(self, table: Table, attempt: Callable[[DeltaTable], int]) -> int:
        """What `attempt` returns, tried anew on a fresh handle whenever another commit came first.

        Raises:
            CommitConflictError: others came first every time.
        """
        for number in range(1, TRIES):
            try:
                return attempt(self.writable(table))
            except CommitConflictError:
                time.sleep(WAIT_SECONDS * number)
        return attempt(self.writable(table))

    def _write(
        self, table: Table, handle: DeltaTable, rows: Conformed, versions: dict[str, int], metadata: str, **how: Any
    ) -> int:
        with failing_as(self.path(table), "written", lambda: rows.failure):
            write_deltalake(handle, rows.reader(), commit_properties=_properties(versions, metadata), **how)
        if len(versions) > LONG_COMMIT:
            with failing_as(self.path(table), "checkpointed"):
                handle.create_checkpoint()
        return int(handle.version())


def _commented(table: Table) -> pa.Schema:
    return pa.schema(
        [
            field.with_metadata({"comment": table.comments[field.name]})
            if field.name in table.comments
            else field.remove_metadata()
            for field in table.schema
        ]
    )


def _properties(versions: dict[str, int], metadata: str) -> CommitProperties:
    return CommitProperties(
        custom_metadata={"userMetadata": metadata},
        app_transactions=[DeltaTransaction(app_id, version) for app_id, version in versions.items()],
    )


def _check_protocol(table: Table, handle: DeltaTable) -> None:
    protocol = handle.protocol()
    found = (protocol.min_reader_version, protocol.min_writer_version)
    if found != PROTOCOL:
        raise LakeFailedError(
            f"{table.name} is at Delta protocol {found}, not {PROTOCOL}; another tool upgraded it: "
            "restore the table or write it anew"
        )
