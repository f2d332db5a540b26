"""Counting part by part gives the rows that counting at once gives: those of the plain-Python oracle."""

import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from daybreak import clock
from daybreak.settings import Night as NightSettings
from daybreak.settings import Settings
from jobs.items import hourly_counts
from jobs.run.pin import pin
from jobs.run.run import Run, run_folder
from lakehouse.opening import open_engine
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables import registry as tables
from tests.builders import event, events
from tests.oracles import items as oracles

pytestmark = pytest.mark.slow

FIRST, LAST = date(2026, 3, 1), date(2026, 3, 2)
START = datetime(2026, 2, 28, 22, tzinfo=UTC)
ITEMS = ("A", "a", "café", "cafe\u0301", "😀", "ש", "00", "0")


MANY_COPIES, FEW_COPIES = 0.33, 0.03
"""Many: each part orders its own copies. Few: those of all parts fit into one and are ordered at once."""


def mixed(copied: float, count: int = 3_000) -> list[dict[str, Any]]:
    """Events of 50 hours: one item has 40 %, a share `copied` repeats ids, many of them across a midnight."""
    chance = random.Random(1)
    rows: list[dict[str, Any]] = []
    for number in range(count):
        at = START + timedelta(microseconds=chance.randrange(50 * 3_600_000_000))
        name = f"é-{number}-🚀" if number % 3 else f"e{number}"
        if rows and chance.random() < copied:
            original = chance.choice(rows[-300:])
            name = original["event_id"]
            at = original["occurred_at"] + timedelta(minutes=chance.choice([0, 1, 30, 59, 61, 1440]))
        rows.append(
            event(
                number,
                event_id=name,
                item_id="hot" if chance.random() < 0.4 else chance.choice(ITEMS),
                weight=chance.choice([1, 1, 3, 2**32]),
                occurred_at=at,
                received_at=at + timedelta(seconds=chance.randrange(9)),
            )
        )
    return rows


def by_oracle(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[tuple[date, int, str], list[dict[str, Any]]] = {}
    for day in (FIRST, LAST):
        for row in oracles.distinct_of_day(rows, day):
            groups.setdefault((day, row["occurred_at"].hour, row["item_id"]), []).append(row)
    return [
        {
            "day": day,
            "hour": hour,
            "item_id": item,
            "count": sum(row["weight"] for row in group),
            "event_count": len(group),
            "first_occurred_at": min(row["occurred_at"] for row in group),
            "last_occurred_at": max(row["occurred_at"] for row in group),
        }
        for (day, hour, item), group in sorted(groups.items())
    ]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["day"], row["hour"], row["item_id"]))


@dataclass(frozen=True)
class Runs:
    """A lake with the mixed events, and runs that share one engine's folder."""

    home: Path
    store: DeltaRsStore
    rows: list[dict[str, Any]]

    def staged(self, parts: int) -> tuple[list[dict[str, Any]], Path]:
        """The rows staged with that many parts, and the run's folder."""
        state = pin(self.store, Settings(home=self.home), clock.now, f"in-{parts}", FIRST, LAST, True)
        seen = sum(day.rows + day.lookback_rows for day in state.pin.days)
        conf = Settings(home=self.home, night=NightSettings(part_rows=-(-seen // parts), memory_pool=2**29))
        assert hourly_counts.part_count(seen, conf.night.part_rows) == parts
        run = Run(conf, self.store, clock.now, state, open_engine(conf))
        leftover = run.folder / hourly_counts.PARTS / "0"
        leftover.mkdir(parents=True)
        (leftover / "half.parquet").write_bytes(b"of an earlier try")
        try:
            found = hourly_counts.stage(run)
        finally:
            run.engine.stop()
        rows = [row for file in found.files for row in pq.read_table(file).to_pylist()]
        assert found.rows == len(rows) == run.state.staged_rows[tables.HOURLY_COUNTS.name]
        return in_order(rows), run_folder(conf, state.pin.run_id)


@pytest.fixture(scope="module", params=[MANY_COPIES, FEW_COPIES])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    home = tmp_path_factory.mktemp("parts")
    store = DeltaRsStore(home / "lake")
    rows = mixed(request.param)
    store.append(tables.ITEM_EVENTS, events(*rows))
    return Runs(home, store, rows)


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_any_number_of_parts_gives_the_oracles_rows(runs: Runs, parts: int) -> None:
    found, folder = runs.staged(parts)
    assert found == in_order(by_oracle(runs.rows))
    if parts > 1:
        assert not (folder / hourly_counts.PARTS).exists()


@pytest.mark.parametrize(("copied", "least", "most"), [(MANY_COPIES, 1 / 3, 0.7), (FEW_COPIES, 0.03, 1 / 7)])
def test_copies_are_too_many_for_a_part_or_few_enough(copied: float, least: float, most: float) -> None:
    rows = mixed(copied)
    times = Counter(row["event_id"] for row in rows)
    assert least < sum(times[row["event_id"]] > 1 for row in rows) / len(rows) < most


def test_the_events_have_what_the_law_is_about() -> None:
    rows = mixed(MANY_COPIES)
    seen = [row for row in rows if row["day"] in (FIRST, LAST)]
    assert sum(len(oracles.distinct_of_day(rows, day)) for day in (FIRST, LAST)) < 0.85 * len(seen)
    assert sum(row["item_id"] == "hot" for row in seen) > 0.35 * len(seen)
    midnight = datetime(2026, 3, 2, tzinfo=UTC)
    late = {row["event_id"] for row in rows if midnight - oracles.HOUR <= row["occurred_at"] < midnight}
    assert len({row["event_id"] for row in rows if row["day"] == LAST} & late) > 5
