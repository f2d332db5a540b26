"""What every store keeps; one suite, run on each implementation."""

import threading
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daybreak.errors import CheckFailedError, FenceRefusedError, LakeFailedError
from lakehouse.delta_rs import DeltaRsStore
from lakehouse.store import Store, Transaction
from lakehouse.tables import DAILY_COUNTS, RUNS, TABLES

AT = datetime(2026, 3, 1, 9, 30, 0, 1, tzinfo=UTC)
ONE, TWO, THREE = (date(2026, 3, day) for day in (1, 2, 3))


@pytest.fixture(params=[DeltaRsStore])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    made: Store = request.param(tmp_path / "a lake é")
    return made


def daily(*rows: tuple[date, str, int]) -> pa.Table:
    fixed = {"event_count": 1, "first_occurred_at": AT, "last_occurred_at": AT, "is_complete": True}
    return pa.Table.from_pylist(
        [{"day": day, "item_id": item, "count": count} | fixed for day, item, count in rows],
        schema=DAILY_COUNTS.schema,
    )


def content(store: Store, version: int | None = None) -> list[tuple[date, str, int]]:
    rows = store.read(DAILY_COUNTS, version).to_pylist()
    return sorted((row["day"], row["item_id"], row["count"]) for row in rows)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_made_once_and_empty(store: Store, name: str) -> None:
    table = TABLES[name]
    assert (store.exists(table), store.version(table)) == (False, -1)
    assert store.read(table).num_rows == 0
    store.create(table)
    store.create(table)
    assert (store.exists(table), store.version(table)) == (True, 0)
    assert store.read(table).schema == table.schema


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
    store.replace(DAILY_COUNTS, TWO, TWO, daily((TWO, "b", 9)), Transaction({"t": 1}, "run"))
    assert content(store) == [(ONE, "a", 1), (TWO, "b", 9), (THREE, "a", 3)]
    store.replace(DAILY_COUNTS, ONE, TWO, daily((TWO, "c", 4)), Transaction({"t": 2}))
    assert content(store) == [(TWO, "c", 4), (THREE, "a", 3)]


def test_an_empty_replacement_clears_the_days(store: Store) -> None:
    store.append(DAILY_COUNTS, daily((ONE, "a", 1), (TWO, "a", 2)))
    version = store.replace(DAILY_COUNTS, ONE, ONE, daily(), Transaction({"t": 1}))
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
    store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "new", 1)), Transaction({"d/1": 7, "d/2": 7}))
    for version in (6, 7):
        with pytest.raises(FenceRefusedError, match="d/1 is at version 7"):
            store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "old", 1)), Transaction({"d/1": version}))
    with pytest.raises(FenceRefusedError):
        store.append(DAILY_COUNTS, daily((ONE, "old", 1)), Transaction({"x": 1, "d/2": 3}))
    assert content(store) == [(ONE, "new", 1)]
    assert store.transaction_version(DAILY_COUNTS, "d/2") == 7
    store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "newer", 1)), Transaction({"d/1": 8}))
    assert content(store) == [(ONE, "newer", 1)]


def test_of_two_twins_at_once_one_is_refused(store: Store) -> None:
    store.create(DAILY_COUNTS)
    together, outcomes = threading.Barrier(2), []

    def late_reader() -> pa.RecordBatchReader:
        """Gives its rows only when both commits have looked at the fence."""

        def batches():
            together.wait(10)
            yield from daily((ONE, "a", 1)).to_batches()

        return pa.RecordBatchReader.from_batches(DAILY_COUNTS.schema, batches())

    def write() -> None:
        try:
            store.replace(DAILY_COUNTS, ONE, ONE, late_reader(), Transaction({"d": 1}))
            outcomes.append("done")
        except FenceRefusedError:
            outcomes.append("refused")

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["done", "refused"]
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
    second = store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "c", 1)), Transaction({"t": 1}))
    assert store.row_counts(DAILY_COUNTS, first, ONE, TWO) == {ONE: 2, TWO: 1}
    assert store.row_counts(DAILY_COUNTS, second, ONE, ONE) == {ONE: 1}
    files = store.files(DAILY_COUNTS, first, ONE, ONE)
    assert sum(pq.read_metadata(file).num_rows for file in files) == 2
    assert "timestamp[us, tz=UTC]" in str(pq.read_schema(files[0]).field("first_occurred_at").type)
    assert store.files(DAILY_COUNTS, first, THREE, THREE) == []


def test_commits_say_who_made_them(store: Store) -> None:
    start = store.append(DAILY_COUNTS, daily((ONE, "a", 1)))
    store.replace(DAILY_COUNTS, ONE, ONE, daily((ONE, "b", 1)), Transaction({"t": 1}, "run-7", (ONE, ONE)))
    newer = store.commits_after(DAILY_COUNTS, start)
    assert [(commit.version, commit.run_id, commit.days) for commit in newer] == [(start + 1, "run-7", (ONE, ONE))]
    assert store.commits_after(DAILY_COUNTS, start + 1) == []


def test_optimize_and_vacuum_change_no_row(store: Store) -> None:
    for item in "abc":
        store.append(DAILY_COUNTS, daily((ONE, item, 1), (TWO, item, 1)))
    kept, rows = store.version(DAILY_COUNTS), content(store)
    store.optimize(DAILY_COUNTS, ONE, ONE, "opt")
    newest = store.version(DAILY_COUNTS)
    assert len(store.files(DAILY_COUNTS, newest, ONE, ONE)) == 1
    assert len(store.files(DAILY_COUNTS, newest, TWO, TWO)) == 3
    assert store.vacuum(DAILY_COUNTS) == 0
    assert content(store) == content(store, kept) == rows


def test_maps_and_structs_of_runs_round_trip(store: Store) -> None:
    row = {
        "run_id": "r",
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
    store.append(RUNS, pa.Table.from_pylist([row], schema=RUNS.schema))
    assert store.read(RUNS).to_pylist() == [row]


def test_a_lake_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(LakeFailedError, match="file/daily_counts cannot be made"):
        DeltaRsStore(tmp_path / "file").append(DAILY_COUNTS, daily((ONE, "a", 1)))
