"""Generations are allotted by one rule, for the lists of a day and for a board in a period."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from daybreak.errors import FenceRefusedError
from jobs.publishing.generations import Content, allot, board_in, lists_of, newest, record
from jobs.run.run import Pin
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables.registry import PUBLICATIONS

D1, D2 = date(2026, 3, 1), date(2026, 3, 2)
AT = datetime(2026, 3, 3, tzinfo=UTC)
PIN = Pin(run_id="r", first=D1, last=D2, lake_version=1, read_version=1, attempt=1, days=[])


def lists(day: date, content_hash: str) -> Content:
    return Content(lists_of(day), day, content_hash)


def board(period: str, as_of: date, content_hash: str) -> Content:
    return Content(board_in("goals", period), as_of, content_hash)


@pytest.fixture
def store(tmp_path: Path) -> DeltaRsStore:
    return DeltaRsStore(tmp_path)


def test_equal_content_keeps_its_generation_and_other_content_gets_the_next(store: DeltaRsStore) -> None:
    first = allot(store, PIN, [lists(D1, "a"), lists(D2, "a")], AT)
    again = allot(store, PIN, [lists(D1, "a"), lists(D2, "b")], AT)
    assert (first, again) == ({lists_of(D1): 1, lists_of(D2): 1}, {lists_of(D1): 1, lists_of(D2): 2})
    assert store.read(PUBLICATIONS).num_rows == 3
    assert newest(store) == {lists_of(D1): (1, "a"), lists_of(D2): (2, "b")}


def test_boards_count_by_period_and_not_by_the_day_that_they_are_as_of(store: DeltaRsStore) -> None:
    assert allot(store, PIN, [board("all_time", D1, "a")], AT) == {board_in("goals", "all_time"): 1}
    assert allot(store, PIN, [board("all_time", D2, "a")], AT) == {board_in("goals", "all_time"): 1}
    assert allot(store, PIN, [board("all_time", D2, "b"), board("2026", D2, "b")], AT) == {
        board_in("goals", "all_time"): 2,
        board_in("goals", "2026"): 1,
    }


def test_boards_and_lists_of_one_day_stay_apart(store: DeltaRsStore) -> None:
    for content_hash in ("a", "b", "c"):
        allot(store, PIN, [board("all_time", D1, content_hash)], AT)
    assert allot(store, PIN, [lists(D1, "a")], AT) == {lists_of(D1): 1}
    assert newest(store, [D1]) == {board_in("goals", "all_time"): (3, "c"), lists_of(D1): (1, "a")}


def test_a_generation_is_given_to_one_run(store: DeltaRsStore) -> None:
    allot(store, PIN, [lists(D1, "a")], AT)
    with pytest.raises(FenceRefusedError, match=f"publish/{D1} is at version 1"):
        record(store, PIN, [lists(D1, "b")], {lists_of(D1): 1}, AT)
