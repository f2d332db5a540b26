"""What every engine does for the jobs: read pinned files, stage frames, answer small queries.

`sail`, `spark` and `connect` beside it say how a session comes to be; `lakehouse.opening` picks one by the settings.
"""

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from daybreak.errors import CheckFailedError, LakeFailedError
from lakehouse.engines.scratch import STAGING_HINT, writing
from lakehouse.tables.registry import SPARK_TYPES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""pyspark's own switch: `pyspark.sql.functions` builds columns for Connect while it is set."""


@dataclass(frozen=True)
class StagedTable:
    """Rows of one table in Parquet files, whole and not yet committed."""

    table: Table
    folder: Path
    rows: int
    files: tuple[str, ...]

    def reader(self, batch_rows: int = 131_072) -> pa.RecordBatchReader:
        """The rows, streamed, columns in the table's order."""
        if not self.files:
            return self.table.schema.empty_table().to_reader()
        scanner = ds.dataset(list(self.files), format="parquet").scanner(
            columns=self.table.schema.names, batch_size=batch_rows, batch_readahead=2, fragment_readahead=1
        )
        return scanner.to_reader()


class Engine(ABC):
    """One session of an engine, started on first use; a context manager that starts it at once."""

    name: ClassVar[str]
    speaks_connect: ClassVar[bool]

    def __init__(self) -> None:
        self._spark: SparkSession | None = None

    def __enter__(self) -> Self:
        try:
            _ = self.spark
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def spark(self) -> "SparkSession":
        """The session. Actions belong into `stage`, `one_row` and `rows`, which name what failed."""
        if self._spark is None:
            self.activate()
            self._spark = self._start()
        return self._spark

    def activate(self) -> None:
        """Make `pyspark.sql.functions` build for this engine; needed where one process holds two kinds."""
        if self.speaks_connect:
            os.environ[CONNECT_MODE] = "1"
        else:
            os.environ.pop(CONNECT_MODE, None)

    def stop(self) -> None:
        """End the session and what was started for it. It may be started again."""
        spark, self._spark = self._spark, None
        self._stop(spark)

    @abstractmethod
    def _start(self) -> "SparkSession":
        """A new session."""

    @abstractmethod
    def _stop(self, spark: "SparkSession | None") -> None:
        """End the session, if any, and whatever was started for it."""

    @abstractmethod
    def failing_as(self, what: str) -> AbstractContextManager[None]:
        """Failures of the engine inside become LakeFailedError. Building a frame can fail too."""

    def read(self, files: Sequence[str], schema: pa.Schema) -> "DataFrame":
        """The rows of these Parquet files, columns as in `schema`.

        Delta's data files lack the partition column; `day` is then what their folder says.
        """
        if not files:
            return self._empty(schema)
        inside = pq.read_schema(files[0]).names
        if "day" in inside or "day" not in schema.names:
            return self.spark.read.schema(_spark_schema(schema)).parquet(*files)
        return self._read_partitioned(files, schema)

    def stage(self, frame: "DataFrame", table: Table, folder: Path) -> StagedTable:
        """Write the frame's rows into `folder`, emptied first: all of them, or an error.

        Raises:
            CheckFailedError: columns or types that are not the table's.
            LakeFailedError: the engine failed or died, the disk is full.
        """
        shutil.rmtree(folder, ignore_errors=True)
        with writing(folder, STAGING_HINT):
            folder.parent.mkdir(parents=True, exist_ok=True)
        with self.failing_as(f"staging {table.name} in {folder}"):
            frame.write.mode("error").parquet(str(folder))
        written = sorted(folder.glob("*.parquet"))
        if not written and self.name != "sail":  # Spark writes a file even for no rows
            raise LakeFailedError(
                f"{self.name} staged {table.name} in a {folder} that is not the one of this machine; "
                "set lake.staging (DAYBREAK_LAKE__STAGING) to a folder that this machine and all workers share"
            )
        with writing(folder, STAGING_HINT):
            folder.mkdir(exist_ok=True)  # Sail makes none for no rows
        files, rows = [], 0
        for file in written:
            found = pq.read_metadata(file)
            if found.num_rows:
                _check_schema(table, file)
                rows += found.num_rows
                files.append(file.name)
        return StagedTable(table, folder, rows, tuple(str(folder / name) for name in files))

    def rows(self, frame: "DataFrame") -> pa.Table:
        """The frame's rows in memory; aggregate first."""
        with self.failing_as("a query"):
            return frame.toArrow()

    def one_row(self, frame: "DataFrame") -> dict[str, Any]:
        """The only row of a frame that has one."""
        found = self.rows(frame).to_pylist()
        if len(found) != 1:
            raise LakeFailedError(f"a query gave {len(found)} rows where one was due; this is a bug of a job")
        return dict(found[0])

    def _empty(self, schema: pa.Schema) -> "DataFrame":
        """No rows. On a cluster `createDataFrame([], …)` would start a Python on the workers to make none."""
        from pyspark.sql import functions as F

        nothing = self.spark.range(0)  # first: columns of classic Spark need a session
        columns = [F.lit(None).cast(_spark_type(field.type)).alias(field.name) for field in schema]
        return nothing.select(*columns)

    def _read_partitioned(self, files: Sequence[str], schema: pa.Schema) -> "DataFrame":
        from pyspark.sql import functions as F

        bare = _spark_schema(pa.schema([field for field in schema if field.name != "day"]))
        if "occurred_at" in schema.names:
            frame = self.spark.read.schema(bare).parquet(*files)
            return frame.withColumn("day", F.to_date("occurred_at")).select(*schema.names)
        by_day: dict[str, list[str]] = {}
        for file in files:
            by_day.setdefault(Path(file).parent.name.removeprefix("day="), []).append(file)
        frames = [
            self.spark.read.schema(bare).parquet(*part).withColumn("day", F.lit(day).cast("date"))
            for day, part in sorted(by_day.items())
        ]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        return whole.select(*schema.names)


def _spark_schema(schema: pa.Schema) -> str:
    return ", ".join(f"`{field.name}` {_spark_type(field.type)}" for field in schema)


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{_spark_type(kind.key_type)},{_spark_type(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return SPARK_TYPES[kind]


def _check_schema(table: Table, file: Path) -> None:
    found = {field.name: field.type for field in pq.read_schema(file)}
    due = {field.name: field.type for field in table.schema}
    if found != due:
        wrong = sorted(name for name in {*found, *due} if found.get(name) != due.get(name))
        raise CheckFailedError(
            f"{table.name}: staged columns {wrong} are not as the registry has them "
            f"({[str(found.get(name)) for name in wrong]}); mend the job that stages it"
        )


def first_line(error: Exception) -> str:
    """The first line of an error's text, or its type."""
    return (str(error) or type(error).__name__).splitlines()[0]
