"""Exact lists and counts read from the lake, for buckets that Redis does not serve.

Reads   hourly_counts, daily_counts, top_lists  at the newest manifest
        item_events                              for minutes, at the version their day was corrected from
"""

from collections.abc import Sequence

from daybreak.errors import UsageError
from daybreak.serving.lists import Meta, ServedList, content_hash
from daybreak.windows import Bucket, Window, day_before, day_bounds
from jobs.run.lake import Lake
from jobs.run.staleness import stale_item_days
from lakehouse.audit import recount
from lakehouse.reading import analyst
from lakehouse.runs import newest_days
from lakehouse.tables import registry as tables

TOP = (
    "select item_id, count, population from top_lists "
    "where day = ? and bucket_start = ?::timestamp at time zone 'UTC' and \"window\" = ? order by position"
)
TOTAL_DAY = "select sum(count)::bigint, sum(event_count)::bigint from daily_counts where day = ?"
TOTAL_HOUR = "select sum(count)::bigint, sum(event_count)::bigint from hourly_counts where day = ? and hour = ?"
DAY_COUNTS = "select item_id, count from daily_counts where day = ? and item_id in (select unnest(?))"
HOUR_COUNTS = "select item_id, count from hourly_counts where day = ? and hour = ? and item_id in (select unnest(?))"


def list_from_lake(lake: Lake, bucket: Bucket, k: int) -> ServedList | None:
    """The exact list of a bucket of a corrected day; None when its day was never corrected."""
    seen = newest_days(lake.store).get(bucket.day)
    if seen is None:
        return None
    if bucket.window is Window.MINUTE:
        found = minute_list(lake, bucket, k)
        entries, population = found.entries, found.population
        weight, events = found.total_weight, found.events
    else:
        connection = analyst.connect(lake.store)
        start = bucket.start.replace(tzinfo=None)
        rows = connection.execute(
            TOP,
            [bucket.day, start, bucket.window.value],
        ).fetchall()
        entries = tuple((item_id, count) for item_id, count, _ in rows)
        population = rows[0][2] if rows else 0
        hour = [] if bucket.window is Window.DAY else [bucket.start.hour]
        total = connection.execute(TOTAL_HOUR if hour else TOTAL_DAY, [bucket.day, *hour]).fetchone()
        weight, events = (total[0] or 0, total[1] or 0) if total else (0, 0)
    meta = Meta(
        state="exact" if seen.counted.is_complete else "provisional",
        generation=0,
        as_of=min(bucket.end, day_bounds(bucket.day)[1]),
        complete_through=bucket.end if seen.counted.is_complete else None,
        run_id=seen.run.run_id,
        lake_version=seen.run.lake_version,
        events_total=events,
        items_total=population,
        total_weight=weight,
        depth=lake.settings.stream.list_depth,
        error_bound=0.0,
        confidence=1.0,
        content_hash=content_hash(entries),
        provenance="exact",
        accounting="",
    )
    return ServedList(bucket, entries, meta)


def minute_list(lake: Lake, bucket: Bucket, k: int) -> recount.MinuteList:
    """The exact list of one minute, counted from the events that the day's night saw.

    Those are the newest ones, in files that are kept, unless the day has turned stale since.
    """
    version = lake.store.version(tables.ITEM_EVENTS)
    if stale_item_days(lake, bucket.day, bucket.day):
        version = newest_days(lake.store)[bucket.day].run.lake_version
    files = lake.store.files(tables.ITEM_EVENTS, version, day_before(bucket.day), bucket.day)
    return recount.minute_list(files, bucket, lake.settings.night.dedup_lookback, k)


def counts_from_lake(lake: Lake, bucket: Bucket, items: Sequence[str]) -> dict[str, int]:
    """The exact count of each item in a bucket; 0 for one that did not occur.

    Raises:
        UsageError: the day was never corrected, so that no count is known.
    """
    counts = dict.fromkeys(items, 0)
    seen = newest_days(lake.store).get(bucket.day)
    if seen is None:
        raise UsageError(
            f"nothing is counted for {bucket.start:%Y-%m-%dT%H:%MZ}: stream its events, "
            f"or correct the day with: daybreak nightly --day {bucket.day}"
        )
    if bucket.window is Window.MINUTE:
        found = minute_list(lake, bucket, 2**31 - 1)
        return counts | {item: count for item, count in found.entries if item in counts}
    hour = [] if bucket.window is Window.DAY else [bucket.start.hour]
    rows = analyst.connect(lake.store).execute(HOUR_COUNTS if hour else DAY_COUNTS, [bucket.day, *hour, list(items)])
    return counts | dict(rows.fetchall())
