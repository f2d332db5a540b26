"""The error report of one day, as JSON and as text that a person reads.

Reads   corrections, runs, publications
Writes  DAYBREAK_HOME/reports/DAY.json
Rerun   the same report
"""

import json
from datetime import date
from typing import Any

from daybreak.errors import UsageError
from daybreak.settings import Settings
from lakehouse.runs import newest_days
from lakehouse.stores.store import StoreReader
from lakehouse.tables import registry as tables

Report = dict[str, Any]


def report(store: StoreReader, settings: Settings, day: date) -> Report:
    """The day's newest report as plain data; also kept as a file.

    Raises:
        UsageError: the day has not been corrected.
    """
    seen = newest_days(store).get(day)
    if seen is None:
        raise UsageError(f"{day} has not been corrected; run: daybreak nightly --day {day}")
    rows = store.read(tables.CORRECTIONS, days=[day]).to_pylist()
    newest = max((row["lake_version"] for row in rows), default=None)
    lists = [row for row in rows if row["lake_version"] == newest]
    lists.sort(key=lambda row: (row["window"] != "day", row["bucket_start"]))
    whole: Report = {
        "day": day.isoformat(),
        "run_id": seen.run.run_id,
        "lake_version": seen.run.lake_version,
        "generation": generation_of(store, day),
        "rows": seen.counted.rows,
        "distinct": seen.counted.distinct,
        "duplicate": seen.counted.duplicate,
        "is_complete": seen.counted.is_complete,
        "lists": [{k: v for k, v in row.items() if k not in ("day", "dimension")} for row in lists],
    }
    file = settings.home / "reports" / f"{day}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(whole, indent=1, default=str))
    return whole


def generation_of(store: StoreReader, day: date) -> int:
    """The newest generation of the day's lists of items; 0 when none was published."""
    rows = store.read(tables.PUBLICATIONS, days=[day]).to_pylist()
    return max((row["generation"] for row in rows if row["board"] is None), default=0)


def in_words(report: Report) -> list[str]:
    """The report as sentences, most important first."""
    lines = [
        f"{report['day']}: {report['rows']:,} events in the lake = {report['distinct']:,} distinct + "
        f"{report['duplicate']:,} duplicate; generation {report['generation']}, "
        f"events at version {report['lake_version']}."
    ]
    lists = report["lists"]
    if not lists:
        return [*lines, "No provisional list was served for this day, so there is no error to report."]
    day = next((row for row in lists if row["window"] == "day"), None)
    for row in [day] if day else lists[:1]:
        lines.append(
            f"The {row['window']} list's first {row['k']}: recall {row['recall']:.2f}, precision "
            f"{row['precision']:.2f}; {row['missed']} missed, {row['intruders']} that did not belong; "
            f"ranks off by up to {row['max_rank_shift']}, {row['mean_rank_shift']:.1f} on average."
        )
        lines.append(
            f"Its estimates were over by {row['mean_overcount']:.1f} on average and {row['max_overcount']:,} at most "
            f"(mean relative error {row['mean_relative_error']:.1%}); {row['bound_coverage']:.1%} of them stayed "
            f"within the promised {row['error_bound']:.1f}; {row['below_truth']} were below the truth."
        )
        lines.append(
            f"The stream counted a weight of {row['stream_weight']:,} and {row['late_weight']:,} late; "
            f"the exact weight is {row['exact_weight']:,}."
        )
        if row["one_sided_holds"] is not None:
            lines.append(
                "The one-sided law holds: nothing proves that the stream lost an event."
                if row["one_sided_holds"]
                else f"The stream LOST events: {row['lost_cells']} cells prove it; compare its source with ingest's."
            )
    hours = [row for row in lists if row["window"] == "hour"]
    if hours:
        worst = min(hours, key=lambda row: (row["recall"], row["bucket_start"]))
        lines.append(
            f"Of {len(hours)} hour lists the worst has recall {worst['recall']:.2f} "
            f"({worst['bucket_start']:%H:%M} UTC)."
        )
    return lines
