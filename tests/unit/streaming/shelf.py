"""A publisher that keeps what it was given, and batches of accepted events."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa

from daybreak.serving.lists import Meta, ServedList
from daybreak.windows import Bucket, Window, bucket_at

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Shelf:
    """The lists and sketches as last published, and every call; when `is_exact`, writes are refused."""

    def __init__(self) -> None:
        self.lists: dict[Bucket, ServedList] = {}
        self.sketches: dict[Bucket, tuple[bytes | None, bytes | None]] = {}
        self.calls: list[Bucket] = []
        self.is_exact = False

    def publish_provisional(
        self,
        bucket: Bucket,
        entries: Sequence[tuple[str, int]],
        meta: Meta,
        sketch: bytes | None = None,
        late_sketch: bytes | None = None,
    ) -> bool:
        self.calls.append(bucket)
        if self.is_exact:
            return False
        self.lists[bucket] = ServedList(bucket, tuple(entries), meta)
        self.sketches[bucket] = (sketch, late_sketch)
        return True

    def read(self, bucket: Bucket) -> ServedList | None:
        return self.lists.get(bucket)

    def read_sketch(self, bucket: Bucket) -> tuple[bytes | None, bytes | None]:
        return self.sketches.get(bucket, (None, None))

    def entries(self, window: Window, at: datetime = NOON) -> list[tuple[str, int]]:
        return list(self.lists[bucket_at(window, at)].entries)


def table(rows: Sequence[tuple[str, datetime, int]]) -> pa.Table:
    """Accepted events (item_id, occurred_at, weight)."""
    ids, times, weights = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "item_id": pa.array(ids, pa.string()),
            "occurred_at": pa.array(times, pa.timestamp("us", tz="UTC")),
            "weight": pa.array(weights, pa.int64()),
        }
    )
