"""Reading tables with delta-rs: versions, files, rows and commits, whichever library wrote them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
from deltalake import DeltaTable

from daybreak.errors import LakeFailedError
from lakehouse.stores.failures import failing_as
from lakehouse.stores.store import Commit, commit_of, sequence_id
from lakehouse.stores.transactions import recorded_versions
from lakehouse.tables.registry import Table


class DeltaRsReader:
    """`lakehouse.stores.store.StoreReader` over delta-rs.

    Opens a table anew for every call: it never serves old state.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, table: Table) -> Path:
        """The folder of the table."""
        return self.root / table.name

    def exists(self, table: Table) -> bool:
        """Whether the table is there."""
        with failing_as(self.path(table), "opened"):
            return bool(DeltaTable.is_deltatable(str(self.path(table))))

    def version(self, table: Table) -> int:
        """The newest version; -1 when the table does not exist."""
        handle = self._open(table)
        return -1 if handle is None else int(handle.version())

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
        with failing_as(self.path(table), "read"):
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

    def _entries(self, table: Table, version: int, first: date, last: date) -> Iterator[tuple[str, date, int | None]]:
        handle = self._open(table, version) if version >= 0 else None
        return iter(()) if handle is None else _files_of(handle, first, last)

    def _open(self, table: Table, version: int | None = None) -> DeltaTable | None:
        if not self.exists(table):
            return None
        with failing_as(self.path(table), "opened" if version is None else f"opened at version {version}"):
            return DeltaTable(str(self.path(table)), version=version)


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
