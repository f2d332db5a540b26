"""The whole system in plain Python: dicts, Counter, sorted, datetime. No sketch, no Arrow, no SQL.

An event here is a dict of the fields of an accepted item event.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

Event = dict[str, Any]
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def order_key(event: Event) -> tuple[Any, ...]:
    """Of several copies the smallest of this wins."""
    return tuple(event[name] for name in ("occurred_at", "received_at", "source", "partition", "offset"))


def start_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def is_in(event: Event, start: datetime, end: datetime) -> bool:
    return bool(start <= event["occurred_at"] < end)


def distinct_of_day(events: Iterable[Event], day: date, lookback: timedelta = HOUR) -> list[Event]:
    """The day's events that count: one per event_id, none whose id occurs in the look-back before the day."""
    events = list(events)
    start = start_of(day)
    before = {event["event_id"] for event in events if is_in(event, start - lookback, start)}
    copies: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if is_in(event, start, start + DAY) and event["event_id"] not in before:
            copies[event["event_id"]].append(event)
    return [min(group, key=order_key) for group in copies.values()]


def count_day(events: Iterable[Event], day: date, lookback: timedelta = HOUR) -> Counter[str]:
    """Exact total weight per item of a UTC day."""
    total: Counter[str] = Counter()
    for event in distinct_of_day(events, day, lookback):
        total[event["item_id"]] += event["weight"]
    return total


def count_hours(events: Iterable[Event], day: date, lookback: timedelta = HOUR) -> dict[int, Counter[str]]:
    """Exact total weight per item of each hour of a UTC day; hours without events are left out."""
    hours: dict[int, Counter[str]] = defaultdict(Counter)
    for event in distinct_of_day(events, day, lookback):
        hours[event["occurred_at"].astimezone(UTC).hour][event["item_id"]] += event["weight"]
    return dict(hours)


def top(counts: Counter[str], k: int) -> list[tuple[int, int, str, int]]:
    """(position, competition rank, item_id, count): count descending, then id bytes descending."""
    order = sorted(counts.items(), key=lambda pair: (pair[1], pair[0].encode()), reverse=True)[:k]
    return [
        (position, 1 + sum(other > count for other in counts.values()), item, count)
        for position, (item, count) in enumerate(order, 1)
    ]


def day_accounting(events: Iterable[Event], day: date, lookback: timedelta = HOUR) -> dict[str, int]:
    """distinct + duplicate = rows of the day."""
    events = list(events)
    rows = sum(is_in(event, start_of(day), start_of(day) + DAY) for event in events)
    distinct = len(distinct_of_day(events, day, lookback))
    return {"rows": rows, "distinct": distinct, "duplicate": rows - distinct}


def recall_at(served: list[str], counts: Counter[str], k: int) -> float:
    """Share of the k places filled: by the items above the k-th count, and by any members of its tie."""
    places = sorted(counts.values(), reverse=True)[:k]
    if not places:
        return 1.0
    above = sum(counts[item] > places[-1] for item in served[:k])
    tied = sum(counts[item] == places[-1] for item in served[:k])
    return (above + min(tied, places.count(places[-1]))) / len(places)
