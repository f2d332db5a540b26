"""Where an engine writes what nobody keeps: files it spills, and its log; and the refusal when it cannot."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from daybreak.errors import LakeFailedError

LOG_BYTES = 16 * 2**20
HOME_HINT = "set DAYBREAK_HOME to a folder that can"
STAGING_HINT = "set DAYBREAK_LAKE__STAGING to a folder that can"


class Scratch:
    """A folder of its own in `root` for a running engine, locked while it is in use.

    Process ids would not tell whose folder it is: containers and machines that share a home have the same ones.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder: Path | None = None
        self._lock: int | None = None

    def open(self) -> Path:
        """The folder, made now unless it is there; what dead processes left in `root` is removed first.

        Raises:
            LakeFailedError: `root` cannot be written.
        """
        if self._folder is None:
            with writing(self.root):
                self.root.mkdir(parents=True, exist_ok=True)
                guard = _locked(self.root / "lock")
                try:
                    self._sweep()
                    self._folder = Path(mkdtemp(dir=self.root, prefix=f"{os.getpid()}-"))
                    self._lock = _locked(self._folder / "lock")
                finally:
                    os.close(guard)
        return self._folder

    def close(self) -> None:
        """Remove it."""
        folder, self._folder = self._folder, None
        lock, self._lock = self._lock, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)

    def _sweep(self) -> None:
        for lock in self.root.glob("*/lock"):
            try:
                os.close(_locked(lock, fcntl.LOCK_NB))
            except BlockingIOError:
                continue
            shutil.rmtree(lock.parent, ignore_errors=True)


def _locked(file: Path, how: int = 0) -> int:
    found = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | how)
    except OSError:
        os.close(found)
        raise
    return found


def rotated(log: Path) -> int:
    """Makes room for a log, a large one kept as `.1`; the byte at which what is written from now on begins."""
    with writing(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        size = log.stat().st_size if log.exists() else 0
        if size <= LOG_BYTES:
            return size
        log.replace(log.with_name(f"{log.name}.1"))
        return 0


@contextmanager
def writing(place: Path, hint: str = HOME_HINT) -> Iterator[None]:
    """Names the place, and what to do, when the system refuses what is written there."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        where = error.filename or place
        raise LakeFailedError(f"{where} cannot be written ({why}); make room there, or {hint}") from error
