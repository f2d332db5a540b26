"""Sail, the embedded engine: a child process that speaks Spark Connect and dies with its parent.

Jobs use only forms that it computes right; a recount guards them. Sail writes staging
and nothing else; `lakehouse.stores.delta_rs` commits what it staged.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from daybreak.errors import LakeFailedError
from lakehouse.engines.engine import Engine, first_line
from lakehouse.engines.scratch import Scratch, rotated, writing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_SECONDS = 30.0
SESSION_SECONDS = 7 * 86_400

CHILD = """
import ctypes, os, resource, runpy, signal, sys
parent = int(sys.argv[1])
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
if os.getppid() != parent:
    sys.exit("the parent is gone")
sys.argv[:] = ["pysail", *sys.argv[2:]]
runpy.run_module("pysail", run_name="__main__", alter_sys=True)
"""
"""Asks for its own death with the parent's before Sail starts; the parent may have died by then.

Takes all the open files it may have: Sail opens every file of a scan at once, and a long history is one a day.
"""


class SailEngine(Engine):
    """One Sail process and one session on it.

    Start it on a thread that lives as long as the engine: Linux ties the child's death to that thread.
    """

    name = "sail"
    speaks_connect = True

    def __init__(self, home: Path, memory_pool: int) -> None:
        super().__init__()
        self.folder = home / "sail"
        self.memory_pool = memory_pool
        self.scratch = Scratch(self.folder / "tmp")
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = False

    @property
    def log(self) -> Path:
        """Sail's own log."""
        return self.folder / "sail.log"

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._running().pid

    def _start(self) -> "SparkSession":
        rotated(self.log)
        for _ in range(3):
            self._stopping = False
            port = _free_port()
            self._child = self._launch(port)
            if self._answers(port):
                return _session(port)
            self._stop(None)
        raise LakeFailedError(f"Sail does not start: {self._log_tail()}; its log is {self.log}")

    def _stop(self, spark: "SparkSession | None") -> None:
        """End the session and the child; the files it spilled are removed."""
        self._stopping = True
        child, self._child = self._child, None
        if spark is not None:
            spark.release_session_on_close = False  # the server goes as a whole; it may be dead already
            spark.stop()
        if child is None:
            return
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        self.scratch.close()

    def _launch(self, port: int) -> subprocess.Popen[bytes]:
        spill = self.scratch.open()
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
        command = [sys.executable, "-c", CHILD, str(os.getpid()), "spark", "server"]
        with writing(self.log), self.log.open("ab") as log:
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

    @contextmanager
    def failing_as(self, what: str) -> Iterator[None]:
        """Failures of the engine inside become ours, the child's death by itself. Building a frame can fail too."""
        from grpc import RpcError
        from pyspark.errors import PySparkException

        _ = self.spark  # started by now: a failure to start names itself
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
            raise LakeFailedError(f"Sail failed during {what}: {first_line(error)}; its log is {self.log}") from error
        finally:
            done.set()

    def _interrupt_when_dead(self, child: subprocess.Popen[bytes], done: threading.Event) -> None:
        """Closes the client's channel when the child dies, so that no call waits for an answer."""
        while not done.wait(0.1):
            if child.poll() is not None:
                if self._spark is not None and not self._stopping:
                    self._spark.client._channel.close()
                return

    def _log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it is empty"


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


def _dead_within(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _how(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
