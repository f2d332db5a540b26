"""DuckDB's recount against the plain-Python oracle, and its power to find a wrong number."""

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daybreak.windows import Window, bucket_at
from lakehouse.audit import recount
from lakehouse.audit.first_copies import CountedDays
from lakehouse.tables.registry import DAILY_COUNTS, HOURLY_COUNTS, TABLES, TOP_LISTS, Table
from tests.builders import event, events
from tests.oracles import items as oracles

DAY = date(2026, 3, 1)
HOUR = timedelta(hours=1)
DAYS = CountedDays(DAY, DAY, HOUR)
DEPTH = 3


def mixed(seed: int) -> list[dict[str, Any]]:
    """Events around the day: copies near and across midnight, ties, heavy weights."""
    chance = random.Random(seed)
    start = datetime(2026, 2, 28, 22, tzinfo=UTC)
    rows = []
    for number in range(400):
        at = start + timedelta(microseconds=chance.randrange(28 * 3_600_000_000))
        if chance.random() < 0.3:
            at = at.replace(minute=0, second=0, microsecond=0)
        rows.append(
            event(
                number,
                event_id=f"e{chance.randrange(250)}",
                item_id=chance.choice(["A", "B", "café", "cafe\u0301", "😀"]),
                weight=chance.choice([1, 1, 2, 2**31 - 1]),
                occurred_at=at,
                received_at=at + timedelta(seconds=chance.randrange(9)),
            )
        )
    return rows


def staged_by_oracle(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    distinct = oracles.distinct_of_day(rows, DAY)
    hourly, daily = (_grouped(distinct, by_hour) for by_hour in (True, False))
    lists = []
    buckets = [("day", 0, oracles.count_day(rows, DAY))]
    buckets += [("hour", hour, counts) for hour, counts in oracles.count_hours(rows, DAY).items()]
    for window, hour, counts in buckets:
        for position, rank, item, count in oracles.top(counts, DEPTH):
            at = datetime(2026, 3, 1, hour, tzinfo=UTC)
            lists.append(
                {"day": DAY, "window": window, "bucket_start": at, "dimension": "", "position": position}
                | {"item_id": item, "count": count, "rank": rank, "population": len(counts)}
            )
    return {HOURLY_COUNTS.name: hourly, DAILY_COUNTS.name: daily, TOP_LISTS.name: lists}


def _grouped(distinct: list[dict[str, Any]], by_hour: bool) -> list[dict[str, Any]]:
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in distinct:
        groups.setdefault((row["occurred_at"].hour if by_hour else 0, row["item_id"]), []).append(row)
    return [
        {
            "day": DAY,
            "item_id": item,
            "count": sum(row["weight"] for row in group),
            "event_count": len(group),
            "first_occurred_at": min(row["occurred_at"] for row in group),
            "last_occurred_at": max(row["occurred_at"] for row in group),
        }
        | ({"hour": hour} if by_hour else {"is_complete": True})
        for (hour, item), group in groups.items()
    ]


def compare(
    folder: Path,
    rows: list[dict[str, Any]],
    staged: dict[str, list[dict[str, Any]]],
    *,
    rows_due: int | None = None,
    full_below: int = 10**9,
) -> list[str]:
    due = sum(row["day"] == DAY for row in rows)
    return recount.differences(
        event_files=_written(folder / "events.parquet", events(*rows)),
        staged={
            name: _written(folder / f"{name}.parquet", pa.Table.from_pylist(found, schema=TABLES[name].schema))
            for name, found in staged.items()
        },
        days=DAYS,
        day_rows={DAY: due if rows_due is None else rows_due} if due else {},
        depth=DEPTH,
        full_below=full_below,
    )


def _written(file: Path, rows: pa.Table) -> Sequence[str]:
    pq.write_table(rows, file)
    return [str(file)]


@pytest.mark.parametrize("seed", range(5))
def test_what_the_oracle_counts_holds(seed: int, tmp_path: Path) -> None:
    rows = mixed(seed)
    assert compare(tmp_path, rows, staged_by_oracle(rows)) == []


@pytest.mark.parametrize(
    ("table", "column", "by"),
    [
        (HOURLY_COUNTS, "count", 1),
        (HOURLY_COUNTS, "event_count", -1),
        (HOURLY_COUNTS, "first_occurred_at", timedelta(microseconds=1)),
        (DAILY_COUNTS, "count", -1),
        (DAILY_COUNTS, "last_occurred_at", timedelta(microseconds=1)),
        (TOP_LISTS, "rank", 1),
        (TOP_LISTS, "population", 1),
        (TOP_LISTS, "count", 1),
    ],
)
def test_one_wrong_number_is_found_and_named(table: Table, column: str, by: Any, tmp_path: Path) -> None:
    rows = mixed(0)
    staged = staged_by_oracle(rows)
    staged[table.name][0][column] += by
    found = compare(tmp_path, rows, staged)
    assert any(line.startswith(table.name) and column in line for line in found)


def test_a_missing_and_a_doubled_row_are_found(tmp_path: Path) -> None:
    rows = mixed(1)
    staged = staged_by_oracle(rows)
    lost = staged[DAILY_COUNTS.name].pop()
    assert any(lost["item_id"] in line for line in compare(tmp_path, rows, staged))
    staged = staged_by_oracle(rows)
    staged[TOP_LISTS.name].append(staged[TOP_LISTS.name][0])
    assert compare(tmp_path, rows, staged)


def test_above_the_size_totals_are_still_compared(tmp_path: Path) -> None:
    rows = mixed(2)
    staged = staged_by_oracle(rows)
    assert compare(tmp_path, rows, staged, full_below=0) == []
    for row in staged[HOURLY_COUNTS.name]:
        row["count"] += 1
    assert compare(tmp_path, rows, staged, full_below=0)


def test_rows_that_the_log_counts_otherwise_are_named(tmp_path: Path) -> None:
    rows = mixed(3)
    assert "by the log's" in compare(tmp_path, rows, staged_by_oracle(rows), rows_due=7)[0]


def test_a_day_without_events_holds_empty() -> None:
    assert recount.differences([], {}, days=DAYS, day_rows={}, depth=3, full_below=1) == []


@pytest.mark.parametrize("year", [1, 1960, 9999])
def test_far_years_keep_their_day(year: int, tmp_path: Path) -> None:
    at = datetime(year, 6, 1, 23, 59, 59, 999999, tzinfo=UTC)
    files = _written(tmp_path / "e.parquet", events({"occurred_at": at}))
    assert recount.minute_list(files, bucket_at(Window.MINUTE, at), HOUR, 5).entries == (("A", 1),)


def test_a_minute_list_is_exact(tmp_path: Path) -> None:
    rows = mixed(4)
    at = datetime(2026, 3, 1, 5, tzinfo=UTC)
    inside = [row for row in oracles.distinct_of_day(rows, DAY) if row["occurred_at"].replace(second=0) == at]
    due: dict[str, int] = {}
    for row in inside:
        due[row["item_id"]] = due.get(row["item_id"], 0) + row["weight"]
    found = recount.minute_list(_written(tmp_path / "e.parquet", events(*rows)), bucket_at(Window.MINUTE, at), HOUR, 2)
    assert inside
    assert (found.population, found.events, found.total_weight) == (len(due), len(inside), sum(due.values()))
    assert list(found.entries) == sorted(due.items(), key=lambda p: (p[1], p[0].encode()), reverse=True)[:2]
