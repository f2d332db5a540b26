"""What every store keeps; one suite, run on each implementation."""

import os
import resource
import threading
import time
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

from daybreak import clock
from daybreak.errors import CheckFailedError, FenceRefusedError, LakeFailedError
from lakehouse.engines.engine import StagedTable
from lakehouse.stores import delta_rs
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.stores.store import Store, Transaction
from lakehouse.tables.registry import DAILY_COUNTS, PROGRESS, RUNS, TABLES, Table
from tests.contracts.stores import AT, ENGINE_INFO, ONE, RETENTION, THREE, TWO, content, daily, store_of

pytestmark = pytest.mark.slow


@pytest.fixture(params=list(ENGINE_INFO))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def store(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    engine = request.getfixturevalue("spark_engine") if kind == "delta_spark" else None
    return store_of(kind, tmp_path / "a lake é", engine)


def replace(
    store: Store, first: date, last: date, rows: pa.Table | StagedTable, transaction: Transaction | None = None
) -> int:
    """A replace, of which the store's own engine must have made the commit that is now the newest."""
    version = store.replace(DAILY_COUNTS, first, last, rows, transaction or Transaction())
    require_own_engine(store)
    assert store.version(DAILY_COUNTS) == version
    return version


def require_own_engine(store: Store) -> None:
    newest = store.commits_after(DAILY_COUNTS, -1)[-1]
    kind = "delta_rs" if isinstance(store, DeltaRsStore) else "delta_spark"
    assert newest.engine.startswith(ENGINE_INFO[kind])


def staged(folder: Path, *tables: pa.Table) -> StagedTable:
    """One staged file a table."""
    folder.mkdir(parents=True)
    for n, table in enumerate(tables):
        pq.write_table(table, folder / f"part-{n}.parquet", version="2.6")
    files = tuple(str(file) for file in sorted(folder.iterdir()))
    return StagedTable(DAILY_COUNTS, folder, sum(table.num_rows for table in tables), files)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_made_once_and_empty(store: Store, name: str) -> None:
    table = TABLES[name]
    assert (store.exists(table), store.version(table)) == (False, -1)
    assert store.read(table).num_rows == 0
    store.create(table)
    store.create(table)
    assert (store.exists(table), store.version(table)) == (True, 0)
    assert store.read(table).schema == table.schema


@pytest.mark.parametrize("table", [DAILY_COUNTS, RUNS], ids=lambda table: table.name)
def test_files_are_read_without_python(store: Store, table: Table) -> None:
    """A process that ends while Arrow's threads read through a Python filesystem is aborted: one in five was."""
    store.create(table)
    assert isinstance(store.dataset(table).filesystem, LocalFileSystem)


def test_rows_round_trip_at_every_version(store: Store) -> None:
    rows = [(ONE, "café", 2**53 + 1), (ONE, "Lets\nCrash", 1), (date(1, 1, 1), "old", 5)]
    first = store.append(DAILY_COUNTS, daily(*rows))
    second = store.append(DAILY_COUNTS, daily((date.max, "late", 2)))
    assert content(store, first) == sorted(rows)
    assert content(store, second) == sorted([*rows, (date.max, "late", 2)])
    assert store.read(DAILY_COUNTS, days=[ONE]).num_rows == 2
    assert store.read(DAILY_COUNTS, first)["first_occurred_at"].to_pylist() == [AT] * 3


def test_a_replaced_day_leaves_the_others(store: Store) -> None:
    store.append(DAILY_COUNTS, daily((ONE, "a", 1), (TWO, "a", 2), (THREE, "a", 3)))
    replace(store, TWO, TWO, daily((TWO, "b", 9)), Transaction({"t": 1}, "run"))
    assert content(store) == [(ONE, "a", 1), (TWO, "b", 9), (THREE, "a", 3)]
    replace(store, ONE, TWO, daily((TWO, "c", 4)), Transaction({"t": 2}))
    assert content(store) == [(TWO, "c", 4), (THREE, "a", 3)]


def test_staged_files_replace_days(store: Store, tmp_path: Path) -> None:
    store.append(DAILY_COUNTS, daily((ONE, "a", 1), (TWO, "a", 2), (THREE, "a", 3)))
    rows = staged(tmp_path / "staged", daily((ONE, "b", 2**62)), daily((TWO, "naïve\n", 1), (ONE, "c", 1)))
    replace(store, ONE, TWO, rows, Transaction({"d/1": 1, "d/2": 1}, "run", (ONE, TWO)))
    assert content(store) == [(ONE, "b", 2**62), (ONE, "c", 1), (TWO, "naïve\n", 1), (THREE, "a", 3)]
    replace(store, TWO, THREE, StagedTable(DAILY_COUNTS, tmp_path / "none", 0, ()))
    assert content(store) == [(ONE, "b", 2**62), (ONE, "c", 1)]


def test_staged_files_are_checked_before_anything_is_fenced(store: Store, tmp_path: Path) -> None:
    before = store.append(DAILY_COUNTS, daily((ONE, "a", 1)))
    null = daily((ONE, "a", 1)).set_column(1, pa.field("item_id", pa.string()), pa.array([None], pa.string()))
    bad = {
        "2026-03-02": daily((ONE, "b", 1), (TWO, "b", 1)),
        "item_id is null": null,
        "columns": daily((ONE, "a", 1)).drop_columns(["count"]),
    }
    for n, (words, rows) in enumerate(bad.items()):
        with pytest.raises(CheckFailedError, match=words):
            store.replace(DAILY_COUNTS, ONE, ONE, staged(tmp_path / f"{n}", rows), Transaction({"t": 1}, "run"))
    assert store.version(DAILY_COUNTS) == before
    assert store.transaction_version(DAILY_COUNTS, "t") is None


def test_an_empty_replacement_clears_the_days(store: Store) -> None:
    store.append(DAILY_COUNTS, daily((ONE, "a", 1), (TWO, "a", 2)))
    version = replace(store, ONE, ONE, daily(), Transaction({"t": 1}))
    assert content(store) == [(TWO, "a", 2)]
    assert store.row_counts(DAILY_COUNTS, version, ONE, TWO) == {TWO: 1}


def test_rows_of_another_day_are_refused_whole(store: Store) -> None:
    before = store.append(DAILY_COUNTS, daily((ONE, "a", 1), (TWO, "a", 2)))
    with pytest.raises(CheckFailedError, match="2026-03-02"):
        store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "b", 1), (TWO, "b", 1)), Transaction({"t": 1}))
    assert store.version(DAILY_COUNTS) == before
    assert store.transaction_version(DAILY_COUNTS, "t") is None


def test_nulls_and_wrong_columns_are_refused(store: Store) -> None:
    bad = daily((ONE, "a", 1)).set_column(1, "item_id", pa.array([None], pa.string()))
    with pytest.raises(CheckFailedError, match="item_id is null"):
        store.append(DAILY_COUNTS, bad)
    with pytest.raises(CheckFailedError, match="columns"):
        store.append(DAILY_COUNTS, daily((ONE, "a", 1)).drop_columns(["count"]))


def test_only_a_higher_transaction_version_is_taken(store: Store) -> None:
    replace(store, ONE, ONE, daily((ONE, "new", 1)), Transaction({"d/1": 7, "d/2": 7}))
    for version in (6, 7):
        with pytest.raises(FenceRefusedError, match="d/1 is at version 7"):
            store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "old", 1)), Transaction({"d/1": version}))
    with pytest.raises(FenceRefusedError):
        store.append(DAILY_COUNTS, daily((ONE, "old", 1)), Transaction({"x": 1, "d/2": 3}))
    assert content(store) == [(ONE, "new", 1)]
    assert store.transaction_version(DAILY_COUNTS, "d/2") == 7
    replace(store, ONE, ONE, daily((ONE, "newer", 1)), Transaction({"d/1": 8}))
    assert content(store) == [(ONE, "newer", 1)]


def test_of_two_twins_at_once_one_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create(DAILY_COUNTS)
    together, outcomes, real = threading.Barrier(2), [], delta_rs.write_deltalake
    waited = threading.local()

    def late_write(*args: object, **how: object) -> None:
        """Writes only when both have looked at the fence."""
        if not hasattr(waited, "done"):
            waited.done = True
            together.wait(10)
        real(*args, **how)

    monkeypatch.setattr(delta_rs, "write_deltalake", late_write)

    def write() -> None:
        try:
            store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "a", 1)), Transaction({"d": 1}))
            outcomes.append("done")
        except FenceRefusedError as error:
            outcomes.append(str(error).split(";")[0])

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["daily_counts: d is at version 1, so version 1 is refused", "done"]
    assert content(store) == [(ONE, "a", 1)]


def test_appends_at_once_all_stay(store: Store) -> None:
    store.create(DAILY_COUNTS)
    threads = [threading.Thread(target=store.append, args=(DAILY_COUNTS, daily((ONE, f"i{n}", 1)))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(content(store)) == 4


def test_files_and_row_counts_are_those_of_the_version(store: Store) -> None:
    first = store.append(DAILY_COUNTS, daily((ONE, "a", 1), (ONE, "b", 1), (TWO, "a", 1)))
    second = replace(store, ONE, ONE, daily((ONE, "c", 1)), Transaction({"t": 1}))
    assert store.row_counts(DAILY_COUNTS, first, ONE, TWO) == {ONE: 2, TWO: 1}
    assert store.row_counts(DAILY_COUNTS, second, ONE, ONE) == {ONE: 1}
    files = store.files(DAILY_COUNTS, first, ONE, ONE)
    assert sum(pq.read_metadata(file).num_rows for file in files) == 2
    assert "timestamp[us, tz=UTC]" in str(pq.read_schema(files[0]).field("first_occurred_at").type)
    assert store.files(DAILY_COUNTS, first, THREE, THREE) == []


def test_commits_say_who_made_them(store: Store) -> None:
    start = store.append(DAILY_COUNTS, daily((ONE, "a", 1)))
    end = replace(store, ONE, ONE, daily((ONE, "b", 1)), Transaction({"t": 1}, "run-7", (ONE, ONE)))
    newer = store.commits_after(DAILY_COUNTS, start)
    made = [(commit.version, commit.run_id, commit.days) for commit in newer if commit.run_id]
    assert made == [(end, "run-7", (ONE, ONE))]
    assert {commit.claimed_by for commit in newer if not commit.run_id} <= {"run-7"}
    assert store.commits_after(DAILY_COUNTS, end) == []


def test_an_instant_finds_the_version_that_was_the_newest_then(store: Store) -> None:
    assert store.version_at(DAILY_COUNTS, AT) == -1
    instants = []
    for item in "ab":
        newest = store.append(DAILY_COUNTS, daily((ONE, item, 1)))
        time.sleep(0.01)
        instants.append((clock.now(), newest))
        time.sleep(0.01)
    assert [store.version_at(DAILY_COUNTS, instant) for instant, _ in instants] == [newest for _, newest in instants]
    assert store.version_at(DAILY_COUNTS, AT.replace(year=2000)) == -1


def test_a_table_without_days_is_compacted_once_it_has_many_files(store: Store) -> None:
    rows = [
        {"source": "s", "partition": n, "complete_through": AT, "basis": "declared", "recorded_at": AT}
        for n in range(4)
    ]
    for row in rows:
        store.append(PROGRESS, pa.Table.from_pylist([row], schema=PROGRESS.schema))
    before = store.version(PROGRESS)
    store.tidy(PROGRESS, 4)
    assert store.version(PROGRESS) == before
    store.tidy(PROGRESS, 3, "opt")
    (compaction,) = store.commits_after(PROGRESS, before)
    assert (compaction.operation, compaction.run_id) == ("OPTIMIZE", "opt")
    assert sorted(store.read(PROGRESS).to_pylist(), key=lambda row: row["partition"]) == rows
    store.tidy(RUNS, 0)
    assert not store.exists(RUNS)


def test_optimize_and_vacuum_change_no_row(store: Store) -> None:
    for item in "abc":
        store.append(DAILY_COUNTS, daily((ONE, item, 1), (TWO, item, 1)))
    kept, rows = store.version(DAILY_COUNTS), content(store)
    store.optimize(DAILY_COUNTS, ONE, ONE, "opt")
    newest = store.version(DAILY_COUNTS)
    (compaction,) = store.commits_after(DAILY_COUNTS, kept)
    assert (compaction.operation, compaction.run_id) == ("OPTIMIZE", "opt")
    require_own_engine(store)
    (compacted,) = store.files(DAILY_COUNTS, newest, ONE, ONE)
    assert "day" not in pq.read_schema(compacted).names
    assert len(store.files(DAILY_COUNTS, newest, TWO, TWO)) == 3
    folder = Path(store.files(DAILY_COUNTS, newest, ONE, ONE)[0]).parent
    young, old = folder / "part-young.parquet", folder / "part-old.parquet"
    leave(young, RETENTION - timedelta(hours=1))
    leave(old, RETENTION + timedelta(hours=1))
    assert store.vacuum(DAILY_COUNTS) == 1
    assert (young.exists(), old.exists()) == (True, False)
    assert content(store) == content(store, kept) == rows


def test_the_retention_of_the_settings_guards_the_vacuum(store: Store, kind: str) -> None:
    store.append(DAILY_COUNTS, daily((ONE, "a", 1)))
    left = store.path(DAILY_COUNTS) / "part-left.parquet"
    leave(left, RETENTION + timedelta(days=5))
    keeping = store_of(kind, store.root, getattr(store, "engine", None), RETENTION + timedelta(days=10))
    assert keeping.vacuum(DAILY_COUNTS) == 0
    assert left.exists()
    assert content(keeping) == [(ONE, "a", 1)]


def leave(file: Path, age: timedelta) -> None:
    """A file that no commit names, as a failed write leaves it."""
    file.touch()
    os.utime(file, times=(time.time() - age.total_seconds(),) * 2)


def test_maps_and_structs_of_runs_round_trip(store: Store) -> None:
    row = {
        "run_id": "r",
        "kind": "items",
        "first_day": ONE,
        "last_day": ONE,
        "lake_version": 3,
        "attempt": 1,
        "table_versions": [("daily_counts", 4)],
        "days": [
            {"day": ONE, "rows": 1, "lookback_rows": 0, "previous_rows": 0}
            | {"distinct": 1, "duplicate": 0, "is_complete": True}
        ],
        "profile": "{}",
        "checks": "[]",
        "code_version": "0",
        "parameters_hash": "p",
        "outcome": "committed",
        "committed_at": AT,
    }
    row |= {"started_at": row["committed_at"], "rules": [("goals", "a1")]}
    store.append(RUNS, pa.Table.from_pylist([row], schema=RUNS.schema))
    assert store.read(RUNS).to_pylist() == [row]


def test_a_lake_that_cannot_be_written_is_named(store: Store) -> None:
    store.root.write_text("not a folder")
    with pytest.raises(LakeFailedError, match="daily_counts cannot be made"):
        store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "a", 1)), Transaction())


def test_a_replace_that_the_disk_failed_is_whole_after_a_second_try(store: Store) -> None:
    store.append(DAILY_COUNTS, daily((ONE, "a", 1)))
    obstacle = store.path(DAILY_COUNTS) / f"day={TWO}"
    obstacle.write_text("not a folder")
    transaction = Transaction({"d/2": 1}, "run", (TWO, TWO))
    with pytest.raises(LakeFailedError, match="daily_counts"):
        store.replace(DAILY_COUNTS, TWO, TWO, daily((TWO, "b", 1)), transaction)
    assert content(store) == [(ONE, "a", 1)]
    obstacle.unlink()
    replace(store, TWO, TWO, daily((TWO, "b", 1)), transaction)
    assert content(store) == [(ONE, "a", 1), (TWO, "b", 1)]


def test_a_log_that_the_disk_cannot_hold_is_no_newer_run(store: Store) -> None:
    """A full disk ends with exit 8, also while committing: nobody was first."""
    before = store.append(DAILY_COUNTS, daily((ONE, "a", 1)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    large = Transaction({f"id-{n}": 1 for n in range(400)}, "run")
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        with pytest.raises(LakeFailedError, match=r"daily_counts cannot be written: .*space") as caught:
            store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "b", 1)), large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.exit_code == 8
    assert store.version(DAILY_COUNTS) == before
    assert content(store) == [(ONE, "a", 1)]


def test_a_table_that_another_tool_upgraded_is_refused(store: Store) -> None:
    store.append(DAILY_COUNTS, daily((ONE, "a", 1)))
    log = store.path(DAILY_COUNTS) / "_delta_log"
    (log / f"{2:020}.json").write_text('{"protocol":{"minReaderVersion":1,"minWriterVersion":4}}\n')
    with pytest.raises(LakeFailedError, match=r"protocol \(1, 4\)"):
        store.replace(DAILY_COUNTS, ONE, ONE, daily(), Transaction())
