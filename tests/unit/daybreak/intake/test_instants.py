"""Reading instants: the compiled path and the careful one agree with datetime."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from daybreak.intake.instants import Clockface
from daybreak.windows import from_micros, to_micros

BAD = "not an instant"


def instants(count: int) -> list[datetime]:
    random = np.random.default_rng(7)
    whole = random.integers(
        to_micros(datetime(1, 1, 2, tzinfo=UTC)), to_micros(datetime(9999, 12, 30, tzinfo=UTC)), count
    )
    return [from_micros(int(micros)) for micros in whole]


@pytest.mark.parametrize("spoilt", [False, True])
def test_texts_agree_with_datetime(spoilt: bool) -> None:
    expected = instants(500)
    texts = [at.isoformat() for at in expected] + [BAD] * spoilt
    read = Clockface(None).read(pa.array(texts))
    assert [from_micros(int(micros)) for micros in read.micros[:500]] == expected
    assert read.bad.tolist() == [False] * 500 + [True] * spoilt


def test_offsets_and_local_times_agree_with_zoneinfo() -> None:
    clockface = Clockface("America/New_York")
    zone = ZoneInfo("America/New_York")
    hours = [datetime(2013, 1, 1, tzinfo=UTC) + timedelta(hours=7 * n) for n in range(1200)]
    local = [at.astimezone(zone) for at in hours]
    zoned = clockface.read(pa.array([at.isoformat() for at in local]))
    assert zoned.micros.tolist() == [to_micros(at) for at in hours]
    naive = clockface.read(pa.array([at.replace(tzinfo=None).isoformat() for at in local]))
    twofold = [at.replace(fold=0).utcoffset() != at.replace(fold=1).utcoffset() for at in local]
    assert naive.bad.tolist() == twofold
    good = [n for n, bad in enumerate(twofold) if not bad]
    assert naive.micros[good].tolist() == [to_micros(hours[n]) for n in good]


def test_mixed_zoned_naive_null_and_bad_rows_are_told_apart() -> None:
    read = Clockface(None).read(pa.array(["2026-03-01T12:00:00Z", "2026-03-01T12:00:00", None, BAD]))
    assert read.zoneless.tolist() == [False, True, False, False]
    assert read.bad.tolist() == [False, False, False, True]
    assert "--default-timezone" in read.reason(1)
    assert repr(BAD) in read.reason(3)


def test_fractions_finer_than_microseconds_round_down_on_both_sides_of_1970() -> None:
    ticks = pa.array([1_999, -1], pa.timestamp("ns", "UTC"))
    assert Clockface(None).read(ticks).micros.tolist() == [1, -1]


def test_seconds_outside_the_years_1_to_9999_are_bad() -> None:
    ticks = pa.array([2**62, -(2**62), 0], pa.timestamp("s", "UTC"))
    assert Clockface(None).read(ticks).bad.tolist() == [True, True, False]
