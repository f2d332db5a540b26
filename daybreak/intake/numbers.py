"""Whole numbers and points from text and Arrow columns, and where a value is not one."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from daybreak.events import POINTS
from daybreak.intake.instants import Mask


@dataclass(frozen=True)
class Integers:
    """Whole numbers per row; where `bad` is set the value is the default. `shown(row)` is what was written."""

    values: npt.NDArray[np.int64]
    bad: Mask
    column: pa.Array | None

    def shown(self, row: int) -> str:
        return repr(str(self.column[row])[:80]) if self.column is not None else ""


def integers(column: pa.Array | None, rows: int, default: int, limit: int) -> Integers:
    """Whole numbers from 1 to `limit` out of integers, floats, decimals or text; null is `default`."""
    if column is None:
        return Integers(np.full(rows, default, np.int64), np.zeros(rows, bool), None)
    try:
        values = np.asarray(column.cast(pa.int64()).fill_null(default))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        values = np.array([_integer(value, default) for value in column.to_pylist()], np.int64)
    bad = (values < 1) | (values > limit)
    return Integers(np.where(bad, default, values), bad, column)


def _integer(value: Any, default: int) -> int:
    """The whole number that `value` stands for, or 0."""
    if value is None or value == "":
        return default
    try:
        number = Decimal(str(value))
        return int(number) if number.is_finite() and abs(number) < 2**62 and number == int(number) else 0
    except InvalidOperation:
        return 0


def points_of(column: pa.Array) -> tuple[pa.Array, Mask]:
    """Points as decimal(18,4) without any rounding; where they do not fit: null and True."""
    if pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
        try:
            return column.cast(POINTS), np.zeros(len(column), bool)
        except pa.ArrowInvalid:
            pass
    values = [_point(value) for value in column.to_pylist()]
    points = pa.array(values, POINTS)
    return points, np.asarray(pc.and_(points.is_null(), column.is_valid()))


def _point(value: Any) -> Decimal | None:
    try:
        number = Decimal(str(value))
        fits = number.is_finite() and abs(number) < 10**14 and number == number.quantize(Decimal("0.0001"))
        return number.quantize(Decimal("0.0001")) if fits else None
    except InvalidOperation:
        return None
