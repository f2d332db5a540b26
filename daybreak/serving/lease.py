"""A lease in Redis: one holder at a time, for as long as it renews.

It keeps two nights from working at once; that the older of two never wins is the fences' duty, since a lease
can be lost.
"""

import json
import os
import platform
import secrets
import threading
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from types import TracebackType

import redis
from redis.exceptions import RedisError

from daybreak.errors import FenceRefusedError, UnreachableError
from daybreak.serving import keys
from daybreak.serving.client import reaches_redis
from daybreak.serving.processes import started


class Lease:
    """The lease `name`, held by `owner` inside a `with`, renewed by a thread every third of its `ttl`.

    A holder on this machine whose process is gone does not have to be waited for: its lease is taken over.
    """

    def __init__(self, client: redis.Redis, name: str, owner: str, ttl: timedelta) -> None:
        self.client = client
        self.name = name
        self.owner = owner
        self.ttl = ttl
        self.is_lost = False
        self._holder = json.dumps(
            {
                "owner": owner,
                "machine": this_machine(),
                "pid": os.getpid(),
                "started": started(os.getpid()),
                "token": secrets.token_hex(8),
            }
        )
        scripts = files("daybreak.serving") / "scripts"
        self._acquire = client.register_script((scripts / "acquire.lua").read_text())
        self._renew = client.register_script((scripts / "renew.lua").read_text())
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @reaches_redis
    def acquire(self) -> None:
        """Hold the lease.

        Raises:
            FenceRefusedError: somebody else holds it; names who.
        """
        holder = self._try_to_acquire(dead="")
        if holder and is_dead(holder):
            holder = self._try_to_acquire(dead=holder)
        if holder:
            raise FenceRefusedError(
                f"lease {self.name!r} is held by run {owner_of(holder)}, so run {self.owner} did not start; "
                f"wait for it to end (its lease ends by itself {self.ttl} after its last sign of life)"
            )
        self.is_lost = False

    @reaches_redis
    def renew(self) -> bool:
        """Whether the lease is still ours; its time starts anew."""
        return bool(self._renew(keys=[keys.lease_key(self.name)], args=[self._holder, self._millis]))

    @reaches_redis
    def release(self) -> bool:
        """Whether the lease was still ours; it is free now, or another's."""
        return bool(self._renew(keys=[keys.lease_key(self.name)], args=[self._holder, 0]))

    def check(self) -> None:
        """Passes while the lease is not known to be lost.

        Raises:
            FenceRefusedError: it ran out, and maybe another run holds it.
        """
        if self.is_lost:
            raise FenceRefusedError(
                f"run {self.owner} lost its lease {self.name!r}, so it gives up before another run's work; run it again"
            )

    def __enter__(self) -> "Lease":
        self.acquire()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._keep, name=f"lease-{self.name}", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.release()
        except (UnreachableError, RedisError):
            self.is_lost = True  # it ends by itself; the work inside was done, or failed with its own error

    @property
    def _millis(self) -> int:
        return max(1, self.ttl // timedelta(milliseconds=1))

    def _try_to_acquire(self, dead: str) -> str:
        held = self._acquire(keys=[keys.lease_key(self.name)], args=[self._holder, self._millis, dead])
        return str(held.decode())

    def _keep(self) -> None:
        while not self._stopping.wait(self.ttl.total_seconds() / 3):
            try:
                is_ours = self.renew()
            except (UnreachableError, RedisError):
                continue  # the next beat tries again; when the time has run out by then, that one says lost
            if not is_ours:
                self.is_lost = True
                return


def owner_of(holder: str) -> str:
    """Who holds a lease, from its value."""
    try:
        found = json.loads(holder)
        return f"{found['owner']} (process {found['pid']})"
    except (ValueError, KeyError, TypeError):
        return holder


def is_dead(holder: str) -> bool:
    """Whether the holder is a process of this very machine that is surely gone."""
    try:
        found = json.loads(holder)
        machine, pid, since = found["machine"], int(found["pid"]), found["started"]
    except (ValueError, KeyError, TypeError):
        return False
    return machine is not None and since is not None and machine == this_machine() and started(pid) != since


def this_machine() -> str | None:
    """What names this boot of this machine and its process namespace; None where /proc does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{platform.node()}/{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None
