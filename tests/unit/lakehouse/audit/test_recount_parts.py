"""DuckDB's recount says the same in any number of parts, within a limit, and leaves nothing behind."""

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakehouse.audit import recount
from lakehouse.audit.duck import Limits
from lakehouse.audit.first_copies import CountedDays
from tests.builders import event, events

DAY = date(2026, 3, 1)
ROWS = 2_000


def event_file(folder: Path) -> str:
    """Events of 28 hours around the day, half of them copies."""
    chance = random.Random(3)
    start = datetime(2026, 2, 28, 22, tzinfo=UTC)
    rows = [
        event(
            number,
            event_id=f"é{chance.randrange(ROWS // 2)}",
            item_id=chance.choice(["A", "B", "café", "😀"]),
            weight=chance.choice([1, 2, 2**31 - 1]),
            occurred_at=start + timedelta(microseconds=chance.randrange(28 * 3_600_000_000)),
        )
        for number in range(ROWS)
    ]
    file = folder / "events.parquet"
    pq.write_table(events(*rows), file)
    return str(file)


def found(file: str, part_rows: int, spill: Path) -> list[str]:
    """All that is found when nothing was staged: every total that DuckDB counts, and rows that are due."""
    return recount.differences(
        [file],
        {},
        days=CountedDays(DAY, DAY, timedelta(hours=1)),
        day_rows={DAY: ROWS},
        depth=3,
        full_below=10**9,
        limits=Limits(part_rows, memory=2**28, spill=spill),
    )


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_any_number_of_parts_finds_the_same(parts: int, tmp_path: Path) -> None:
    file, spill = event_file(tmp_path), tmp_path / "spill"
    spill.mkdir()
    at_once = found(file, ROWS, spill)
    assert any(line.startswith("hourly_counts: 2026-03-01") for line in at_once)
    assert found(file, -(-ROWS // parts), spill) == at_once
    assert not list(spill.iterdir())


def test_the_spill_folder_goes_when_the_recount_fails(tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    with pytest.raises(Exception, match="recount failed"):
        found(__file__, ROWS, spill)
    assert not list(spill.iterdir())
