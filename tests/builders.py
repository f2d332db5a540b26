"""Rows with only the interesting fields spelled out."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from daybreak.events import ITEM_EVENT, SCORE_EVENT, Kind

MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def instant(text: str) -> datetime:
    """`2026-03-01 12:00` as an aware instant; a text with a zone keeps its own."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def event(number: int = 0, **fields: Any) -> dict[str, Any]:
    """One accepted item event; `occurred_at` and `received_at` may be texts."""
    row: dict[str, Any] = {
        "event_id": f"e{number}",
        "item_id": "A",
        "occurred_at": NOON,
        "user_id": None,
        "region": None,
        "category": None,
        "weight": 1,
        "schema_version": 1,
        "extra": None,
        "source": "test",
        "partition": 0,
        "offset": number,
    } | fields
    for name in ("occurred_at", "received_at"):
        if isinstance(row.get(name), str):
            row[name] = instant(row[name])
    row.setdefault("received_at", row["occurred_at"])
    return row | {"day": row["occurred_at"].astimezone(UTC).date()}


def events(*rows: dict[str, Any]) -> pa.Table:
    """A table of accepted item events, one per dict of fields: `events({"item_id": "A"}, {"weight": 3})`."""
    return pa.Table.from_pylist([event(n, **row) for n, row in enumerate(rows)], schema=ITEM_EVENT)


def score(event_id: str, player_id: str, points: int | str, second: float = 0, **fields: Any) -> dict[str, Any]:
    """One accepted score event so many seconds after midnight; `occurred_at` and `received_at` may be texts."""
    own: dict[str, Any] = {
        "event_id": event_id,
        "match_id": "m1",
        "match_type": None,
        "player_id": player_id,
        "points": Decimal(points),
        "occurred_at": MIDNIGHT + timedelta(seconds=second),
        "season": None,
    }
    row = event(**(own | fields))
    return {name: row[name] for name in SCORE_EVENT.names}


def lake_files(
    rows: Iterable[dict[str, Any]], folder: Path, part_of: Callable[[dict[str, Any]], object] = lambda row: None
) -> list[str]:
    """Files of the events as the lake has them: by day, `day` only in the path; within one by what `part_of` says."""
    parts: dict[tuple[str, object], list[dict[str, Any]]] = {}
    for row in rows:
        parts.setdefault((row["day"].isoformat(), part_of(row)), []).append(row)
    files = []
    for number, ((day, _), part) in enumerate(parts.items()):
        file = folder / f"day={day}" / f"part-{number}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(part, schema=ITEM_EVENT).drop_columns(["day"]), file)
        files.append(str(file))
    return files


def counts(**of: int) -> pa.Table:
    """Exact counts as a table: `counts(A=3, B=1)`."""
    return pa.table({"item_id": pa.array(list(of), pa.string()), "count": pa.array(list(of.values()), pa.int64())})


def raw_row(kind: Kind = Kind.ITEMS, **fields: Any) -> dict[str, Any]:
    """One row as a producer writes it: acceptable unless a field says otherwise; None leaves a field out."""
    row: dict[str, Any] = {"event_id": "e1", "occurred_at": "2026-03-01T12:00:00Z"}
    if kind is Kind.ITEMS:
        row |= {"item_id": "A"}
    else:
        row |= {"match_id": "m1", "player_id": "p1", "points": 1}
    return {name: value for name, value in (row | fields).items() if value is not None}
