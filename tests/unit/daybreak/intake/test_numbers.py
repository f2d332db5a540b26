"""Numbers are taken as they are written, exactly, or not at all."""

from decimal import Decimal

import pyarrow as pa
import pytest

from daybreak.intake.numbers import integers, points_of


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 7, 0, 8], pa.int64()),
        pa.array(["1", "", "7.0", "-1", "8"]),
        pa.array([1.0, None, 7.0, 0.5, 1e300]),
        pa.array([Decimal("1.00"), None, Decimal(7), Decimal("1.5"), Decimal(8)], pa.decimal128(38, 9)),
    ],
    ids=lambda column: str(column.type),
)
def test_whole_numbers_up_to_the_limit_are_taken_and_none_means_the_default(column: pa.Array) -> None:
    found = integers(column, 5, 1, 7)
    assert found.values.tolist() == [1, 1, 7, 1, 1]
    assert found.bad.tolist() == [False, False, False, True, True]


def test_a_column_that_is_not_there_is_all_defaults() -> None:
    found = integers(None, 2, 1, 7)
    assert (found.values.tolist(), found.bad.tolist(), found.shown(0)) == ([1, 1], [False, False], "")


def test_points_are_never_rounded() -> None:
    points, bad = points_of(pa.array(["-0.0001", "99999999999999.9999", "1e3", "0.00001", "1e14", "NaN", "x", None]))
    assert points.to_pylist()[:3] == [Decimal("-0.0001"), Decimal("99999999999999.9999"), Decimal(1000)]
    assert bad.tolist() == [False] * 3 + [True] * 4 + [False]
    assert points.null_count == 5
