"""Instants from text and Arrow columns: ISO-8601 to microseconds UTC, and why a value is not one."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from daybreak.errors import UsageError
from daybreak.windows import to_micros

NAIVE = pa.timestamp("us")
INSTANT_MIN = to_micros(datetime.min.replace(tzinfo=UTC))
INSTANT_MAX = to_micros(datetime.max.replace(tzinfo=UTC))
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII)
EXPECTED = "is not an ISO-8601 instant such as 2011-12-05T17:24:00Z"

Micros = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Instants:
    """Microseconds UTC per row; where `bad` or `zoneless` is set the value is 0. `reason(row)` says why."""

    micros: Micros
    bad: Mask
    zoneless: Mask
    reason: Callable[[int], str]


class Clockface:
    """Reads instants; values without a zone are taken in `default_timezone` (an IANA name), if there is one.

    Raises:
        UsageError: the zone is not known.
    """

    def __init__(self, default_timezone: str | None) -> None:
        self.zone = default_timezone
        try:
            self._info = ZoneInfo(default_timezone) if default_timezone is not None else None
        except (KeyError, ValueError, OSError):
            raise UsageError(
                f"--default-timezone {default_timezone!r} is not a known zone; give an IANA name such as Europe/London"
            ) from None

    def read(self, column: pa.Array) -> Instants:
        """The instants of a column; null rows come back as 0 and are neither bad nor without a zone."""
        if pa.types.is_timestamp(column.type):
            return self._stamps(column)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            return self._texts(column)
        rows = len(column)
        present = np.asarray(column.is_valid())
        what = f"is {column.type}, which {EXPECTED}"
        return Instants(np.zeros(rows, np.int64), present, np.zeros(rows, bool), lambda row: f"{column[row]} {what}")

    def _stamps(self, column: pa.Array) -> Instants:
        rows = len(column)
        valid = np.asarray(column.is_valid())
        ticks = np.asarray(column.cast(pa.int64()).fill_null(0))
        micros, fits = _to_micros(ticks, PER_SECOND[column.type.unit])
        bad, zoneless = valid & ~fits, np.zeros(rows, bool)
        if column.type.tz is None:
            if self._info is None:
                zoneless = valid & ~bad
            else:
                micros, unclear = self._localised(micros)
                bad |= valid & unclear
        return Instants(*_bounded(micros, bad, zoneless), lambda row: self._why(str(column[row])))

    def _texts(self, column: pa.Array) -> Instants:
        rows = len(column)
        micros = self._fast(column) if column.null_count == 0 else None
        if micros is not None:
            none = np.zeros(rows, bool)
            return Instants(*_bounded(micros, none, none), lambda row: self._why(column[row].as_py()))
        micros = np.zeros(rows, np.int64)
        bad, zoneless = np.zeros(rows, bool), np.zeros(rows, bool)
        present = np.flatnonzero(np.asarray(column.is_valid()))
        for part in np.array_split(present, max(1, len(present) // 256)):
            fast = self._fast(column.take(pa.array(part))) if len(part) else None
            if fast is not None:
                micros[part] = fast
                continue
            for row in part:
                micros[row], bad[row], zoneless[row] = self._one(column[int(row)].as_py())
        return Instants(*_bounded(micros, bad, zoneless), lambda row: self._why(column[row].as_py()))

    def _fast(self, column: pa.Array) -> Micros | None:
        """All rows at once by Arrow's cast, or None when some row needs a closer look."""
        if not len(column) or not _has_minutes(column):
            return None
        try:
            return np.asarray(column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()))
        except pa.ArrowInvalid:
            pass
        if self._info is None:
            return None
        try:
            micros, unclear = self._localised(np.asarray(column.cast(NAIVE).cast(pa.int64())))
        except pa.ArrowInvalid:
            return None
        return None if unclear.any() else micros

    def _localised(self, micros: Micros) -> tuple[Micros, Mask]:
        """Local microseconds as UTC; True where the local time does not exist or happens twice."""
        if self.zone == "UTC":
            return micros, np.zeros(len(micros), bool)
        local = pa.array(micros, pa.int64()).cast(NAIVE)
        early, late = (
            np.asarray(pc.assume_timezone(local, self.zone, ambiguous=side, nonexistent=side).cast(pa.int64()))
            for side in ("earliest", "latest")
        )
        return late, early != late

    def _one(self, text: str) -> tuple[int, bool, bool]:
        """Microseconds, bad, zoneless of one text."""
        match = ISO.fullmatch(text)
        if match is None:
            return 0, True, False
        day, clock, fraction, zone = match.groups()
        try:
            local = datetime.fromisoformat(f"{day}T{clock}")
            micros = to_micros(local.replace(tzinfo=UTC)) + int((fraction or "0").ljust(6, "0")[:6])
            if zone is None:
                if self._info is None:
                    return 0, False, True
                moved, unclear = self._localised(np.array([micros], np.int64))
                return int(moved[0]), bool(unclear[0]), False
            return micros - _zone_micros(zone), False, False
        except ValueError:
            return 0, True, False

    def _why(self, text: str) -> str:
        shown = repr(text[:80])
        if text.isascii() and text.lstrip("-").isdigit():
            return f"{shown} is a bare number, which {EXPECTED}"
        match = ISO.fullmatch(text)
        if match is None:
            return f"{shown} {EXPECTED}"
        if match[4] is None and self.zone is None:
            return f"{shown} has no zone; write one, or name the source's with --default-timezone"
        if match[4] is None and self.zone != "UTC" and self._exists(f"{match[1]}T{match[2]}"):
            return f"{shown} does not exist or happens twice in {self.zone}; write its zone"
        return f"{shown} is no date and time of the years 1 to 9999"

    def _exists(self, text: str) -> bool:
        try:
            return bool(datetime.fromisoformat(text))
        except ValueError:
            return False


def _has_minutes(column: pa.Array) -> bool:
    """True if every text has the minutes' colon in place: Arrow alone would take 2011-12-05T17Z."""
    if column.type != pa.string():
        return False
    buffers = column.buffers()
    offsets = np.frombuffer(buffers[1], np.int32)[column.offset : column.offset + len(column) + 1]
    if (offsets[1:] - offsets[:-1]).min() < len("2011-12-05T17:24"):
        return False
    data = np.frombuffer(buffers[2], np.uint8)
    return bool((data[offsets[:-1] + 13] == ord(":")).all())


def _to_micros(ticks: Micros, per_second: int) -> tuple[Micros, Mask]:
    """Ticks as microseconds, finer ones rounded down; False where they lie outside 64 bits."""
    if per_second >= 10**6:
        return np.floor_divide(ticks, per_second // 10**6), np.ones(len(ticks), bool)
    factor = 10**6 // per_second
    fits = (ticks >= INSTANT_MIN // factor) & (ticks <= INSTANT_MAX // factor)
    return np.where(fits, ticks, 0) * factor, fits


def _bounded(micros: Micros, bad: Mask, zoneless: Mask) -> tuple[Micros, Mask, Mask]:
    outside = ((micros < INSTANT_MIN) | (micros > INSTANT_MAX)) & ~zoneless
    bad = bad | outside
    if bad.any() or zoneless.any():
        micros = np.where(bad | zoneless, 0, micros)
    return micros, bad, zoneless


def _zone_micros(zone: str) -> int:
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError(f"{zone} is no offset")
    size = timedelta(hours=hours, minutes=minutes) // timedelta(microseconds=1)
    return -size if zone[0] == "-" else size
