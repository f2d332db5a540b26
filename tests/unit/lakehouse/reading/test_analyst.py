"""Analysts see the newest manifest: whole, exact, and nothing that came after it."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from daybreak.errors import UsageError
from lakehouse.reading import analyst
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables.registry import BOARD_CLOSES, BOARD_HISTOGRAMS, DAILY_COUNTS, RUNS, SEASON_PRIZES, TABLES

DAY = date(2026, 3, 1)
AT = datetime(2026, 3, 2, 1, tzinfo=UTC)


def commit_count(store: DeltaRsStore, count: int) -> int:
    row = {"day": DAY, "item_id": "a", "count": count, "event_count": 1, "is_complete": True}
    row |= {"first_occurred_at": AT, "last_occurred_at": AT}
    return store.append(DAILY_COUNTS, pa.Table.from_pylist([row], schema=DAILY_COUNTS.schema))


def commit_manifest(store: DeltaRsStore, version: int, at: datetime, outcome: str = "committed") -> int:
    row = {"run_id": f"r{version}", "kind": "items", "first_day": DAY, "last_day": DAY, "lake_version": 1, "attempt": 1}
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


def test_a_version_of_a_closed_period_is_seen_once_its_close_is_written(tmp_path: Path) -> None:
    store = DeltaRsStore(tmp_path)
    prize = {"day": DAY, "board": "b", "period": "2026", "player_id": "ana", "prize": "cup", "slots": 1, "among": 1}
    rows = [prize | {"version": version} for version in (1, 2)]
    store.append(SEASON_PRIZES, pa.Table.from_pylist(rows, schema=SEASON_PRIZES.schema))
    query = "select version from season_prizes"
    assert list(analyst.query(analyst.connect(store), query)[1]) == []
    close = {"day": DAY, "board": "b", "period": "2026", "version": 1, "kind": "close", "content_hash": ""}
    close |= {"population": 1, "lake_version": 1, "counted": [], "accepted": [], "policy": "{}", "reason": ""}
    close |= {"run_id": "r", "closed_at": AT}
    store.append(BOARD_CLOSES, pa.Table.from_pylist([close], schema=BOARD_CLOSES.schema))
    assert list(analyst.query(analyst.connect(store), query)[1]) == [(1,)]


def test_boards_are_seen_only_when_a_manifest_names_them(tmp_path: Path) -> None:
    store = DeltaRsStore(tmp_path)
    row = {"day": DAY, "board": "b", "period": "2026", "points": 1, "players": 1, "as_of": DAY}
    store.append(BOARD_HISTOGRAMS, pa.Table.from_pylist([row], schema=BOARD_HISTOGRAMS.schema))
    commit_manifest(store, commit_count(store, 1), AT)
    assert list(analyst.query(analyst.connect(store), "select * from board_histograms")[1]) == []
