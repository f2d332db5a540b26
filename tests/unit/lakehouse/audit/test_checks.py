"""Each expectation of the registry fails when its number is wrong, and only then."""

import pytest

from lakehouse.audit import checks
from lakehouse.tables.registry import DAILY_COUNTS

pytestmark = pytest.mark.slow
GOOD = {f"nulls_{name}": 0 for name in DAILY_COUNTS.required} | {
    "rows": 3,
    "distinct_grains": 3,
    "min_count": 1,
    "min_event_count": 1,
    "total_count": 9,
    "total_event_count": 5,
}


def failed(**changed: int) -> set[str]:
    results = checks.validate({"daily_counts": GOOD | changed}, staged_rows={"daily_counts": 3}, event_total=5)
    assert len(results) == len(DAILY_COUNTS.required) + 5
    return {result.column for result in results if not result.passed}


def test_a_good_profile_passes_even_when_totals_pass_64_bits() -> None:
    assert failed() == set()
    assert failed(total_count=2**70) == set()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("nulls_item_id", 1),
        ("rows", 2),
        ("distinct_grains", 2),
        ("min_count", 0),
        ("min_event_count", 0),
        ("total_event_count", 6),
    ],
)
def test_each_wrong_number_fails_its_own_expectation(column: str, value: int) -> None:
    assert failed(**{column: value}) == {column}


def test_days_must_weigh_what_hours_weigh() -> None:
    hourly = GOOD | {"nulls_hour": 0, "min_hour": 0}
    results = checks.validate(
        {"hourly_counts": hourly, "daily_counts": GOOD | {"total_count": 2**70}},
        staged_rows={"hourly_counts": 3, "daily_counts": 3},
        event_total=5,
    )
    wrong = [hourly for hourly in results if not hourly.passed and hourly.column == "total_count"]
    assert [result.table for result in wrong] == ["daily_counts"]
