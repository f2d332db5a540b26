"""Sail, the embedded engine: a child process that speaks Spark Connect and dies with its parent.

Jobs use only forms that it computes right; a recount guards them. Sail writes staging
and nothing else; `lakehouse.delta_rs` commits what it staged.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from daybreak.errors import CheckFailedError, LakeFailedError
from lakehouse.tables import SPARK_TYPES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARKER = "_staged.json"
START_SECONDS = 30.0
SESSION_SECONDS = 7 * 86_400

CHILD = """
import ctypes, os, runpy, signal, sys
parent = int(sys.argv[1])
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != parent:
    sys.exit("the parent is gone")
sys.argv[:] = ["pysail", *sys.argv[2:]]
runpy.run_module("pysail", run_name="__main__", alter_sys=True)
"""
"""Asks for its own death with the parent's before Sail starts; the parent may have died by then."""


@dataclass(frozen=True)
class StagedTable:
    """Rows of one table in Parquet files, not yet committed. The marker beside them says they are whole."""

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


def load_staged(table: Table, folder: Path) -> StagedTable | None:
    """What an earlier step staged in `folder`; None when it never finished."""
    try:
        found = json.loads((folder / MARKER).read_text())
    except FileNotFoundError:
        return None
    return StagedTable(table, folder, found["rows"], tuple(str(folder / name) for name in found["files"]))


class SailEngine:
    """One Sail process and one session on it; a context manager.

    Enter it on a thread that lives as long as the engine: Linux ties the child's death to that thread.
    """

    def __init__(self, home: Path, memory_pool: int) -> None:
        self.folder = home / "sail"
        self.memory_pool = memory_pool
        self._child: subprocess.Popen[bytes] | None = None
        self._spark: SparkSession | None = None
        self._stopping = False

    def __enter__(self) -> Self:
        try:
            self._start()
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
    def log(self) -> Path:
        """Sail's own log."""
        return self.folder / "sail.log"

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._running().pid

    @property
    def spark(self) -> "SparkSession":
        """The session. Actions belong into `stage`, `one_row` and `rows`, which name what failed."""
        if self._spark is None:
            raise LakeFailedError("the Sail engine is not running; enter it with `with` first")
        return self._spark

    def read(self, files: Sequence[str], schema: pa.Schema) -> "DataFrame":
        """The rows of these Parquet files, columns as in `schema`.

        Delta's data files lack the partition column; `day` is then what their folder says.
        """
        if not files:
            return self.spark.createDataFrame([], _spark_schema(schema))
        inside = pq.read_schema(files[0]).names
        if "day" in inside or "day" not in schema.names:
            return self.spark.read.schema(_spark_schema(schema)).parquet(*files)
        return self._read_partitioned(files, schema)

    def stage(self, frame: "DataFrame", table: Table, folder: Path) -> StagedTable:
        """Write the frame's rows into `folder`, emptied first; whole and marked, or an error.

        Raises:
            CheckFailedError: columns or types that are not the table's.
            LakeFailedError: the engine failed or died, the disk is full.
        """
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with self.failing_as(f"staging {table.name} in {folder}"):
            frame.write.mode("error").parquet(str(folder))
        folder.mkdir(exist_ok=True)
        files, rows = [], 0
        for file in sorted(folder.glob("*.parquet")):
            found = pq.read_metadata(file)
            if found.num_rows:
                _check_schema(table, file)
                rows += found.num_rows
                files.append(file.name)
        marker = folder / f"{MARKER}.new"
        marker.write_text(json.dumps({"table": table.name, "rows": rows, "files": files}))
        marker.rename(folder / MARKER)
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

    def stop(self) -> None:
        """End the session and the child; the files it spilled are removed."""
        self._stopping = True
        child, spark, self._child, self._spark = self._child, self._spark, None, None
        if spark is not None:
            spark.release_session_on_close = False  # the server goes as a whole; it may be dead already
            spark.stop()
        if child is None:
            return
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        shutil.rmtree(self._spill(os.getpid()), ignore_errors=True)

    def _start(self) -> None:
        self._stopping = False
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sweep()
        for _ in range(3):
            port = _free_port()
            self._child = self._launch(port)
            if self._answers(port):
                self._spark = _session(port)
                return
        raise LakeFailedError(f"Sail does not start: {self._log_tail()}; its log is {self.log}")

    def _launch(self, port: int) -> subprocess.Popen[bytes]:
        spill = self._spill(os.getpid())
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SAIL_")}
        environ |= {
            "TZ": "UTC",
            "RUST_LOG": "warn",
            "SAIL_MODE": "local",
            "SAIL_SPARK__SESSION_TIMEOUT_SECS": str(SESSION_SECONDS),
            "SAIL_RUNTIME__MEMORY_POOL__TYPE": "fair",
            "SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE": str(self.memory_pool),
            "SAIL_RUNTIME__TEMPORARY_FILES__PATHS": json.dumps([str(spill)]),
        }
        spill.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", CHILD, str(os.getpid()), "spark", "server"]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*command, "--ip", "127.0.0.1", "--port", str(port)],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _answers(self, port: int) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._running().poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
            except OSError:
                time.sleep(0.01)
            else:
                return self._running().poll() is None
        return False

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise LakeFailedError("the Sail engine is not running; enter it with `with` first")
        return self._child

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

    @contextmanager
    def failing_as(self, what: str) -> Iterator[None]:
        """Failures of the engine inside become ours, the child's death told apart. Building a frame can fail too."""
        from grpc import RpcError
        from pyspark.errors import PySparkException

        child = self._running()
        done = threading.Event()
        threading.Thread(target=self._interrupt_when_dead, args=(child, done), daemon=True).start()
        try:
            yield
        except (PySparkException, RpcError, ValueError) as error:
            code = _dead_within(child, 0.5)
            if code is not None:
                raise LakeFailedError(
                    f"Sail died during {what} ({_how(code)}); run again, and give it memory if the system "
                    f"ended it (night.memory_pool is {self.memory_pool} bytes); its log is {self.log}"
                ) from None
            if not isinstance(error, PySparkException | RpcError):
                raise
            first = (str(error) or type(error).__name__).splitlines()[0]
            raise LakeFailedError(f"Sail failed during {what}: {first}; its log is {self.log}") from error
        finally:
            done.set()

    def _interrupt_when_dead(self, child: subprocess.Popen[bytes], done: threading.Event) -> None:
        """Closes the client's channel when the child dies, so that no call waits for an answer."""
        while not done.wait(0.1):
            if child.poll() is not None:
                if self._spark is not None and not self._stopping:
                    self._spark.client._channel.close()
                return

    def _spill(self, pid: int) -> Path:
        return self.folder / f"spill-{pid}"

    def _sweep(self) -> None:
        """Remove what engines of dead processes spilled."""
        for left in self.folder.glob("spill-*"):
            pid = int(left.name.removeprefix("spill-"))
            if pid != os.getpid() and not Path(f"/proc/{pid}").exists():
                shutil.rmtree(left, ignore_errors=True)

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"


def _session(port: int) -> "SparkSession":
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy

    url = f"sc://127.0.0.1:{port}"
    spark = SparkSession.builder.remote(url).config("spark.sql.session.timeZone", "UTC").create()
    spark.client.set_retry_policies([DefaultPolicy(max_retries=2, initial_backoff=50, max_backoff=100)])
    return spark


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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


def _dead_within(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _how(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
