"""What tells a disk that failed from a commit that came first: types that delta-rs raises, not its words.

Without a mount of its own a test cannot fill a disk or take its right to write away. Done by hand with deltalake
1.6.6 on a tmpfs: full and read-only, as well as a folder that another user owns, fail as a file that may grow no
further does here, in the log and in the data.
"""

import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake import Transaction as DeltaTransaction
from deltalake.exceptions import CommitFailedError

from daybreak.errors import LakeFailedError
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.stores.store import CommitConflictError, Transaction
from lakehouse.tables.registry import DAILY_COUNTS
from tests.contracts.stores import ONE, TWO, content, daily

pytestmark = pytest.mark.slow

LONG = CommitProperties(app_transactions=[DeltaTransaction(f"id-{n}", 1) for n in range(400)])
"""More text than a log may have that cannot grow beyond a few kB."""


@pytest.fixture
def store(tmp_path: Path) -> DeltaRsStore:
    store = DeltaRsStore(tmp_path / "a lake é")
    store.append(DAILY_COUNTS, daily((ONE, "a", 1)))
    return store


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """A file system on which no file may grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def overwrite(handle: DeltaTable, rows: pa.Table, **more: object) -> None:
    write_deltalake(handle, rows, mode="overwrite", predicate=f"day = '{ONE}'", **more)


FIRST: dict[str, Callable[[DeltaRsStore], object]] = {
    "rows": lambda store: store.append(DAILY_COUNTS, daily((ONE, "b", 1))),
    "a replace": lambda store: store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "b", 1)), Transaction()),
    "a transaction id": lambda store: store.append(DAILY_COUNTS, daily((TWO, "b", 1)), Transaction({"id-1": 1})),
    "properties": lambda store: DeltaTable(store.path(DAILY_COUNTS)).alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 1 hours"}
    ),
    "a protocol": lambda store: (store.path(DAILY_COUNTS) / "_delta_log" / f"{2:020}.json").write_text(
        '{"protocol":{"minReaderVersion":1,"minWriterVersion":4}}\n'
    ),
}


@pytest.mark.parametrize("first", FIRST)
def test_whatever_commit_comes_first_fails_the_commit(store: DeltaRsStore, first: str) -> None:
    handle = DeltaTable(store.path(DAILY_COUNTS))
    FIRST[first](store)
    with pytest.raises(CommitFailedError):
        overwrite(handle, daily((ONE, "c", 1)), commit_properties=LONG)


def test_a_log_that_may_not_grow_is_no_failed_commit(store: DeltaRsStore) -> None:
    handle = DeltaTable(store.path(DAILY_COUNTS))
    with no_file_above(8192), pytest.raises(OSError, match="os error 27") as caught:
        overwrite(handle, daily((ONE, "c", 1)), commit_properties=LONG)
    assert caught.value.errno is None, "were it there it would tell more than the words do"
    assert content(store) == [(ONE, "a", 1)]


def test_a_log_that_may_not_grow_is_named_with_its_reason(store: DeltaRsStore) -> None:
    many = Transaction({f"id-{n}": 1 for n in range(400)})
    with no_file_above(8192), pytest.raises(LakeFailedError, match=r"cannot be written: .*File too large") as caught:
        store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "b", 1)), many)
    assert not isinstance(caught.value, CommitConflictError)
    assert "\n" not in str(caught.value)
    assert content(store) == [(ONE, "a", 1)]


def test_data_that_may_not_grow_is_named_with_its_reason(store: DeltaRsStore) -> None:
    with no_file_above(512), pytest.raises(LakeFailedError, match=r"cannot be written: .*File too large") as caught:
        store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "b", 1)), Transaction())
    assert not isinstance(caught.value, CommitConflictError)
    assert content(store) == [(ONE, "a", 1)]


@pytest.mark.parametrize("what", ["", "_delta_log", f"day={TWO}"], ids=["table", "log", "day"])
def test_a_folder_that_has_become_a_file_is_no_other_commit(store: DeltaRsStore, what: str) -> None:
    folder = store.path(DAILY_COUNTS) / what
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("not a folder")
    with pytest.raises(LakeFailedError, match=r"daily_counts cannot be (opened|made|written): ") as caught:
        store.replace(DAILY_COUNTS, TWO, TWO, daily((TWO, "b", 1)), Transaction())
    assert not isinstance(caught.value, CommitConflictError)
