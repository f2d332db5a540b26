"""Sums near 2^63: exact while a day keeps the contract, refused loudly when it cannot or does not.

An item's total is a bigint. `pin` refuses a day of more than `ROWS_MAX` rows, and intake a weight above
`WEIGHT_MAX`; together no sum reaches 2^63. Rows of a foreign writer may carry any weight: Spark then fails,
Sail's sum wraps around silently (Spark raises, DuckDB widens), and the recount or the profile stops the run.
"""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daybreak import clock
from daybreak.errors import CheckFailedError, LakeFailedError
from daybreak.events import ITEM_EVENT, WEIGHT_MAX
from daybreak.settings import Settings
from jobs.items import check
from jobs.items.daily_counts import daily_counts
from jobs.items.derive import derive as derive_night
from jobs.items.hourly_counts import hourly_counts
from jobs.run import pin
from jobs.run.run import Run
from lakehouse.audit import checks
from lakehouse.engines.engine import Engine
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables import registry as tables
from tests.builders import event, events, lake_files
from tests.derivation import LOOKBACK, derive

pytestmark = pytest.mark.slow

DAY = date(2026, 3, 1)
LARGEST = 2**63 - 1
FOREIGN = [
    pytest.param([2**62, 2**62], id="wraps to the smallest"),
    pytest.param([2**62] * 4, id="wraps to nothing"),
    pytest.param([2**62] * 5, id="wraps to a harmless number"),
]


def hours(folder: Path, *counts: int) -> list[str]:
    """A file of hourly_counts, one row an hour."""
    at = event(0)["occurred_at"]
    fixed = {"day": DAY, "item_id": "A", "event_count": 1, "first_occurred_at": at, "last_occurred_at": at}
    rows = [fixed | {"hour": hour, "count": count} for hour, count in enumerate(counts)]
    file = folder / "hours.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=tables.HOURLY_COUNTS.schema), file)
    return [str(file)]


def test_the_largest_day_that_pin_admits_stays_below_2_to_63() -> None:
    assert pin.ROWS_MAX * WEIGHT_MAX <= LARGEST


def test_pin_refuses_a_day_of_more_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DeltaRsStore(tmp_path / "lake")
    store.append(tables.ITEM_EVENTS, events({}, {}, {}, {}))
    monkeypatch.setattr(pin, "ROWS_MAX", 3)
    with pytest.raises(CheckFailedError, match="2026-03-01 has 4 rows, above 3; split it by source"):
        pin.pin(store, Settings(home=tmp_path), clock.now, "r", DAY, DAY, allow_incomplete=True)
    monkeypatch.setattr(pin, "ROWS_MAX", 4)
    assert (
        pin.pin(store, Settings(home=tmp_path), clock.now, "r", DAY, DAY, allow_incomplete=True).pin.days[0].rows == 4
    )


def test_the_largest_sum_is_exact(engine: Engine, tmp_path: Path) -> None:
    files = hours(tmp_path, pin.ROWS_MAX * WEIGHT_MAX - WEIGHT_MAX, WEIGHT_MAX - 1, 1)
    frame = engine.read(files, tables.HOURLY_COUNTS.schema)
    staged = engine.stage(daily_counts(frame, []), tables.DAILY_COUNTS, tmp_path / "daily")
    assert [row["count"] for row in pq.read_table(staged.files[0]).to_pylist()] == [pin.ROWS_MAX * WEIGHT_MAX]
    found = checks.profile(engine, engine.read(staged.files, tables.DAILY_COUNTS.schema), tables.DAILY_COUNTS)
    assert found["total_count"] == pin.ROWS_MAX * WEIGHT_MAX


def test_the_profiles_total_passes_63_bits_and_stays_exact(engine: Engine, tmp_path: Path) -> None:
    files = hours(tmp_path, *[LARGEST] * 20)
    frame = engine.read(files, tables.HOURLY_COUNTS.schema)
    found = checks.profile(engine, frame, tables.HOURLY_COUNTS)
    assert found["total_count"] == 20 * LARGEST


def test_spark_refuses_a_sum_of_foreign_weights(spark_engine: Engine, tmp_path: Path) -> None:
    files = lake_files([event(n, weight=2**62) for n in range(4)], tmp_path)
    frame = hourly_counts(spark_engine.read(files, ITEM_EVENT), DAY, DAY, LOOKBACK)
    with pytest.raises(LakeFailedError, match="OVERFLOW"):
        spark_engine.stage(frame, tables.HOURLY_COUNTS, tmp_path / "hourly")


@pytest.mark.parametrize("weights", FOREIGN)
def test_what_wraps_on_sail_differs_from_the_recount(sail_engine: Engine, tmp_path: Path, weights: list[int]) -> None:
    files = lake_files([event(n, weight=weight) for n, weight in enumerate(weights)], tmp_path)
    found = derive(sail_engine, files, tmp_path, DAY, DAY, 3)
    wrapped = found.rows(tables.HOURLY_COUNTS)[0]["count"]
    assert wrapped != sum(weights), "Sail no longer wraps: say so in ENGINES.md and drop the warning"
    assert any("hourly_counts" in difference for difference in found.recounted({DAY: len(weights)}))


@pytest.mark.parametrize("weights", FOREIGN)
def test_a_night_of_foreign_weights_is_refused(sail_engine: Engine, tmp_path: Path, weights: list[int]) -> None:
    conf, store = Settings(home=tmp_path), DeltaRsStore(tmp_path / "lake")
    store.append(tables.ITEM_EVENTS, events(*({"weight": weight} for weight in weights)))
    run = Run(conf, store, clock.now, pin.pin(store, conf, clock.now, "r", DAY, DAY, True), sail_engine)
    derive_night(run)
    with pytest.raises(CheckFailedError, match="is not committed"):
        check.check(run)
    assert run.state.step == "derived"
