"""Made-up days: many events with UUIDs, items drawn from a Zipf law, a few doubled."""

from collections.abc import Iterator
from datetime import date

import numpy as np
import pyarrow as pa

from daybreak.events import INSTANT, ITEM_EVENT

EPOCH = date(1970, 1, 1)
MICROS_PER_DAY = 86_400_000_000


def uuids(chance: np.random.Generator, rows: int) -> pa.Array:
    """Random 36-character UUID texts."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = digits[chance.integers(0, 16, (rows, 36), np.uint8)]
    text[:, [8, 13, 18, 23]] = ord("-")
    offsets = np.arange(0, 36 * (rows + 1), 36, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text)))


def day_of_events(
    day: date,
    rows: int = 2_500_000,
    *,
    items: int = 500_000,
    skew: float = 1.1,
    doubled: float = 0.005,
    batch: int = 500_000,
    seed: int = 7,
) -> Iterator[pa.Table]:
    """Accepted item events of one day; a share `doubled` repeats an event id of its batch, a second later."""
    chance = np.random.default_rng([seed, (day - EPOCH).days])
    weights = 1.0 / np.arange(1, items + 1) ** skew
    edges = np.cumsum(weights) / weights.sum()
    start = (day - EPOCH).days * MICROS_PER_DAY
    for first in range(0, rows, batch):
        count = min(batch, rows - first)
        at = np.sort(chance.integers(0, MICROS_PER_DAY - 1_000_000, count)) + start
        item = np.minimum(np.searchsorted(edges, chance.random(count)), items - 1)
        source = np.arange(count)
        copies = chance.choice(np.arange(1, count), int(count * doubled), replace=False)
        source[copies] = copies - 1
        at[copies] = at[source[copies]] + 1_000_000
        yield _events(day, uuids(chance, count).take(pa.array(source)), item[source], at, first)


def _events(day: date, event_id: pa.Array, item: np.ndarray, at: np.ndarray, first: int) -> pa.Table:
    rows = len(at)
    instants = pa.array(at, pa.int64()).cast(INSTANT)
    columns = {
        "event_id": event_id,
        "item_id": pa.array(np.char.add("item-", item.astype(str))),
        "occurred_at": instants,
        "weight": pa.array(np.ones(rows, np.int64)),
        "schema_version": pa.array(np.ones(rows, np.int32)),
        "received_at": instants,
        "source": pa.array(["bench"]).take(pa.array(np.zeros(rows, np.int64))),
        "partition": pa.array(np.zeros(rows, np.int32)),
        "offset": pa.array(np.arange(first, first + rows)),
        "day": pa.array(np.full(rows, (day - EPOCH).days, np.int32)).cast(pa.date32()),
    }
    return pa.Table.from_arrays(
        [columns.get(field.name, pa.nulls(rows, field.type)).cast(field.type) for field in ITEM_EVENT],
        schema=ITEM_EVENT,
    )
