"""The host's time zone changes no row: ingest, derivation on both engines, recount, commit and `daybreak sql`.

Each night runs in a process of its own with `TZ` set, and Spark's JVM with that default zone as well. The events lie
at the edges of UTC days on which Denver's clocks change, where a local day would cut differently.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from daybreak import clock
from daybreak.events import Kind
from daybreak.settings import Settings
from daybreak.windows import days_between, to_micros
from jobs.ingest import ingest_file
from jobs.items import check, daily_counts, hourly_counts, top_lists
from jobs.run import commit
from jobs.run.pin import pin
from jobs.run.run import Run
from lakehouse.opening import open_engine, open_store
from tests.builders import event
from tests.engines import SHORT_LIVED
from tests.oracles import items as oracles

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DENVER = "America/Denver"
RANGES = [(date(2026, 3, 7), date(2026, 3, 9)), (date(2026, 10, 31), date(2026, 11, 2))]
"""A day before, the day, and a day after Denver's clocks go forward and back."""

DAYS = [day for first, last in RANGES for day in days_between(first, last)]
EDGES = [timedelta(0), timedelta(hours=7), timedelta(hours=8, minutes=59), timedelta(days=1, microseconds=-1)]
QUERIES = {
    "hourly_counts": "select day::varchar as day, hour, item_id, count, event_count, "
    "epoch_us(first_occurred_at) as first_us, epoch_us(last_occurred_at) as last_us from hourly_counts order by all",
    "top_lists": 'select day::varchar as day, "window", epoch_us(bucket_start) as start_us, "position", item_id, '
    "count, rank, population from top_lists order by all",
    "as shown": "select * from daily_counts order by all",
}
CASES = [("sail", "UTC"), *((engine, zone) for engine in ("sail", "spark") for zone in ("Asia/Tokyo", DENVER))]


def some_events() -> list[dict[str, Any]]:
    """Events at the edges of each day, written with the offsets of three zones; one copied across each midnight."""
    rows = []
    for day in DAYS:
        for number, edge in enumerate(EDGES):
            at = oracles.start_of(day) + edge
            for item in ("a", "b")[: 1 + number % 2]:
                rows.append(event(len(rows), event_id=f"{item}{at}", item_id=item, occurred_at=at, weight=1 + number))
        late = oracles.start_of(day) - timedelta(minutes=1)
        rows += [event(len(rows), event_id=f"copy {day}", item_id="c", occurred_at=late, weight=9)]
        rows += [event(len(rows), event_id=f"copy {day}", item_id="c", occurred_at=late + timedelta(minutes=2))]
    return rows


def write_lines(folder: Path) -> Path:
    """The events as a producer writes them, each third in another zone's words."""
    zones = [UTC, ZoneInfo("Asia/Tokyo"), ZoneInfo(DENVER)]
    lines = [
        json.dumps(
            {name: row[name] for name in ("event_id", "item_id", "weight")}
            | {"occurred_at": row["occurred_at"].astimezone(zones[number % 3]).isoformat()}
        )
        for number, row in enumerate(some_events())
    ]
    file = folder / "events.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def night_of(name: str, home: Path, file: Path) -> list[str]:
    """Ingest the file and correct its days, checks by Great Expectations left out; what the recount says."""
    options = "spark.driver.extraJavaOptions"
    quick = SHORT_LIVED | {options: f"{SHORT_LIVED[options]} -Duser.timezone={os.environ['TZ']}"}
    spark = {"master": "local[2]", "driver_memory": "1g", "conf": quick}
    conf = Settings.model_validate({"home": home, "engine": name, "spark": spark})
    differences: list[str] = []
    with open_engine(conf) as engine:
        store = open_store(conf, engine)
        ingest_file(store, conf, a_later_clock, file, kind=Kind.ITEMS, mapping={}, default_timezone=None)
        for first, last in RANGES:
            run = Run(conf, store, clock.now, pin(store, conf, clock.now, f"{first}", first, last, True), engine)
            for job in (hourly_counts, daily_counts, top_lists):
                job.stage(run)
            run.state.distinct = check.distinct_events(run)
            differences += check.recount_differences(run)
            commit.commit(run)
        if name == "spark":
            zone_of_jvm = engine.spark.sparkContext._jvm.java.util.TimeZone.getDefault().getID()
            assert zone_of_jvm == os.environ["TZ"], zone_of_jvm
    return differences


def a_later_clock() -> datetime:
    """When the events are taken in: none of them lies ahead."""
    return datetime(2026, 12, 31, tzinfo=UTC)


def python(zone: str, *words: str, home: Path) -> str:
    """What a Python process in that zone prints."""
    environ = os.environ | {"TZ": zone, "DAYBREAK_HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *words], env=environ, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def expected() -> dict[str, list[dict[str, Any]]]:
    """The rows of the queries by plain Python."""
    events = some_events()
    hours = [
        {name: row[name] for name in ("hour", "item_id", "count", "event_count")}
        | {"day": str(row["day"])}
        | {"first_us": to_micros(row["first_occurred_at"]), "last_us": to_micros(row["last_occurred_at"])}
        for row in oracles.hourly_counts(events, DAYS)
    ]
    lists = [
        {name: row[name] for name in ("window", "position", "item_id", "count", "rank", "population")}
        | {"day": str(row["day"]), "start_us": to_micros(row["bucket_start"])}
        for row in oracles.top_lists(events, DAYS, 1000)
    ]
    return {"hourly_counts": hours, "top_lists": lists}


@pytest.fixture(scope="module")
def shown() -> dict[str, str]:
    """What `daybreak sql` shows of daily_counts, by the first case that got there; all must show the same."""
    return {}


@pytest.mark.parametrize(("engine", "zone"), CASES)
def test_the_zone_of_the_host_changes_no_row(engine: str, zone: str, tmp_path: Path, shown: dict[str, str]) -> None:
    script = "import sys; from pathlib import Path; from tests.integration import test_timezones as t; "
    script += "print(t.night_of(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))"
    file = write_lines(tmp_path)
    said = python(zone, "-c", script, engine, str(tmp_path), str(file), home=tmp_path)
    assert said.splitlines()[-1] == "[]", said
    found = {
        name: python(zone, "-m", "daybreak.cli", "sql", query, "--format", "json", home=tmp_path)
        for name, query in QUERIES.items()
    }
    for name, rows in expected().items():
        assert in_order(map(json.loads, found[name].splitlines())) == in_order(rows), name
    assert found["as shown"] == shown.setdefault("first", found["as shown"])
    assert "2026-03-08" in found["as shown"]


def in_order(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Rows as texts, sorted."""
    return sorted(json.dumps(row, sort_keys=True, default=int) for row in rows)
