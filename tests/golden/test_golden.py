"""Golden cases: a folder's `input.jsonl` gives what its `expect.yaml` works out by hand.

The rows go through the one intake, then through the plain-Python oracle, the exact ranking, and the jobs on
each engine.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from daybreak import ranking
from daybreak.events import Kind
from daybreak.intake.contract import Intake
from daybreak.intake.files import read_file
from lakehouse.engines.engine import Engine
from lakehouse.tables import registry as tables
from tests.builders import lake_files
from tests.derivation import derive
from tests.oracles import items as oracles

CASES = sorted(path.parent for path in Path(__file__).parent.glob("*/expect.yaml"))
RECEIVED = datetime(2026, 3, 3, tzinfo=UTC)
Row = dict[str, Any]


def expectation(case: Path) -> Row:
    found: Row = yaml.safe_load((case / "expect.yaml").read_text())
    return found


def taken(case: Path, kind: Kind) -> tuple[int, list[Row], list[Row]]:
    """How many rows were read, the accepted and the refused ones."""
    intake = Intake(
        kind, source=case.name, received_at=RECEIVED, default_timezone=None, future_tolerance=timedelta(minutes=5)
    )
    parts = [intake.take(batch) for batch in read_file(case / "input.jsonl")]
    accepted = pa.concat_tables(part.accepted for part in parts).to_pylist()
    return sum(part.read for part in parts), accepted, [row for part in parts for row in part.refused.to_pylist()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden_case(case: Path) -> None:
    expect = expectation(case)
    read, accepted, refused = taken(case, Kind(expect["kind"]))
    assert read == expect["read"]
    assert len(accepted) == expect["accepted"]
    assert {row["offset"]: row["code"] for row in refused} == expect["refused"]
    assert {row["day"] for row in accepted} == set(expect["days"])
    for day, wanted in expect["days"].items():
        counts = oracles.count_day(accepted, day)
        accounting = oracles.day_accounting(accepted, day)
        assert (accounting["rows"], accounting["duplicate"]) == (wanted["rows"], wanted["duplicate"]), day
        top = [tuple(row) for row in wanted["top"]]
        assert oracles.top(counts, len(top) + 1) == top
        assert ranking.ranks([count for *_, count in top], "competition") == [rank for _, rank, *_ in top]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case for case in CASES if expectation(case)["kind"] == "items"], ids=lambda case: case.name
)
def test_golden_case_by_the_jobs(case: Path, engine: Engine, tmp_path: Path) -> None:
    expect = expectation(case)
    _, accepted, _ = taken(case, Kind.ITEMS)
    days = expect["days"]
    found = derive(engine, lake_files(accepted, tmp_path), tmp_path, min(days), max(days), 100)
    lists: dict[object, list[tuple[object, ...]]] = {}
    events: dict[object, int] = {}
    for row in found.rows(tables.TOP_LISTS):
        if row["window"] == "day":
            lists.setdefault(row["day"], []).append((row["position"], row["rank"], row["item_id"], row["count"]))
    for row in found.rows(tables.HOURLY_COUNTS):
        events[row["day"]] = events.get(row["day"], 0) + row["event_count"]
    assert lists == {day: [tuple(row) for row in wanted["top"]] for day, wanted in days.items() if wanted["top"]}
    assert events == {day: wanted["rows"] - wanted["duplicate"] for day, wanted in days.items()}
    assert found.recounted({day: wanted["rows"] for day, wanted in days.items()}) == []
