"""Served lists with only the interesting fields spelled out, and a real server to put them on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from daybreak import settings
from daybreak.ranking import item_order_key
from daybreak.serving.connection import connect
from daybreak.serving.embedded import EmbeddedServer
from daybreak.serving.lists import Entry, Lists, Meta, Publication, ServedList, content_hash
from daybreak.windows import bucket_of_label

DAY = date(2026, 3, 1)
AS_OF = datetime(2026, 3, 2, 0, 30, tzinfo=UTC)
LABELS = ("day", *(f"hour.{hour:02}" for hour in range(24)))


@contextmanager
def serving(home: Path) -> Iterator[Lists]:
    """Lists on an embedded server of their own, stopped at the end."""
    conf = settings.Settings(home=home)
    try:
        yield Lists(connect(conf), conf.redis)
    finally:
        EmbeddedServer(home).stop()


def meta(entries: Sequence[tuple[str, int]] = (), **fields: Any) -> Meta:
    """The meta of a list with these entries."""
    values: dict[str, Any] = {
        "state": "exact",
        "generation": 1,
        "as_of": AS_OF,
        "complete_through": AS_OF,
        "run_id": "run-1",
        "lake_version": 1,
        "events_total": len(entries),
        "items_total": len(entries),
        "total_weight": sum(count for _, count in entries),
        "depth": 1000,
        "error_bound": 0.0,
        "confidence": 1.0,
        "content_hash": content_hash(entries),
        "provenance": "exact",
        "accounting": "",
    }
    return Meta(**(values | fields))


def provisional(entries: Sequence[tuple[str, int]] = (), **fields: Any) -> Meta:
    """The meta of a provisional list with these entries."""
    values = {"state": "provisional", "generation": 0, "lake_version": -1, "items_total": None}
    return meta(entries, **(values | {"complete_through": None, "provenance": "pairs", "accounting": "{}"} | fields))


def order(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries in the total order."""
    return tuple(sorted(entries, key=lambda entry: item_order_key(*entry), reverse=True))


def served(entries: Sequence[tuple[str, int]], label: str = "day", day: date = DAY, **fields: Any) -> ServedList:
    """An exact list in the total order."""
    ordered = order(entries)
    return ServedList(bucket_of_label(day, label), ordered, meta(ordered, **fields))


def publish(
    lists: Lists, *each: ServedList, day: date = DAY, generation: int = 1, version: int = 1, **more: Any
) -> bool:
    """Publish these lists as the whole exact day; the content hash is that of the lists, unless given."""
    digest = sha256("".join(one.bucket.label + one.meta.content_hash for one in each).encode()).hexdigest()
    given = {"run_id": f"run-{generation}-{version}", "as_of": AS_OF, "content_hash": digest} | more
    return lists.publish_exact(day, each, Publication(generation=generation, lake_version=version, **given))


def whole_day(generation: int, depth: int = 1000, day: date = DAY) -> list[ServedList]:
    """25 lists of `depth` entries; every count of a generation is told by the generation."""
    return [
        served([(f"item-{n:05}", generation * 1_000_000 + n // 2) for n in range(depth)], label, day)
        for label in LABELS
    ]
