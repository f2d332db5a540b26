"""What failures of delta-rs mean: another commit came first, or the lake cannot be read or written."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError

from daybreak.errors import LakeFailedError
from lakehouse.stores.store import CommitConflictError

ORNAMENT = re.compile(r"\x1b\[\d+m|↳")
"""What delta-rs draws around the causes of an error, one a line, the innermost last."""


@contextmanager
def failing_as(path: Path, what: str, cause: Callable[[], Exception | None] = lambda: None) -> Iterator[None]:
    """Failures inside are ours, naming the path; `cause` is what the rows' own reader raised, if any.

    The type alone tells a conflict from a disk (deltalake 1.6.6, held by `tests/contracts/test_store_disks.py`):

    - `CommitFailedError`: another commit came first, be it rows, a transaction id, properties or the protocol;
    - `OSError`, with its errno in the words only: the disk failed the log. Full, read-only, no permission, a file
      in place of the folder: none of them comes as a failed commit;
    - any other `DeltaError`: the disk failed a data file, or the table is not what it should be.
    """
    try:
        yield
    except (DeltaError, OSError, pa.ArrowException, ValueError) as error:
        if (failure := cause()) is not None:
            raise failure from None
        if isinstance(error, CommitFailedError):
            raise CommitConflictError(
                f"{path}: another commit came first ({in_a_line(error)}); nothing was written, run again"
            ) from error
        raise LakeFailedError(
            f"{path} cannot be {what}: {in_a_line(error)}; check the path, its permissions and the free space"
        ) from error


def in_a_line(error: Exception) -> str:
    """An error of delta-rs with its causes, without the help that it adds.

    >>> in_a_line(OSError("Generic error\\n  \\x1b[31m↳\\x1b[0m Unable to copy\\n  ↳ No space left\\n"))
    'Generic error: Unable to copy: No space left'
    >>> in_a_line(ValueError("Commit failed: new data.\\nHelp: rerun it"))
    'Commit failed: new data.'
    """
    first, *others = str(error).strip().splitlines() or [type(error).__name__]
    causes = [ORNAMENT.sub("", line).strip() for line in others if "↳" in line]
    return ": ".join([first, *causes])
