"""`runs` is read and written typed: what was written comes back, and rows of before two of its columns still read."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakehouse import runs
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables.registry import RUNS, Table

DAY = date(2026, 3, 1)
AT = datetime(2026, 3, 2, 3, tzinfo=UTC)
RUN = runs.FinishedRun(
    run_id="r1",
    kind="boards",
    first_day=DAY,
    last_day=DAY,
    lake_version=3,
    attempt=1,
    table_versions={"player_days": 4},
    days=(runs.RunDay(DAY, 10, 1, 9, 8, 2, True),),
    profile="{}",
    checks="[]",
    code_version="0",
    parameters_hash="p",
    committed_at=AT,
    started_at=AT - timedelta(minutes=1),
    rules={"goals": "abc"},
)
OLD = replace(RUNS, schema=pa.schema([field for field in RUNS.schema if field.name not in ("started_at", "rules")]))


@pytest.fixture
def store(tmp_path: Path) -> DeltaRsStore:
    return DeltaRsStore(tmp_path)


def append_row(store: DeltaRsStore, table: Table, **changes: object) -> None:
    """A row as some code wrote it, whatever ours would say."""
    row = {
        "run_id": "old",
        "kind": "boards",
        "first_day": DAY,
        "last_day": DAY,
        "lake_version": 1,
        "attempt": 1,
        "table_versions": [("player_days", 1)],
        "days": [{"day": DAY, "rows": 5, "lookback_rows": 0, "previous_rows": 0, "distinct": 5, "duplicate": 0}],
        "profile": "{}",
        "checks": "[]",
        "code_version": "0",
        "parameters_hash": "p",
        "outcome": "committed",
        "committed_at": AT - timedelta(days=1),
    } | changes
    row["days"] = [day | {"is_complete": True} for day in row["days"]]
    store.append(table, pa.Table.from_pylist([row], schema=table.schema))


def test_a_run_comes_back_as_it_was_written_and_is_written_once(store: DeltaRsStore) -> None:
    assert (runs.finished(store), runs.newest_manifest(store), runs.known_ids(store)) == ([], {}, set())
    runs.append(store, RUN)
    runs.append(store, replace(RUN, lake_version=9))
    assert runs.finished(store) == [RUN]
    assert runs.is_finished(store, "r1")
    assert not runs.is_finished(store, "r2")
    assert runs.finished(store, "items") == []
    assert runs.newest_days(store, "boards") == {DAY: runs.CountedDay(RUN.days[0], RUN)}


def test_the_newest_committed_run_is_the_manifest_whoever_asks(store: DeltaRsStore) -> None:
    append_row(store, RUNS, table_versions=[("player_days", 7)], committed_at=AT + timedelta(days=1), outcome="failed")
    runs.append(store, RUN)
    assert runs.newest_manifest(store) == {"player_days": 4}
    assert runs.newest_manifest(store, -1) == {}
    assert runs.known_ids(store) == {"r1"}, "what failed is no run that is over"
    runs.append(store, replace(RUN, run_id="r2", committed_at=AT - timedelta(hours=1)))
    assert runs.newest_manifest(store) == {"player_days": 4}


def test_rows_of_before_rules_and_start_were_columns_are_read_and_the_table_is_widened(store: DeltaRsStore) -> None:
    began = AT - timedelta(days=1, hours=1)
    profile = json.dumps({"player_days": {}, "rules": {"goals": "xyz"}, "started_at": str(began)})
    append_row(store, OLD, profile=profile)
    append_row(store, OLD, run_id="older", profile="{}", kind="items", committed_at=AT - timedelta(days=2))
    (older, old) = runs.finished(store)
    assert (old.rules, old.started_at) == ({"goals": "xyz"}, began)
    assert (older.rules, older.started_at) == ({}, runs.LONG_AGO)
    runs.append(store, RUN)
    assert runs.finished(store) == [older, old, RUN]
    handle = DeltaTable(str(store.path(RUNS)))
    assert [field.name for field in handle.schema().fields] == RUNS.schema.names
    assert (handle.protocol().min_reader_version, handle.protocol().min_writer_version) == (1, 2)
