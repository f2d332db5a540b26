"""The table `runs`, typed: its only reader and its only writer.

A run has one row, written last. The newest committed row is the manifest: the version of every derived table that
analysts see. What a run recorded of its days is what tells later whether they are stale.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal

import pyarrow as pa

from lakehouse.stores.store import Store, StoreReader, Transaction
from lakehouse.tables import registry as tables

RunKind = Literal["items", "boards"]
"""What a run derives: the counts and lists of items, or the boards of players."""
COMMITTED = "committed"
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class RunDay:
    """One day as a run counted it: its rows, those of the look-back slice before it, and of the day before."""

    day: date
    rows: int
    lookback_rows: int
    previous_rows: int
    distinct: int
    duplicate: int
    is_complete: bool


@dataclass(frozen=True)
class FinishedRun:
    """A row of `runs`."""

    run_id: str
    kind: RunKind
    first_day: date
    last_day: date
    lake_version: int
    attempt: int
    table_versions: Mapping[str, int]
    days: tuple[RunDay, ...]
    profile: str
    checks: str
    code_version: str
    parameters_hash: str
    committed_at: datetime
    started_at: datetime
    rules: Mapping[str, str]
    """Board -> digest of the rules that shaped its partials; empty for a run of items."""


@dataclass(frozen=True)
class CountedDay:
    """What the newest run of a kind recorded of a day."""

    counted: RunDay
    run: FinishedRun


def finished(store: StoreReader, kind: RunKind | None = None) -> list[FinishedRun]:
    """Every committed run (of a kind), oldest first."""
    rows = [row for row in _committed(store) if kind in (None, row["kind"])]
    return [_typed(row) for row in rows]


def newest_days(store: StoreReader, kind: RunKind = "items") -> dict[date, CountedDay]:
    """What the newest run of `kind` recorded of each day."""
    return {day.day: CountedDay(day, run) for run in finished(store, kind) for day in run.days}


def newest_manifest(store: StoreReader, version: int | None = None) -> dict[str, int]:
    """Table versions of the newest committed run, as of a version of `runs`; empty before the first run."""
    rows = _committed(store, version, ["run_id", "outcome", "committed_at", "table_versions"])
    return {name: int(at) for name, at in rows[-1]["table_versions"]} if rows else {}


def known_ids(store: StoreReader) -> set[str]:
    """Ids of all finished runs."""
    return {row["run_id"] for row in _committed(store, columns=["run_id", "outcome", "committed_at"])}


def is_finished(store: StoreReader, run_id: str) -> bool:
    """Whether the run has its row, looked up in the log alone."""
    return store.transaction_version(tables.RUNS, _transaction_id(run_id)) is not None


def append(store: Store, run: FinishedRun) -> None:
    """Write the row of a run, unless it is there already."""
    if is_finished(store, run.run_id):
        return
    row = {field: getattr(run, field) for field in run.__dataclass_fields__} | {
        "table_versions": list(run.table_versions.items()),
        "days": [asdict(day) for day in run.days],
        "rules": list(run.rules.items()) or None,
        "outcome": COMMITTED,
    }
    store.widen(tables.RUNS)
    rows = pa.Table.from_pylist([row], schema=tables.RUNS.schema)
    store.append(tables.RUNS, rows, Transaction({_transaction_id(run.run_id): 1}, run.run_id))


def _transaction_id(run_id: str) -> str:
    return f"runs/{run_id}"


def _committed(
    store: StoreReader, version: int | None = None, columns: list[str] | None = None
) -> list[dict[str, Any]]:
    """Rows of committed runs, oldest first; version -1 is before the first."""
    if version == -1:
        return []
    rows = store.read(tables.RUNS, version).select(columns or tables.RUNS.schema.names)
    committed = (row for row in rows.to_pylist() if row["outcome"] == COMMITTED)
    return sorted(committed, key=lambda row: (row["committed_at"], row["run_id"]))


def _typed(row: Mapping[str, Any]) -> FinishedRun:
    """A row; runs of before these were columns have `rules` and `started_at` in their profile."""
    profile = json.loads(row["profile"]) if row["started_at"] is None or row["rules"] is None else {}
    began = row["started_at"] or datetime.fromisoformat(profile.get("started_at", LONG_AGO.isoformat()))
    known = {name: row[name] for name in FinishedRun.__dataclass_fields__}
    return FinishedRun(
        **known
        | {
            "table_versions": dict(row["table_versions"]),
            "days": tuple(RunDay(**day) for day in row["days"]),
            "started_at": began,
            "rules": dict(row["rules"] if row["rules"] is not None else profile.get("rules", {})),
        }
    )
