"""How wrong each provisional list was, against the exact one that replaced it.

Reads   served_lists, served_sketches  as captured
        hourly_counts, daily_counts    as staged and committed by this run
Writes  corrections                    replaces the days' rows of this lake_version, keeps the others
Grain   one row per (day, window, bucket_start, dimension, lake_version)
Rerun   same evidence and same events give the same rows; no column comes from the clock
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from daybreak.accuracy import measure
from daybreak.crashpoints import crash_point
from daybreak.windows import Bucket, Window, days_between
from jobs.run.run import Run
from lakehouse.stores.store import StaleReadError
from lakehouse.tables import registry as tables

Row = dict[str, object]
TRIES = 4
"""Of reading and replacing while runs of other days do the same."""


def correct(run: Run) -> list[Row]:
    """Commit the run's rows of `corrections` and return them. Days without evidence have none."""
    days = days_between(run.pin.first, run.pin.last)
    new = corrections(run, days)
    if new:
        for _ in range(TRIES):
            with suppress(StaleReadError):
                commit_beside(run, new, days)
                break
        else:
            commit_beside(run, new, days)
    crash_point("night.corrections")
    return new


def commit_beside(run: Run, new: list[Row], days: Sequence[date]) -> None:
    """Put the run's rows beside those of other versions of the events.

    Raises:
        StaleReadError: another run replaced rows after ours were read; nothing was written.
    """
    sequence = run.store.sequence(tables.CORRECTIONS)
    committed = sorted(run.store.read(tables.CORRECTIONS, days=days).to_pylist(), key=in_table_order)
    kept = [row for row in committed if row["lake_version"] != run.pin.lake_version]
    wanted = sorted(kept + new, key=in_table_order)
    if wanted != committed:
        run.store.replace(
            tables.CORRECTIONS,
            run.pin.first,
            run.pin.last,
            pa.Table.from_pylist(wanted, schema=tables.CORRECTIONS.schema),
            replace(run.pin.transaction(tables.CORRECTIONS), based_on=sequence),
        )


def in_table_order(row: Row) -> tuple[str, ...]:
    """Sort key of a row: its grain."""
    grain = (column for column in tables.CORRECTIONS.grain if column != "bucket_start")
    return (*(f"{row[column]!s:>20}" for column in grain), str(row["bucket_start"]))


def corrections(run: Run, days: Sequence[date]) -> list[Row]:
    """One row per captured day or hour list, in table order."""
    sketches = run.store.read(tables.SERVED_SKETCHES, days=days).to_pylist()
    entries: dict[Bucket, list[tuple[int, str, int]]] = defaultdict(list)
    for row in run.store.read(tables.SERVED_LISTS, days=days).to_pylist():
        entries[bucket_of(row)].append((row["position"], row["item_id"], row["estimate"]))
    if not sketches:
        return []
    exact = ExactCounts(run, sorted({row["day"] for row in sketches}))
    rows = []
    for served in sorted(sketches, key=lambda row: (row["day"], row["window"], row["bucket_start"])):
        bucket = bucket_of(served)
        ordered = [(item_id, estimate) for _, item_id, estimate in sorted(entries.get(bucket, []))]
        rows.append(correction(run, bucket, served, ordered, exact.of(bucket)))
    return rows


def correction(run: Run, bucket: Bucket, served: Row, ordered: list[tuple[str, int]], exact: pa.Table) -> Row:
    """The measures of one list; `exact` holds (item_id, count) of its whole bucket."""
    counts = dict(zip(exact["item_id"].to_pylist(), exact["count"].to_pylist(), strict=True))
    error_bound = float(str(served["error_bound"]))
    measured = measure(ordered, counts, run.settings.night.report_k, error_bound)
    lost, late_weight = one_sided_law(served, exact)
    accounting = json.loads(str(served["accounting"] or "{}"))
    is_day = bucket.window is Window.DAY
    pinned = next(day for day in run.pin.days if day.day == bucket.day)
    return {
        "day": bucket.day,
        "window": bucket.window.value,
        "bucket_start": bucket.start,
        "dimension": "",
        "lake_version": run.pin.lake_version,
        "k": measured.k,
        "recall": measured.recall,
        "precision": measured.precision,
        "missed": len(measured.missed),
        "intruders": len(measured.intruders),
        "max_rank_shift": measured.max_rank_shift,
        "mean_rank_shift": measured.mean_rank_shift,
        "max_overcount": measured.max_overcount,
        "mean_overcount": measured.mean_overcount,
        "mean_relative_error": measured.mean_relative_error,
        "error_bound": error_bound,
        "bound_coverage": measured.bound_coverage,
        "below_truth": measured.below_truth,
        "one_sided_holds": None if lost is None else lost == 0,
        "lost_cells": lost,
        "stream_weight": served["total_weight"],
        "late_weight": late_weight,
        "exact_weight": sum(counts.values()),
        "refused_count": accounting.get("refused"),
        "ahead_count": accounting.get("ahead"),
        "duplicate_count": pinned.rows - run.state.distinct.get(bucket.day, 0) if is_day else None,
    }


def one_sided_law(served: Row, exact: pa.Table) -> tuple[int | None, int]:
    """(cells that prove lost events, late weight). The first is None where no sketch was kept.

    A Count-Min sketch is linear: one of the same shape, built from the exact counts, can nowhere pass the
    sum of the stream's counted and late sketches unless the stream lost events.
    """
    sketch, late_sketch = served["sketch"], served["late_sketch"]
    if not isinstance(sketch, bytes):
        return None, 0
    from streaming.sketches.count_min import CountMinSketch, hash_ids

    upper = CountMinSketch.deserialize(sketch)
    late_weight = 0
    if isinstance(late_sketch, bytes):
        late = CountMinSketch.deserialize(late_sketch)
        late_weight = late.total_weight
        upper.merge(late)
    rebuilt = CountMinSketch(upper.width, upper.depth, upper.seed)
    if exact.num_rows:
        rebuilt.update(hash_ids(exact["item_id"].combine_chunks()), exact["count"].to_numpy())
    return rebuilt.lost_cells(upper), late_weight


class ExactCounts:
    """Exact (item_id, count) of any hour or day of the run, read once."""

    def __init__(self, run: Run, days: Sequence[date]) -> None:
        self._daily = run.staged_rows(tables.DAILY_COUNTS, days, ["day", "item_id", "count"])
        self._hourly = run.staged_rows(tables.HOURLY_COUNTS, days, ["day", "hour", "item_id", "count"])

    def of(self, bucket: Bucket) -> pa.Table:
        """Every item of the bucket."""
        rows = self._daily if bucket.window is Window.DAY else self._hourly
        wanted = pc.equal(rows["day"], pa.scalar(bucket.day, pa.date32()))
        if bucket.window is Window.HOUR:
            wanted = pc.and_(wanted, pc.equal(rows["hour"], bucket.start.hour))
        return rows.filter(wanted).select(["item_id", "count"])


def bucket_of(row: Row) -> Bucket:
    """The bucket that a lake row names."""
    return Bucket(Window(str(row["window"])), cast(datetime, row["bucket_start"]))
