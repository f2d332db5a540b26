"""Periods: their names, their days, and that each day has one of each kind."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daybreak.errors import UsageError
from daybreak.rules.seasons import (
    ALL_TIME,
    Period,
    PeriodKind,
    Season,
    calendar_period,
    calendar_periods,
    parse_period,
    period_at,
    period_of_season,
)

CALENDAR = [PeriodKind.DAY, PeriodKind.WEEK, PeriodKind.YEAR, PeriodKind.ALL_TIME]
SPRING = Season("spring", first=date(2026, 3, 1), last=date(2026, 5, 31))


@pytest.mark.parametrize(
    ("day", "week"),
    [
        (date(2026, 7, 11), "2026-W28"),
        (date(2026, 12, 31), "2026-W53"),
        (date(2027, 1, 1), "2026-W53"),
        (date(2027, 1, 4), "2027-W01"),
        (date(2024, 12, 30), "2025-W01"),
        (date.min, "0001-W01"),
        (date.max, "9999-W52"),
    ],
)
def test_iso_weeks(day: date, week: str) -> None:
    assert period_at(PeriodKind.WEEK, day).name == week


def test_the_last_periods_of_the_calendar_end_with_it() -> None:
    for kind in (PeriodKind.DAY, PeriodKind.WEEK, PeriodKind.YEAR):
        period = period_at(kind, date.max)
        assert period.last == date.max
        assert period.end == datetime.max.replace(tzinfo=UTC)
        assert [each.name for each in calendar_periods(kind, date.max, date.max)] == [period.name]


@given(st.sampled_from(CALENDAR), st.dates())
def test_a_day_lies_in_its_period_and_the_name_leads_back(kind: PeriodKind, day: date) -> None:
    period = period_at(kind, day)
    assert period.holds(day)
    assert period.kind is kind
    assert parse_period(period.name, {}) == period
    for edge in {max(period.days[0], date.min), min(period.days[1], date.max)}:
        assert period_at(kind, edge) == period


@given(st.sampled_from(CALENDAR), st.dates(date(1999, 1, 1), date(2031, 1, 1)), st.integers(-3, 900))
def test_periods_of_a_range_are_those_of_its_days(kind: PeriodKind, first: date, length: int) -> None:
    days = [first + timedelta(days=n) for n in range(length)]
    expected = list(dict.fromkeys(period_at(kind, day) for day in days))
    assert list(calendar_periods(kind, first, first + timedelta(days=length - 1))) == expected


def test_a_season_has_a_label_or_days_or_both() -> None:
    assert period_of_season(SPRING) == Period(PeriodKind.SEASON, "spring", date(2026, 3, 1), date(2026, 5, 31), "")
    open_ended = period_of_season(Season("cup", label="World Cup"))
    assert (open_ended.label, open_ended.end, open_ended.days) == ("World Cup", None, (date.min, date.max))
    assert open_ended.holds(date.min)
    assert open_ended.holds(date.max)
    assert parse_period("spring", {"spring": SPRING}).end == datetime(2026, 6, 1, tzinfo=UTC)
    assert not period_of_season(SPRING).holds(date(2026, 6, 1))


def test_all_time_has_no_end() -> None:
    assert ALL_TIME.end is None
    assert parse_period("all_time", {}) is ALL_TIME


@pytest.mark.parametrize(
    "text", ["2026-W54", "2027-W53", "2026-W00", "2026-w28", "2026-02-29", "2026-13-01", "26", "0000", "", "２０２６"]
)
def test_what_is_no_period_is_refused_with_what_would_be(text: str) -> None:
    assert calendar_period(text) is None
    with pytest.raises(UsageError, match=r"is no period; write 2026-03-01, .* \(spring\)"):
        parse_period(text, {"spring": SPRING})


def test_a_day_alone_does_not_name_a_season() -> None:
    with pytest.raises(UsageError, match="name the season"):
        period_at(PeriodKind.SEASON, date(2026, 3, 1))
