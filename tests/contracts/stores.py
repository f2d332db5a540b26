"""Both kinds of store over one lake, and small rows for them."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse.engines.engine import Engine
from lakehouse.stores import delta_rs
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.stores.delta_spark import DeltaSparkStore
from lakehouse.stores.store import Store
from lakehouse.tables.registry import DAILY_COUNTS

AT = datetime(2026, 3, 1, 9, 30, 0, 1, tzinfo=UTC)
ONE, TWO, THREE = (date(2026, 3, day) for day in (1, 2, 3))
ENGINE_INFO = {"delta_rs": "delta-rs:", "delta_spark": "Apache-Spark/"}
RETENTION = timedelta(days=30)
Counted = list[tuple[date, str, int]]


def store_of(kind: str, root: Path, engine: Engine | None, retention: timedelta = RETENTION) -> Store:
    """A store over `root`; the one on Spark needs its engine."""
    if kind == "delta_rs":
        return DeltaRsStore(root, retention)
    assert engine is not None
    return DeltaSparkStore(root, retention, engine)


def daily(*rows: tuple[date, str, int]) -> pa.Table:
    """Rows of `daily_counts`."""
    fixed = {"event_count": 1, "first_occurred_at": AT, "last_occurred_at": AT, "is_complete": True}
    return pa.Table.from_pylist(
        [{"day": day, "item_id": item, "count": count} | fixed for day, item, count in rows],
        schema=DAILY_COUNTS.schema,
    )


def content(store: Store, version: int | None = None) -> Counted:
    """All of `daily_counts`, sorted."""
    rows = store.read(DAILY_COUNTS, version).to_pylist()
    return sorted((row["day"], row["item_id"], row["count"]) for row in rows)


def before_the_rows_land(
    monkeypatch: pytest.MonkeyPatch, store: Store, action: Callable[[], object], times: int = 1
) -> None:
    """Have `action` happen after the store's next replaces have looked at their fences, before their rows land."""
    todo, busy = [action] * times, []

    def first() -> None:
        if todo and not busy:
            busy.append(True)
            todo.pop()()
            busy.clear()

    if isinstance(store, DeltaSparkStore):
        write = DeltaSparkStore._write

        def late_write(self: DeltaSparkStore, *args: object) -> None:
            if self is store:
                first()
            write(self, *args)

        monkeypatch.setattr(DeltaSparkStore, "_write", late_write)
        return
    real = delta_rs.write_deltalake

    def late_write_deltalake(*args: object, **how: object) -> None:
        first()
        real(*args, **how)

    monkeypatch.setattr(delta_rs, "write_deltalake", late_write_deltalake)
