"""Golden cases: a folder's `input.jsonl` gives what its `expect.yaml` works out by hand.

The rows go through the one intake, then through the plain-Python oracle and the exact ranking.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import oracles
import pyarrow as pa
import pytest
import yaml

from daybreak import ranking
from daybreak.decoding import read_file
from daybreak.events import Kind
from daybreak.intake import Intake

CASES = sorted(path.parent for path in Path(__file__).parent.glob("*/expect.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden_case(case: Path) -> None:
    expect: dict[str, Any] = yaml.safe_load((case / "expect.yaml").read_text())
    intake = Intake(
        Kind(expect["kind"]),
        source=case.name,
        received_at=datetime(2026, 3, 3, tzinfo=UTC),
        default_timezone=None,
        future_tolerance=timedelta(minutes=5),
    )
    taken = [intake.take(batch) for batch in read_file(case / "input.jsonl")]
    accepted = pa.concat_tables(part.accepted for part in taken).to_pylist()
    refused = [row for part in taken for row in part.refused.to_pylist()]
    assert sum(part.read for part in taken) == expect["read"]
    assert len(accepted) == expect["accepted"]
    assert {row["offset"]: row["code"] for row in refused} == expect["refused"]
    assert {row["day"] for row in accepted} == set(expect["days"])
    for day, wanted in expect["days"].items():
        counts = oracles.count_day(accepted, day)
        accounting = oracles.day_accounting(accepted, day)
        assert (accounting["rows"], accounting["duplicate"]) == (wanted["rows"], wanted["duplicate"]), day
        top = [tuple(row) for row in wanted["top"]]
        assert oracles.top(counts, len(top) + 1) == top
        assert [(e.position, e.rank, e.item_id, e.count) for e in ranking.top(counts, len(top) + 1)] == top
