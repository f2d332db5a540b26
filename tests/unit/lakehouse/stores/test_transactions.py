"""Transaction versions read from the log are those that delta-rs itself finds."""

from datetime import date, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakehouse.stores import delta_rs
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.stores.store import Transaction
from lakehouse.stores.transactions import FEW, log_versions, recorded_versions
from lakehouse.tables.registry import DAILY_COUNTS

FIRST = date(2026, 1, 1)
DAYS = [FIRST + n * timedelta(days=1) for n in range(FEW + 4)]
NEVER = [f"never/{n}" for n in range(FEW)]


def written(root: Path) -> tuple[DeltaTable, list[str]]:
    """A table with three commits of many days, over each other."""
    store = DeltaRsStore(root)
    for version, days in enumerate((DAYS, DAYS[3:], DAYS[:6]), 1):
        ids = {f"é {day}": version for day in days}
        rows = DAILY_COUNTS.schema.empty_table()
        store.replace(DAILY_COUNTS, days[0], days[-1], rows, Transaction(ids, f"r{version}", (days[0], days[-1])))
    return DeltaTable(store.path(DAILY_COUNTS)), [f"é {day}" for day in DAYS] + NEVER


def asked_one_by_one(handle: DeltaTable, ids: list[str]) -> dict[str, int]:
    found = {app_id: handle.transaction_version(app_id) for app_id in ids}
    return {app_id: version for app_id, version in found.items() if version is not None}


@pytest.mark.parametrize("checkpoint", [False, True])
def test_many_ids_are_read_as_each_version_of_the_table_has_them(tmp_path: Path, checkpoint: bool) -> None:
    handle, ids = written(tmp_path / "a lake")
    if checkpoint:
        DeltaTable(handle.table_uri, version=2).create_checkpoint()
    for version in range(handle.version() + 1):
        then = DeltaTable(handle.table_uri, version=version)
        assert log_versions(then) is not None
        assert recorded_versions(then, ids) == asked_one_by_one(then, ids)


def test_a_log_with_a_gap_is_left_to_delta_rs(tmp_path: Path) -> None:
    handle, ids = written(tmp_path)
    whole = asked_one_by_one(handle, ids)
    log = tmp_path / DAILY_COUNTS.name / "_delta_log"
    (log / f"{1:020}.json").rename(log / "gone")
    assert log_versions(handle) is None
    (log / "gone").rename(log / f"{1:020}.json")
    assert recorded_versions(handle, ids) == whole


def test_a_commit_of_many_days_is_followed_by_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_rs, "LONG_COMMIT", len(DAYS))
    handle, ids = written(tmp_path)
    log = tmp_path / DAILY_COUNTS.name / "_delta_log"
    assert [file.name for file in log.glob("*.parquet")] == [f"{1:020}.checkpoint.parquet"]
    assert recorded_versions(handle, ids) == asked_one_by_one(handle, ids)
