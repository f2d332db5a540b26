"""The store on delta-spark: Spark commits what is large, delta-rs what the driver holds; one set of tables.

Reads, `create`, `append` and `tidy` are delta-rs's, on the same folders. `replace`, `optimize` and `vacuum` are
Spark's. One commit of delta-spark carries one transaction id, a replace has one fence per day; so it is two commits
(docs/decisions/0007-fences-on-spark.md):

- the claim, by delta-rs, records the fences of all days and changes no row;
- the data, by Spark, lands only with the table's next sequence. Spark skips a write whose sequence was taken
  without a word, so its token is looked for in the history afterwards.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from daybreak.errors import FenceRefusedError
from daybreak.windows import EPOCH
from lakehouse.engines.engine import Engine, StagedTable, first_line
from lakehouse.stores.conform import Conformed, check_staged, nulls, other_days
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.stores.delta_rs_reader import DeltaRsReader
from lakehouse.stores.fences import is_claimed, require_free, require_fresh, sequence_of
from lakehouse.stores.store import CommitConflictError, Transaction, described, sequence_id
from lakehouse.tables.registry import Table, partition_filter

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame

CONFLICT = re.compile(r"DELTA_CONCURRENT_\w+|Concurrent\w+Exception|DELTA_METADATA_CHANGED|MetadataChangedException")
OTHER_DAY = re.compile(r"- day : (-?\d+)")
NULL_COLUMN = re.compile(r"DELTA_NOT_NULL_CONSTRAINT_VIOLATED\W.*?column: `?(\w+)", re.DOTALL)


class DeltaSparkStore(DeltaRsReader):
    """`lakehouse.stores.store.Store` whose replaces, compactions and vacuums are committed by delta-spark."""

    def __init__(self, root: Path, retention: timedelta, engine: Engine) -> None:
        super().__init__(root)
        self.engine = engine
        self._delta_rs = DeltaRsStore(root, retention)
        self._session = threading.Lock()
        """Held while a setting of the session is changed for one statement."""

    def create(self, table: Table) -> None:
        """Make the table, empty, if it is not there: protocol 1/2, partitioned by day, comments set."""
        self._delta_rs.create(table)

    def widen(self, table: Table) -> None:
        """Add the columns that the registry has and a table of an older version lacks; its rows have nulls there."""
        self._delta_rs.widen(table)

    def append(
        self, table: Table, batches: pa.RecordBatchReader | pa.Table, transaction: Transaction | None = None
    ) -> int:
        """Append rows in one commit of delta-rs; see `DeltaRsStore.append`."""
        return self._delta_rs.append(table, batches, transaction)

    def replace(
        self, table: Table, first: date, last: date, rows: StagedTable | pa.Table, transaction: Transaction
    ) -> int:
        """Replace the days `first` to `last` with `rows` in one commit of Spark, claimed before.

        Raises:
            FenceRefusedError: a transaction version not above the recorded one, also one committed meanwhile.
            CheckFailedError: rows of another day, or that do not fit the table's schema.
            LakeFailedError: Spark failed, the path is not writable, or others kept committing.
        """
        days = (first, last)
        if isinstance(rows, StagedTable):
            check_staged(table, rows.files, days)
        else:
            rows = Conformed(table, rows, days).rows()
        self._delta_rs.configure(table)
        replacing = _Replace(table, days, rows, transaction)

        def attempt(handle: "DeltaTable") -> int:
            return self._replace(replacing, handle)

        return self._delta_rs.until_no_conflict(table, attempt)

    def optimize(self, table: Table, first: date, last: date, run_id: str | None = None) -> None:
        """Compact the small files of these days; no row changes."""
        if not self.exists(table):
            return
        self._delta_rs.configure(table)

        def attempt(handle: "DeltaTable") -> int:
            metadata = described(Transaction(run_id=run_id))
            with (
                self._failing_as(table, "compacted"),
                self._setting("spark.databricks.delta.commitInfo.userMetadata", metadata),
            ):
                self.engine.spark.sql(f"OPTIMIZE {self._quoted(table)} WHERE {partition_filter(first, last)}").collect()
            return int(handle.version())

        self._delta_rs.until_no_conflict(table, attempt)

    def tidy(self, table: Table, most_files: int, run_id: str | None = None) -> None:
        """Compact a table without days that has more files than that, and vacuum it; no row changes."""
        self._delta_rs.tidy(table, most_files, run_id)

    def vacuum(self, table: Table) -> int:
        """Delete files that no kept version needs; returns how many. Never younger than the retention."""
        if not self.exists(table):
            return 0
        self._delta_rs.configure(table)  # Spark keeps to the table's own retention, whatever the statement says
        before = self._file_count(table)
        with (
            self._failing_as(table, "vacuumed"),
            self._setting("spark.sql.sources.parallelPartitionDiscovery.parallelism", "4"),
        ):
            self.engine.spark.sql(f"VACUUM {self._quoted(table)}").collect()
        return before - self._file_count(table)

    def _replace(self, replacing: "_Replace", handle: "DeltaTable") -> int:
        table = replacing.table
        if replacing.needs_claim(handle):
            self._delta_rs.claim(table, handle, replacing.transaction)
            replacing.claimed()
            handle = self._delta_rs.writable(table)
        replacing.require_ours(handle)
        self._write(replacing, handle)
        for commit in self.commits_after(table, handle.version()):
            if commit.token == replacing.token:
                return commit.version
        raise CommitConflictError(f"{self.path(table)}: another replace came first; nothing was written, run again")

    def _write(self, replacing: "_Replace", handle: "DeltaTable") -> None:
        table = replacing.table
        with self._failing_as(table, "written", replacing.days):
            writer = (
                self._frame(table, replacing.rows)
                .write.format("delta")
                .mode("overwrite")
                .option("replaceWhere", partition_filter(*replacing.days))
                .option("txnAppId", sequence_id(table))
                .option("txnVersion", str(sequence_of(table, handle) + 1))
                .option("userMetadata", described(replacing.transaction, token=replacing.token))
            )
            writer.save(str(self.path(table).absolute()))

    def _frame(self, table: Table, rows: StagedTable | pa.Table) -> "DataFrame":
        if isinstance(rows, StagedTable):
            return self.engine.read(rows.files, table.schema)
        if not rows.num_rows:
            return self.engine.read([], table.schema)
        return self.engine.spark.createDataFrame(rows)

    @contextmanager
    def _failing_as(self, table: Table, what: str, days: tuple[date, date] | None = None) -> Iterator[None]:
        """Failures of Spark inside are ours, naming the path: a conflict, a refusal of rows, or plain failure."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        with self.engine.failing_as(f"{self.path(table)} being {what}"):
            try:
                yield
            except (PySparkException, Py4JError) as error:  # Delta's own conflicts come as the bare Java error
                text = str(error)
                if days and (found := NULL_COLUMN.search(text)):
                    raise nulls(table, found[1], "staged rows") from None
                if days and (found := OTHER_DAY.search(text)) and "DELTA_REPLACE_WHERE_MISMATCH" in text:
                    other = str((EPOCH + timedelta(days=int(found[1]))).date())
                    raise other_days(table, other, other, days) from None
                if CONFLICT.search(text):
                    raise CommitConflictError(
                        f"{self.path(table)}: another commit came first ({first_line(error)}); "
                        "nothing was written, run again"
                    ) from error
                raise

    @contextmanager
    def _setting(self, name: str, value: str) -> Iterator[None]:
        """A setting of the session for one statement."""
        with self._session:
            conf = self.engine.spark.conf
            before = conf.get(name, None)
            conf.set(name, value)
            try:
                yield
            finally:
                conf.unset(name) if before is None else conf.set(name, before)

    def _quoted(self, table: Table) -> str:
        return "delta.`" + str(self.path(table).absolute()).replace("`", "``") + "`"

    def _file_count(self, table: Table) -> int:
        return sum(1 for _ in self.path(table).rglob("*.parquet"))


class _Replace:
    """One replace on its way through its tries."""

    def __init__(
        self, table: Table, days: tuple[date, date], rows: StagedTable | pa.Table, transaction: Transaction
    ) -> None:
        self.table = table
        self.days = days
        self.rows = rows
        self.transaction = transaction
        self.token = uuid4().hex
        self._based_on = transaction.based_on
        self._holds_days = not transaction.versions

    def needs_claim(self, handle: "DeltaTable") -> bool:
        """Whether the days are not ours yet; a claim that this run left behind in a crash is taken up."""
        self._holds_days = self._holds_days or is_claimed(handle, self.transaction)
        if not self._holds_days:
            require_free(self.table, handle, self.transaction)
            require_fresh(self.table, handle, self._based_on)
        return not self._holds_days

    def claimed(self) -> None:
        """The claim was committed; it raised the sequence itself."""
        self._holds_days = True
        if self._based_on is not None:
            self._based_on += 1

    def require_ours(self, handle: "DeltaTable") -> None:
        """Passes while the claim is the last word on its days at this handle.

        Raises:
            FenceRefusedError: a newer run, or a twin of this one, came after the claim.
            StaleReadError: the rows derive from a state of the table that is gone.
        """
        require_free(self.table, handle, self.transaction, or_ours=True)
        if self.transaction.run_id and self.transaction.versions and not is_claimed(handle, self.transaction):
            raise FenceRefusedError(
                f"{self.table.name}: a twin of run {self.transaction.run_id} has replaced {self.days[0]} to "
                f"{self.days[1]} meanwhile; its result stays"
            )
        require_fresh(self.table, handle, self._based_on)
