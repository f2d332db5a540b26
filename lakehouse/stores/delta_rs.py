"""The store on delta-rs: Delta tables below one folder, written by one process at a time per commit.

Guarantees, held by `tests/contracts/test_store.py` and `test_store_concurrency.py`:

- a commit shows whole or not at all, and only the days it names change;
- a commit whose transaction version is not above the recorded one is refused: the version is looked up on
  the very handle that is written with, and delta-rs itself refuses a twin committed in between;
- a replace that meets another commit on its way looks at its fences anew and tries again with the same rows;
- tables stay at protocol 1/2, so that Spark, Sail, DuckDB and delta-rs all read them.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalake import Transaction as DeltaTransaction
from deltalake.exceptions import CommitFailedError, DeltaError

from daybreak.errors import LakeFailedError
from lakehouse.engines.engine import StagedTable, first_line
from lakehouse.stores.conform import Conformed, check_staged
from lakehouse.stores.fences import is_claimed, require_free, require_fresh, sequence_of
from lakehouse.stores.store import Commit, CommitConflictError, Transaction, commit_of, described, sequence_id
from lakehouse.stores.transactions import recorded_versions
from lakehouse.tables.registry import Table, partition_filter

PROTOCOL = (1, 2)
TRIES = 10
"""Of a commit that meets others; one of them lands each time, so that many writers at once all come through."""
WAIT_SECONDS = 0.02
LONG_COMMIT = 1000
"""A commit about more days than this is followed by a checkpoint: every reader would parse its text otherwise."""
OF_THE_DISK = re.compile(r"generic \w+ error|os error|object ?store|permission|no space", re.IGNORECASE)
"""What delta-rs says in a failed commit when the storage failed it; otherwise another commit did."""


class DeltaRsStore:
    """`lakehouse.stores.store.Store` over delta-rs. Opens a table anew for every call: it never serves old state."""

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
        with self._failing_as(table, "made"):
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
                with self._failing_as(table, "altered"):
                    handle.alter.add_columns(Schema.from_arrow(pa.schema(missing)).fields)
            return int(handle.version())

        self.until_no_conflict(table, attempt)

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

    def sequence(self, table: Table) -> int:
        """How often days of the table were replaced, claims included."""
        return self.transaction_version(table, sequence_id(table)) or 0

    def transaction_version(self, table: Table, app_id: str) -> int | None:
        """The last recorded version of `app_id`, None if never seen or no table."""
        return self.transaction_versions(table, [app_id]).get(app_id)

    def transaction_versions(self, table: Table, app_ids: Iterable[str]) -> dict[str, int]:
        """The last recorded version of each id that was ever seen; opens the table once."""
        handle = self._open(table)
        return {} if handle is None else recorded_versions(handle, list(app_ids))

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
        # not handle.to_pyarrow_dataset: its files are read through Python, and a process that ends while Arrow's
        # threads are in there is aborted; and it makes an expression of every file's statistics
        schema, root, local = table.schema.remove_metadata(), self.path(table).absolute(), fs.LocalFileSystem()
        parquet = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True))
        if not table.partition_by:
            paths = pa.table(handle.get_add_actions())["path"].to_pylist()
            fragments = [parquet.make_fragment(str(root / unquote(path)), local) for path in paths]
        else:
            fragments = [
                parquet.make_fragment(str(root / unquote(path)), local, pc.field("day") == pa.scalar(day, pa.date32()))
                for path, day, _ in _files_of(handle)
            ]
        return ds.FileSystemDataset(fragments, schema, parquet, local)

    def read(self, table: Table, version: int | None = None, days: Sequence[date] | None = None) -> pa.Table:
        """Rows of small tables, in memory, schema order."""
        chosen = None if days is None else pc.field("day").isin(pa.array(days, pa.date32()))
        with self._failing_as(table, "read"):
            rows = self.dataset(table, version).to_table(columns=table.schema.names, filter=chosen)
        return rows.cast(table.schema)

    def version_at(self, table: Table, instant: datetime) -> int:
        """The newest version that was committed by then; -1 when there was none."""
        handle = self._open(table)
        commits = handle.history() if handle is not None else []
        return max((each["version"] for each in commits if each["timestamp"] <= instant.timestamp() * 1000), default=-1)

    def commits_after(self, table: Table, version: int) -> list[Commit]:
        """Each commit newer than `version`, oldest first."""
        handle = self._open(table)
        newer = 0 if handle is None else handle.version() - version
        if handle is None or newer <= 0:
            return []
        commits = (commit for commit in handle.history(limit=newer) if commit["version"] > version)
        return sorted((commit_of(commit) for commit in commits), key=lambda commit: commit.version)

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
            with self._failing_as(table, "compacted"):
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
        with self._failing_as(table, "vacuumed"):
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
                with self._failing_as(table, "altered"):
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
        self, table: Table, handle: DeltaTable, rows: Conformed, versions: dict[str, int], said: str, **how: Any
    ) -> int:
        with self._failing_as(table, "written", lambda: rows.failure):
            write_deltalake(handle, rows.reader(), commit_properties=_properties(versions, said), **how)
        if len(versions) > LONG_COMMIT:
            with self._failing_as(table, "checkpointed"):
                handle.create_checkpoint()
        return int(handle.version())

    def _entries(self, table: Table, version: int, first: date, last: date) -> Iterator[tuple[str, date, int | None]]:
        handle = self._open(table, version) if version >= 0 else None
        return iter(()) if handle is None else _files_of(handle, first, last)

    def _open(self, table: Table, version: int | None = None) -> DeltaTable | None:
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
        except (DeltaError, OSError, pa.ArrowException, ValueError) as error:
            if (failure := cause()) is not None:
                raise failure from None
            if isinstance(error, CommitFailedError) and not OF_THE_DISK.search(str(error)):
                raise CommitConflictError(
                    f"{self.path(table)}: another commit came first ({first_line(error)}); "
                    "nothing was written, run again"
                ) from error
            raise LakeFailedError(
                f"{self.path(table)} cannot be {what}: {first_line(error)}; "
                "check the path, its permissions and the free space"
            ) from error


def _files_of(
    handle: DeltaTable, first: date = date.min, last: date = date.max
) -> Iterator[tuple[str, date, int | None]]:
    """(path, day, rows) of each file of these days."""
    actions = pa.table(handle.get_add_actions(flatten=True))
    days = actions["partition.day"].cast(pa.date32())
    inside = pc.and_(
        pc.greater_equal(days, pa.scalar(first, pa.date32())),
        pc.less_equal(days, pa.scalar(last, pa.date32())),
    )
    chosen = actions.select(["path", "partition.day", "num_records"]).filter(inside)
    yield from zip(*(column.to_pylist() for column in chosen.columns), strict=True)


def _commented(table: Table) -> pa.Schema:
    return pa.schema(
        [
            field.with_metadata({"comment": table.comments[field.name]})
            if field.name in table.comments
            else field.remove_metadata()
            for field in table.schema
        ]
    )


def _properties(versions: dict[str, int], said: str) -> CommitProperties:
    return CommitProperties(
        custom_metadata={"userMetadata": said},
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
