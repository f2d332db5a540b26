"""Every job's frames are planned so that they scale: no step holds all rows, and only the days asked are read.

A job that returns frames brings a line for `PLANS`; a test notices one that does not.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from daybreak import clock
from daybreak.events import INSTANT, ITEM_EVENT, SCORE_EVENT
from daybreak.rules.boards import Board
from daybreak.settings import Settings
from jobs.boards import player_days, ranks
from jobs.items import daily_counts, hourly_counts, top_lists
from jobs.run.pin import pin
from jobs.run.run import Run
from lakehouse.engines.engine import Engine
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables import registry as tables
from tests import plans
from tests.builders import events
from tests.derivation import LOOKBACK

pytestmark = pytest.mark.slow

DAY = date(2026, 3, 1)
JOBS = Path(__file__).parents[2] / "jobs"
SAMPLE: dict[pa.DataType, Any] = {
    pa.string(): "a",
    pa.int64(): 1,
    pa.int32(): 1,
    pa.bool_(): True,
    pa.date32(): DAY,
    INSTANT: datetime(2026, 3, 1, 12, tzinfo=UTC),
}
CALENDAR = pa.schema(
    [
        ("board", pa.string()),
        ("season", pa.string()),
        ("on_day", pa.date32()),
        ("period", pa.string()),
        ("day", pa.date32()),
        ("period_end", pa.date32()),
    ]
)


class Sources:
    """Frames over real files with a few rows: empty ones would be planned away."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder

    def frame(self, schema: pa.Schema) -> DataFrame:
        row = {
            field.name: Decimal(1) if pa.types.is_decimal(field.type) else SAMPLE.get(field.type) for field in schema
        }
        file = self.folder / f"{len(list(self.folder.iterdir()))}.parquet"
        pq.write_table(pa.Table.from_pylist([row] * 3, schema=schema), file)
        return self.engine.read([str(file)], schema)

    def table(self, table: tables.Table) -> DataFrame:
        return self.frame(table.schema)


def counted_in_parts(of: Sources) -> DataFrame:
    keyed = of.frame(ITEM_EVENT).transform(hourly_counts.with_counted_day, DAY, DAY, LOOKBACK)
    keyed = keyed.transform(hourly_counts.with_copy_key)
    copied = keyed.transform(hourly_counts.filter_part, 1, 3).transform(hourly_counts.count_copies)
    known = copied.select("copy_key")
    first = keyed.join(known, "copy_key", "left_semi").transform(hourly_counts.filter_first_copies)
    single = keyed.join(known, "copy_key", "left_anti").transform(hourly_counts.filter_own_day)
    parts = single.transform(hourly_counts.count_items_by_hour).unionByName(
        first.transform(hourly_counts.filter_own_day).transform(hourly_counts.count_items_by_hour)
    )
    return parts.transform(hourly_counts.merge_parts)


def scored(of: Sources, kind: tables.Table, schema: pa.Schema) -> DataFrame:
    return player_days.scored_events(of.frame(schema), kind.name, DAY, DAY, LOOKBACK)


def players_of(semantics: str) -> Callable[[Sources], DataFrame]:
    board = Board.model_validate({"name": "b", "semantics": semantics})
    return lambda of: player_days.player_days(of.table(player_days.SCORED), board, ["", "s"], ["e1"])


PARTIALS = pa.schema(
    [*(field for field in tables.PLAYER_DAYS.schema if field.name not in ("day", "on_day")), ("on_day", pa.date32())]
)
"""`player_days` as its periods are merged: under the day that it is about."""


def ranks_of(semantics: str, depth: int | None) -> Callable[[Sources], DataFrame]:
    board = Board.model_validate({"name": "b", "semantics": semantics})

    def frame(of: Sources) -> DataFrame:
        days = ranks.in_periods(of.frame(PARTIALS), of.frame(CALENDAR))
        return ranks.rank_by_counting(ranks.merge_days(days, board), board, depth)

    return frame


PLANS: dict[str, dict[str, Callable[[Sources], DataFrame]]] = {
    "hourly_counts": {
        "at once": lambda of: hourly_counts.hourly_counts(of.frame(ITEM_EVENT), DAY, DAY, LOOKBACK),
        "in parts": counted_in_parts,
    },
    "daily_counts": {
        "complete": lambda of: daily_counts.daily_counts(of.table(tables.HOURLY_COUNTS), []),
        "incomplete": lambda of: daily_counts.daily_counts(of.table(tables.HOURLY_COUNTS), [DAY]),
    },
    "top_lists": {
        "lists": lambda of: top_lists.top_lists(of.table(tables.HOURLY_COUNTS), of.table(tables.DAILY_COUNTS), 9)
    },
    "player_days": {
        "scored scores": lambda of: scored(of, tables.SCORE_EVENTS, SCORE_EVENT),
        "scored items": lambda of: scored(of, tables.ITEM_EVENTS, ITEM_EVENT),
        **{semantics: players_of(semantics) for semantics in ("sum", "best", "latest")},
    },
    "ranks": {
        f"{semantics}, {depth or 'all'}": ranks_of(semantics, depth)
        for semantics in ("sum", "best", "latest")
        for depth in (None, 10)
    },
}


ASSEMBLING = {"derive", "first_copies"}
"""Modules that stage what functions of others make, or whose functions are planned as parts of others."""


def makes_frames(file: Path) -> bool:
    """Whether a job's module has a function that gives a frame."""
    return any(line.startswith("def ") and "-> DataFrame" in line for line in file.read_text().splitlines())


def test_every_job_that_makes_frames_is_looked_at() -> None:
    assert {file.stem for file in JOBS.rglob("*.py") if makes_frames(file)} - ASSEMBLING == set(PLANS)


@pytest.mark.parametrize(("job", "which"), [(job, which) for job, found in PLANS.items() for which in found])
def test_no_step_of_a_job_holds_all_rows(spark_engine: Engine, tmp_path: Path, job: str, which: str) -> None:
    frame = PLANS[job][which](Sources(spark_engine, tmp_path))
    assert plans.faults(frame) == []
    with plans.without_broadcasts(spark_engine.spark):
        again = PLANS[job][which](Sources(spark_engine, tmp_path))
        assert plans.faults(again) == []


def test_the_look_at_plans_sees_what_it_is_for(spark_engine: Engine, tmp_path: Path) -> None:
    rows = Sources(spark_engine, tmp_path).table(tables.DAILY_COUNTS)
    numbered = rows.withColumn("n", F.row_number().over(Window.orderBy("count")))
    assert any("a window over all rows" in each for each in plans.faults(numbered))
    assert any("in one task" in each for each in plans.faults(rows.repartition(1)))
    for small in (
        rows.crossJoin(rows.select("day")),
        rows.join(rows.select(F.col("day").alias("d")), F.expr("day < d")),
    ):
        assert any("each row with each" in each for each in plans.faults(small))
        with plans.without_broadcasts(spark_engine.spark):
            assert any("each row with each" in each for each in plans.faults(small.filter("count > 0")))
    spark_engine.spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        assert plans.faults(rows.groupBy("item_id").count()) == ["adaptive execution is off"]
    finally:
        spark_engine.spark.conf.set("spark.sql.adaptive.enabled", "true")


def test_a_night_reads_its_days_and_the_day_before(engine: Engine, tmp_path: Path) -> None:
    conf, store = Settings(home=tmp_path), DeltaRsStore(tmp_path / "lake")
    days = [DAY + timedelta(days=n) for n in range(8)]
    for day in days:
        store.append(tables.ITEM_EVENTS, events({"occurred_at": f"{day} 12:00"}))
    run = Run(conf, store, clock.now, pin(store, conf, clock.now, "r", days[4], days[5], True), engine)
    store.append(tables.ITEM_EVENTS, events({"occurred_at": f"{days[4]} 13:00"}))
    files = [Path(file) for file in run.pinned_events().inputFiles()]
    assert sorted(file.parent.name for file in files) == [f"day={day}" for day in days[3:6]]


def test_the_days_bounds_reach_the_files(spark_engine: Engine, tmp_path: Path) -> None:
    frame = hourly_counts.hourly_counts(Sources(spark_engine, tmp_path).frame(ITEM_EVENT), DAY, DAY, LOOKBACK)
    scans = [node for node in plans.nodes(frame) if node.nodeName().startswith("Scan")]
    pushed = [node.verboseStringWithOperatorId().split("PushedFilters: ")[1].splitlines()[0] for node in scans]
    bounds = [("2026-03-01T00:00", "2026-03-02T00:00"), ("2026-02-28T23:00", "2026-03-01T00:00")]
    for found, (start, end) in zip(pushed, bounds, strict=True):
        assert f"GreaterThanOrEqual(occurred_at,{start}" in found
        assert f"LessThan(occurred_at,{end}" in found
