"""What a day's report says of its publication."""

from datetime import UTC, date, datetime
from pathlib import Path

from jobs.items.report import generation_of
from jobs.publishing.generations import Content, allot, board_in, lists_of
from jobs.run.run import Pin
from lakehouse.stores.delta_rs import DeltaRsStore

DAY = date(2026, 3, 1)
AT = datetime(2026, 3, 3, tzinfo=UTC)


def test_the_generation_is_that_of_the_lists_and_not_of_a_board_as_of_the_same_day(tmp_path: Path) -> None:
    store = DeltaRsStore(tmp_path)
    pin = Pin(run_id="r", first=DAY, last=DAY, lake_version=1, read_version=1, attempt=1, days=[])
    assert generation_of(store, DAY) == 0
    allot(store, pin, [Content(lists_of(DAY), DAY, "a")], AT)
    for content_hash in ("a", "b", "c"):
        allot(store, pin, [Content(board_in("goals", "all_time"), DAY, content_hash)], AT)
    assert generation_of(store, DAY) == 1
