"""Overwrites the day's provisional lists in Redis with the exact ones, all of a day at once.

Reads   top_lists, hourly_counts  at the run's manifest
Writes  publications              a row when a day's content changes, before Redis is touched
        Redis                     25 lists a day, one atomic swap
Rerun   equal content keeps its generation
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from daybreak.crashpoints import crash_point
from daybreak.serving.lists import Lists, Meta, Publication, ServedList, content_hash
from daybreak.windows import Bucket, bucket_of_label, day_bounds
from jobs.publishing.generations import Content, allot, lists_of
from jobs.run.run import Run
from lakehouse.tables import registry as tables

LABELS = ("day", *(f"hour.{hour:02}" for hour in range(24)))
"""The lists that every exact day has, empty or not."""


@dataclass(frozen=True)
class DayContent:
    """One day's exact lists and what names their content."""

    day: date
    lists: list[ServedList]
    content_hash: str


def publish(run: Run, lists: Lists) -> dict[date, int]:
    """Publish the run's complete days; returns the generation of each. Incomplete days leave Redis alone.

    Raises:
        FenceRefusedError: Redis holds lists of a newer version of the events.
        CheckFailedError: a count that Redis cannot hold exactly; the rest of its day is published.
    """
    complete = [day.day for day in run.pin.days if day.is_complete]
    if not complete:
        return {}
    as_of = run.clock()
    contents = day_contents(run, complete, as_of)
    allotted = allot(run.store, run.pin, [Content(lists_of(c.day), c.day, c.content_hash) for c in contents], as_of)
    generations = {content.day: allotted[lists_of(content.day)] for content in contents}
    crash_point("night.publications")
    for content in contents:
        publication = Publication(
            generation=generations[content.day],
            run_id=run.pin.run_id,
            lake_version=run.pin.lake_version,
            as_of=as_of,
            content_hash=content.content_hash,
        )
        lists.publish_exact(content.day, content.lists, publication)
        crash_point("night.published")
    return generations


def day_contents(run: Run, days: Sequence[date], as_of: datetime) -> list[DayContent]:
    """The exact lists of `days`, from the staged rows that this run committed."""
    entries: dict[tuple[str, datetime], list[tuple[int, str, int]]] = defaultdict(list)
    population: dict[tuple[str, datetime], int] = {}
    for row in run.staged_rows(tables.TOP_LISTS, days).to_pylist():
        named = (row["window"], row["bucket_start"])
        entries[named].append((row["position"], row["item_id"], row["count"]))
        population[named] = row["population"]
    totals = bucket_totals(run, days)
    contents = []
    for day in days:
        lists = []
        for label in LABELS:
            bucket = bucket_of_label(day, label)
            named = (bucket.window.value, bucket.start)
            ordered = tuple((item_id, count) for _, item_id, count in sorted(entries.get(named, [])))
            events, weight = totals.get(bucket, (0, 0))
            meta = Meta(
                state="exact",
                generation=0,
                as_of=as_of,
                complete_through=day_bounds(day)[1],
                run_id=run.pin.run_id,
                lake_version=run.pin.lake_version,
                events_total=events,
                items_total=population.get(named, 0),
                total_weight=weight,
                depth=run.settings.stream.list_depth,
                error_bound=0.0,
                confidence=1.0,
                content_hash=content_hash(ordered),
                provenance="exact",
                accounting="",
            )
            lists.append(ServedList(bucket, ordered, meta))
        digest = hashlib.sha256("\n".join(each.meta.content_hash for each in lists).encode()).hexdigest()
        contents.append(DayContent(day, lists, digest))
    return contents


def bucket_totals(run: Run, days: Sequence[date]) -> dict[Bucket, tuple[int, int]]:
    """(events, weight) of every hour and day that has any."""
    hours = (
        run.staged_rows(tables.HOURLY_COUNTS, days, ["day", "hour", "count", "event_count"])
        .group_by(["day", "hour"])
        .aggregate([("event_count", "sum"), ("count", "sum")])
    )
    totals: dict[Bucket, tuple[int, int]] = {}
    for row in hours.to_pylist():
        for label in (f"hour.{row['hour']:02}", "day"):
            bucket = bucket_of_label(row["day"], label)
            events, weight = totals.get(bucket, (0, 0))
            totals[bucket] = (events + row["event_count_sum"], weight + row["count_sum"])
    return totals
