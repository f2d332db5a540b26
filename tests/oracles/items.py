"""The whole system in plain Python: dicts, Counter, sorted, datetime. No sketch, no Arrow, no SQL.

An event here is a dict of the fields of an accepted item event.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

Event = dict[str, Any]
HOUR = timedelta(hours=1)


def order_key(event: Event) -> tuple[Any, ...]:
    """Of several copies the smallest of this wins."""
    return tuple(event[name] for name in ("occurred_at", "received_at", "source", "partition", "offset"))


def start_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def is_in(event: Event, start: datetime, end: datetime) -> bool:
    return bool(start <= event["occurred_at"] < end)


def is_of(event: Event, day: date) -> bool:
    """Whether the event lies in the UTC day; the calendar's last day has no end that datetime can say."""
    return bool(event["occurred_at"].astimezone(UTC).date() == day)


def is_just_before(event: Event, day: date, lookback: timedelta) -> bool:
    """Whether the event lies in the look-back slice before the day; the calendar's first day has none."""
    return day > date.min and is_in(event, start_of(day) - lookback, start_of(day))


def distinct_of_day(events: Iterable[Event], day: date, lookback: timedelta = HOUR) -> list[Event]:
    """The day's events that count: one per event_id, none whose id occurs in the look-back before the day."""
    events = list(events)
    before = {event["event_id"] for event in events if is_just_before(event, day, lookback)}
    copies: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if is_of(event, day) and event["event_id"] not in before:
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


def counted(group: Iterable[Event]) -> dict[str, Any]:
    """The measures of one item's distinct events."""
    group = list(group)
    instants = [event["occurred_at"] for event in group]
    return {
        "count": sum(event["weight"] for event in group),
        "event_count": len(group),
        "first_occurred_at": min(instants),
        "last_occurred_at": max(instants),
    }


def hourly_counts(events: Iterable[Event], days: Iterable[date], lookback: timedelta = HOUR) -> list[dict[str, Any]]:
    """Every row of `hourly_counts` for these days, by (day, hour, item_id)."""
    events = list(events)
    groups: dict[tuple[date, int, str], list[Event]] = defaultdict(list)
    for day in days:
        for event in distinct_of_day(events, day, lookback):
            groups[day, event["occurred_at"].astimezone(UTC).hour, event["item_id"]].append(event)
    return [{"day": d, "hour": h, "item_id": i} | counted(groups[d, h, i]) for d, h, i in sorted(groups)]


def daily_counts(events: Iterable[Event], days: Iterable[date], lookback: timedelta = HOUR) -> list[dict[str, Any]]:
    """Every row of `daily_counts` for these days, by (day, item_id)."""
    events = list(events)
    groups: dict[tuple[date, str], list[Event]] = defaultdict(list)
    for day in days:
        for event in distinct_of_day(events, day, lookback):
            groups[day, event["item_id"]].append(event)
    return [{"day": d, "item_id": i} | counted(groups[d, i]) | {"is_complete": True} for d, i in sorted(groups)]


def top_lists(
    events: Iterable[Event], days: Iterable[date], depth: int, lookback: timedelta = HOUR
) -> list[dict[str, Any]]:
    """Every row of `top_lists` for these days, by (day, window, bucket_start, position)."""
    events = list(events)
    rows = []
    for day in days:
        buckets = {("day", 0): count_day(events, day, lookback)}
        buckets |= {("hour", hour): counts for hour, counts in count_hours(events, day, lookback).items()}
        for (window, hour), counts in sorted(buckets.items()):
            named = {"day": day, "window": window, "bucket_start": start_of(day) + hour * HOUR, "dimension": ""}
            rows += [
                named | {"position": position, "item_id": item, "count": count, "rank": rank, "population": len(counts)}
                for position, rank, item, count in top(counts, depth)
            ]
    return rows


def day_accounting(events: Iterable[Event], day: date, lookback: timedelta = HOUR) -> dict[str, int]:
    """distinct + duplicate = rows of the day."""
    events = list(events)
    rows = sum(is_of(event, day) for event in events)
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
