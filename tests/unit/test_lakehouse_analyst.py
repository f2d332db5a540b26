"""Analysts see the newest manifest: whole, exact, and nothing that came after it."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from daybreak.errors import UsageError
from lakehouse import analyst
from lakehouse.delta_rs import DeltaRsStore
from lakehouse.tables import DAILY_COUNTS, RUNS, TABLES

DAY = date(2026, 3, 1)
AT = datetime(2026, 3, 2, 1, tzinfo=UTC)


def commit_count(store: DeltaRsStore, count: int) -> int:
    row = {"day": DAY, "item_id": "a", "count": count, "event_count": 1, "is_complete": True}
    row |= {"first_occurred_at": AT, "last_occurred_at": AT}
    return store.append(DAILY_COUNTS, pa.Table.from_pylist([row], schema=DAILY_COUNTS.schema))


def commit_manifest(store: DeltaRsStore, version: int, at: datetime, outcome: str = "committed") -> int:
    row = {"run_id": f"r{version}", "first_day": DAY, "last_day": DAY, "lake_version": 1, "attempt": 1}
    row |= {"table_versions": [("daily_counts", version)], "days": [], "profile": "{}", "checks": "[]"}
    row |= {"code_version": "0", "parameters_hash": "p", "outcome": outcome, "committed_at": at}
    return store.append(RUNS, pa.Table.from_pylist([row], schema=RUNS.schema))


def counts(store: DeltaRsStore, version: int | None = None) -> list[int]:
    duck = analyst.connect(store, version=version)
    _, rows = analyst.query(duck, "select count from daily_counts order by count")
    return [row[0] for row in rows]


def test_an_empty_lake_has_every_view_empty(tmp_path: Path) -> None:
    duck = analyst.connect(DeltaRsStore(tmp_path))
    for name in TABLES:
        assert list(analyst.query(duck, f'select * from "{name}"')[1]) == []


def test_only_what_the_newest_committed_manifest_lists_is_seen(tmp_path: Path) -> None:
    store = DeltaRsStore(tmp_path)
    first = commit_count(store, 1)
    assert counts(store) == []
    runs = commit_manifest(store, first, AT)
    second = commit_count(store, 2)
    commit_manifest(store, second, AT + timedelta(hours=1), outcome="failed")
    assert counts(store) == [1]
    commit_manifest(store, second, AT + timedelta(hours=2))
    assert counts(store) == [1, 2]
    assert counts(store, runs) == [1]


def test_sums_of_large_counts_stay_exact_and_days_are_utc(tmp_path: Path) -> None:
    store = DeltaRsStore(tmp_path)
    for count in (2**63 - 1, 2**63 - 2):
        version = commit_count(store, count)
    commit_manifest(store, version, AT)
    duck = analyst.connect(store)
    names, rows = analyst.query(duck, "select sum(count) as n, min(day) as d from daily_counts")
    assert (names, list(rows)) == (["n", "d"], [(2**64 - 3, DAY)])
    assert next(analyst.query(duck, "select first_occurred_at::varchar from daily_counts")[1])[0].startswith(
        "2026-03-02 01:00:00"
    )


def test_a_query_that_duckdb_refuses_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no_such_table"):
        analyst.query(analyst.connect(DeltaRsStore(tmp_path)), "select * from no_such_table")
