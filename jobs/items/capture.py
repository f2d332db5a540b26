"""Keeps what Redis served while a day was still provisional, before the night replaces it.

Reads   Redis            the day's provisional day and hour lists and their sketches
Writes  served_lists, served_sketches  once per day, only while it was provisional
Rerun   changes nothing
"""

import pyarrow as pa

from daybreak.crashpoints import crash_point
from daybreak.serving.lists import Lists, ServedList
from daybreak.windows import Window, days_between
from jobs.run.run import Run
from lakehouse.stores.store import Transaction
from lakehouse.tables import registry as tables

CORRECTED = (Window.DAY, Window.HOUR)
"""The windows that get an exact list to be measured against. A day's 1,440 minute lists would be a million rows."""


def capture(run: Run, lists: Lists) -> None:
    """Append the evidence of the run's days that has not been kept yet, one commit per table."""
    run_days = days_between(run.pin.first, run.pin.last)
    wanted = {}
    for table in (tables.SERVED_LISTS, tables.SERVED_SKETCHES):
        kept = run.store.transaction_versions(table, [f"capture/{day}" for day in run_days])
        wanted[table.name] = [day for day in run_days if f"capture/{day}" not in kept]
    days = sorted({day for open_days in wanted.values() for day in open_days})
    served = {day: [each for each in lists.served(day, CORRECTED) if each.meta.state == "provisional"] for day in days}
    for table, rows_of in ((tables.SERVED_LISTS, list_rows), (tables.SERVED_SKETCHES, sketch_rows)):
        seen = [day for day in wanted[table.name] if served[day]]
        if seen:
            rows = [row for day in seen for each in served[day] for row in rows_of(each, lists)]
            run.store.append(
                table,
                pa.Table.from_pylist(rows, schema=table.schema),
                Transaction({f"capture/{day}": 1 for day in seen}, run.pin.run_id),
            )
        crash_point(f"night.captured.{table.name}")


def list_rows(served: ServedList, _: Lists) -> list[dict[str, object]]:
    """The entries of one list."""
    return [
        bucket_columns(served) | {"position": position, "item_id": item_id, "estimate": estimate}
        for position, (item_id, estimate) in enumerate(served.entries, 1)
    ]


def sketch_rows(served: ServedList, lists: Lists) -> list[dict[str, object]]:
    """The state of one list, with its sketches where they were kept."""
    sketch, late_sketch = lists.read_sketch(served.bucket)
    meta = served.meta
    return [
        bucket_columns(served)
        | {
            "as_of": meta.as_of,
            "depth": meta.depth,
            "events_total": meta.events_total,
            "items_total": meta.items_total,
            "total_weight": meta.total_weight,
            "error_bound": meta.error_bound,
            "confidence": meta.confidence,
            "provenance": meta.provenance,
            "sketch": sketch,
            "late_sketch": late_sketch,
            "accounting": meta.accounting or None,
        }
    ]


def bucket_columns(served: ServedList) -> dict[str, object]:
    """The columns that name a list."""
    return {
        "day": served.bucket.day,
        "window": served.bucket.window.value,
        "bucket_start": served.bucket.start,
        "dimension": "",
    }
