"""The store on delta-rs: Delta tables below one folder, written by one process at a time per commit.

Guarantees, held by `tests/contracts/test_store.py`:

- a commit shows whole or not at all, and only the days it names change;
- a commit whose transaction version is not above the recorded one is refused: the version is looked up on
  the very handle that is written with, and delta-rs itself refuses a twin committed in between;
- tables stay at protocol 1/2, so that Spark, Sail, DuckDB and delta-rs all read them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake import Transaction as DeltaTransaction
from deltalake.exceptions import CommitFailedError, DeltaError

from daybreak.errors import CheckFailedError, FenceRefusedError, LakeFailedError
from lakehouse.store import Commit, Transaction
from lakehouse.tables import Table, partition_filter

PROTOCOL = (1, 2)
NO_TRANSACTION = Transaction()


class DeltaRsStore:
    """`lakehouse.store.Store` over delta-rs. Opens a table anew for every call: it never serves old state."""

    def __init__(self, root: Path, retention: timedelta = timedelta(days=30)) -> None:
        self.root = root
        self.retention = retention

    def path(self, table: Table) -> Path:
        """The folder of the table."""
        return self.root / table.name

    def create(self, table: Table) -> None:
        """Make the table, empty, if it is not there: protocol 1/2, partitioned by day, comments set."""
        if self.exists(table):
            return
        kept = f"interval {max(1, self.retention // timedelta(hours=1))} hours"
        with self._failing_as(table, "made"):
            self.path(table).mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                str(self.path(table)),
                schema=_commented(table),
                mode="ignore",
                partition_by=list(table.partition_by) or None,
                name=table.name,
                description=table.comment,
                configuration={
                    "delta.logRetentionDuration": kept,
                    "delta.deletedFileRetentionDuration": kept,
                },
            )

    def exists(self, table: Table) -> bool:
        """Whether the table is there."""
        return bool(DeltaTable.is_deltatable(str(self.path(table))))

    def version(self, table: Table) -> int:
        """The newest version; -1 when the table does not exist."""
        handle = self._open(table)
        return -1 if handle is None else int(handle.version())

    def append(
        self, table: Table, batches: pa.RecordBatchReader | pa.Table, transaction: Transaction | None = None
    ) -> int:
        """Append rows in one commit, creating the table if need be; returns the new version.

        Raises:
            FenceRefusedError: a transaction version not above the recorded one.
            CheckFailedError: rows that do not fit the table's schema.
            LakeFailedError: not writable, disk full.
        """
        rows = _Conformed(table, batches)
        return self._commit(table, rows, transaction or NO_TRANSACTION, mode="append")

    def replace(
        self,
        table: Table,
        first: date,
        last: date,
        batches: pa.RecordBatchReader | pa.Table,
        transaction: Transaction,
    ) -> int:
        """Replace the days `first` to `last` in one commit with `batches` (streamed; empty clears them).

        Raises:
            FenceRefusedError: a transaction version not above the recorded one.
            CheckFailedError: rows of another day, or that do not fit the table's schema.
            LakeFailedError: not writable, disk full.
        """
        rows = _Conformed(table, batches, (first, last))
        return self._commit(table, rows, transaction, mode="overwrite", predicate=partition_filter(first, last))

    def transaction_version(self, table: Table, app_id: str) -> int | None:
        """The last recorded version of `app_id`, None if never seen or no table."""
        return self.transaction_versions(table, [app_id]).get(app_id)

    def transaction_versions(self, table: Table, app_ids: Iterable[str]) -> dict[str, int]:
        """The last recorded version of each id that was ever seen; opens the table once."""
        handle = self._open(table)
        if handle is None:
            return {}
        found = ((app_id, handle.transaction_version(app_id)) for app_id in app_ids)
        return {app_id: version for app_id, version in found if version is not None}

    def files(self, table: Table, version: int, first: date, last: date) -> list[str]:
        """Absolute paths of the Parquet files of these days at that version; opens only the log."""
        root = self.path(table).absolute()
        return sorted(str(root / unquote(path)) for path, _, _ in self._entries(table, version, first, last))

    def row_counts(self, table: Table, version: int, first: date, last: date) -> dict[date, int]:
        """Rows per day at that version, from the log alone; days without rows are absent."""
        counts: dict[date, int] = {}
        for path, day, rows in self._entries(table, version, first, last):
            if rows is None:
                raise LakeFailedError(f"{self.path(table) / path} has no row count in the log; write that day anew")
            if rows:
                counts[day] = counts.get(day, 0) + rows
        return dict(sorted(counts.items()))

    def dataset(self, table: Table, version: int | None = None) -> ds.Dataset:
        """The table at a version (newest: None), `day` included as a column; empty when there is no table."""
        handle = self._open(table, version)
        if handle is None:
            return ds.dataset(table.schema.empty_table())
        return handle.to_pyarrow_dataset(schema=table.schema.remove_metadata())

    def read(self, table: Table, version: int | None = None, days: Sequence[date] | None = None) -> pa.Table:
        """Rows of small tables, in memory, schema order."""
        chosen = None if days is None else pc.field("day").isin(pa.array(days, pa.date32()))
        with self._failing_as(table, "read"):
            rows = self.dataset(table, version).to_table(columns=table.schema.names, filter=chosen)
        return rows.cast(table.schema)

    def commits_after(self, table: Table, version: int) -> list[Commit]:
        """Each commit newer than `version`, oldest first."""
        handle = self._open(table)
        newer = 0 if handle is None else handle.version() - version
        if handle is None or newer <= 0:
            return []
        commits = (commit for commit in handle.history(limit=newer) if commit["version"] > version)
        return sorted((_described(commit) for commit in commits), key=lambda commit: commit.version)

    def optimize(self, table: Table, first: date, last: date, run_id: str | None = None) -> None:
        """Compact the small files of these days; no row changes."""
        handle = self._open(table)
        if handle is None:
            return
        with self._failing_as(table, "compacted"):
            handle.optimize.compact(
                partition_filters=[("day", ">=", first.isoformat()), ("day", "<=", last.isoformat())],
                commit_properties=_properties(Transaction(run_id=run_id)),
            )

    def vacuum(self, table: Table) -> int:
        """Delete files that no kept version needs; returns how many. Never younger than the retention."""
        handle = self._open(table)
        if handle is None:
            return 0
        with self._failing_as(table, "vacuumed"):
            return len(
                handle.vacuum(
                    retention_hours=max(1, self.retention // timedelta(hours=1)),
                    dry_run=False,
                    enforce_retention_duration=True,
                )
            )

    def _commit(self, table: Table, rows: "_Conformed", transaction: Transaction, **how: Any) -> int:
        self.create(table)
        handle = self._open(table)
        if handle is None:
            raise LakeFailedError(f"{self.path(table)} vanished while it was written; run again")
        _check_protocol(table, handle)
        for app_id, version in transaction.versions.items():
            recorded = handle.transaction_version(app_id)
            if recorded is not None and recorded >= version:
                raise FenceRefusedError(
                    f"{table.name}: {app_id} is at version {recorded}, so version {version} is refused; "
                    "a newer run's result stays"
                )
        with self._failing_as(table, "written", lambda: rows.failure):
            write_deltalake(handle, rows.reader(), commit_properties=_properties(transaction), **how)
        return int(handle.version())

    def _entries(self, table: Table, version: int, first: date, last: date) -> Iterator[tuple[str, date, int | None]]:
        handle = self._open(table, version) if version >= 0 else None
        if handle is None:
            return
        actions = pa.table(handle.get_add_actions(flatten=True))
        days = actions["partition.day"].cast(pa.date32())
        inside = pc.and_(
            pc.greater_equal(days, pa.scalar(first, pa.date32())),
            pc.less_equal(days, pa.scalar(last, pa.date32())),
        )
        chosen = actions.select(["path", "partition.day", "num_records"]).filter(inside)
        yield from zip(*(column.to_pylist() for column in chosen.columns), strict=True)

    def _open(self, table: Table, version: int | None = None, *, without_files: bool = False) -> DeltaTable | None:
        if not self.exists(table):
            return None
        with self._failing_as(table, "opened" if version is None else f"opened at version {version}"):
            return DeltaTable(str(self.path(table)), version=version)

    @contextmanager
    def _failing_as(
        self, table: Table, what: str, cause: Callable[[], Exception | None] = lambda: None
    ) -> Iterator[None]:
        """Failures inside are ours, naming the path; `cause` is what the rows' own reader raised, if any."""
        try:
            yield
        except CommitFailedError as error:
            raise FenceRefusedError(
                f"{self.path(table)}: another run was first ({_first_line(error)}); its result stays"
            ) from error
        except (DeltaError, OSError, pa.ArrowException, ValueError) as error:
            if (failure := cause()) is not None:
                raise failure from None
            raise LakeFailedError(
                f"{self.path(table)} cannot be {what}: {_first_line(error)}; "
                "check the path, its permissions and the free space"
            ) from error


class _Conformed:
    """Batches in the table's exact schema. Keeps what they refuse: delta-rs wraps a reader's errors."""

    def __init__(
        self,
        table: Table,
        batches: pa.RecordBatchReader | pa.Table,
        days: tuple[date, date] | None = None,
    ) -> None:
        self.table = table
        self.schema = table.schema.remove_metadata()
        self.batches = batches.to_reader() if isinstance(batches, pa.Table) else batches
        self.days = days
        self.failure: CheckFailedError | None = None

    def reader(self) -> pa.RecordBatchReader:
        """The stream to write; `failure` says why it broke off."""
        return pa.RecordBatchReader.from_batches(self.schema, self._checked())

    def _checked(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            try:
                yield self._conform(batch)
            except CheckFailedError as error:
                self.failure = error
                raise

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if set(batch.schema.names) != set(self.schema.names):
            raise CheckFailedError(
                f"{self.table.name}: rows have columns {batch.schema.names}, not {self.schema.names}; "
                "mend the job that staged them"
            )
        columns = []
        for field in self.schema:
            try:
                column = batch.column(field.name).cast(field.type)
            except pa.ArrowInvalid as error:
                raise CheckFailedError(
                    f"{self.table.name}.{field.name} is no {field.type}: {_first_line(error)}; "
                    "mend the job that staged it"
                ) from None
            if column.null_count and not field.nullable:
                raise CheckFailedError(
                    f"{self.table.name}.{field.name} is null in {column.null_count} rows; mend the job that staged it"
                )
            columns.append(column)
        conformed = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        self._check_days(conformed)
        return conformed

    def _check_days(self, batch: pa.RecordBatch) -> None:
        if self.days is None or not batch.num_rows:
            return
        span = pc.min_max(batch.column("day")).as_py()
        if span["min"] < self.days[0] or span["max"] > self.days[1]:
            raise CheckFailedError(
                f"{self.table.name}: rows of {span['min']} to {span['max']} were staged for "
                f"{self.days[0]} to {self.days[1]}; mend the job that staged them"
            )


def _commented(table: Table) -> pa.Schema:
    return pa.schema(
        [
            field.with_metadata({"comment": table.comments[field.name]})
            if field.name in table.comments
            else field.remove_metadata()
            for field in table.schema
        ]
    )


def _properties(transaction: Transaction) -> CommitProperties:
    said = {"run_id": transaction.run_id} if transaction.run_id else {}
    if transaction.days:
        said["days"] = "/".join(day.isoformat() for day in transaction.days)
    return CommitProperties(
        custom_metadata=said or None,
        app_transactions=[DeltaTransaction(app_id, version) for app_id, version in transaction.versions.items()],
    )


def _described(commit: dict[str, Any]) -> Commit:
    first, _, last = str(commit.get("days", "")).partition("/")
    days = (date.fromisoformat(first), date.fromisoformat(last)) if last else None
    return Commit(commit["version"], commit["operation"], commit.get("run_id"), days)


def _check_protocol(table: Table, handle: DeltaTable) -> None:
    protocol = handle.protocol()
    found = (protocol.min_reader_version, protocol.min_writer_version)
    if found != PROTOCOL:
        raise LakeFailedError(
            f"{table.name} is at Delta protocol {found}, not {PROTOCOL}; another tool upgraded it: "
            "restore the table or write it anew"
        )


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
