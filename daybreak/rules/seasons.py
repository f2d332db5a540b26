"""Periods of boards: day, ISO week, year, season, all time. All UTC, whole days, first and last included.

A period's name is what a user types, and what Redis keys and tables carry: `2026-03-01`, `2026-W28`, `2026`,
a season's name, `all_time`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from daybreak.errors import UsageError, did_you_mean
from daybreak.windows import day_bounds

SeasonName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
ONE_DAY = timedelta(days=1)
WEEK = re.compile(r"([0-9]{4})-W([0-9]{2})")
YEAR = re.compile(r"[0-9]{4}")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class PeriodKind(StrEnum):
    """A kind of period; every day lies in one of each kind, save seasons."""

    DAY = "day"
    WEEK = "week"
    YEAR = "year"
    SEASON = "season"
    ALL_TIME = "all_time"


@dataclass(frozen=True)
class Season:
    """A season: events with a label, or of a range of days, or both."""

    name: str
    label: str | None = None
    first: date | None = None
    last: date | None = None


@dataclass(frozen=True)
class Period:
    """The days `first` to `last`, both included; None: without a beginning or an end."""

    kind: PeriodKind
    name: str
    first: date | None = None
    last: date | None = None
    label: str = ""
    """Only events with this season label; empty: all."""

    def holds(self, day: date) -> bool:
        """Whether `day` lies in it."""
        return (self.first or date.min) <= day <= (self.last or date.max)

    def ends_after(self, instant: datetime) -> bool:
        """Whether it ends later, or never: what a ban since then takes the player out of."""
        return self.end is None or self.end > instant

    @property
    def end(self) -> datetime | None:
        """The first instant after it; None when it has no end."""
        return None if self.last is None else day_bounds(self.last)[1]

    @property
    def days(self) -> tuple[date, date]:
        """First and last day; the calendar's own where there is no bound."""
        return self.first or date.min, self.last or date.max


ALL_TIME = Period(PeriodKind.ALL_TIME, "all_time")


def period_at(kind: PeriodKind, day: date) -> Period:
    """The period of a calendar kind that holds `day`.

    >>> period_at(PeriodKind.WEEK, date(2027, 1, 1)).name, period_at(PeriodKind.WEEK, date(2026, 7, 11)).name
    ('2026-W53', '2026-W28')
    >>> period_at(PeriodKind.YEAR, date(2026, 7, 11)).days
    (datetime.date(2026, 1, 1), datetime.date(2026, 12, 31))
    """
    match kind:
        case PeriodKind.DAY:
            return Period(kind, day.isoformat(), day, day)
        case PeriodKind.WEEK:
            year, week, weekday = day.isocalendar()
            monday = day - (weekday - 1) * ONE_DAY
            last = monday + 6 * ONE_DAY if date.max - monday >= 6 * ONE_DAY else date.max
            return Period(kind, f"{year:04}-W{week:02}", monday, last)
        case PeriodKind.YEAR:
            return Period(kind, f"{day.year:04}", day.replace(month=1, day=1), day.replace(month=12, day=31))
        case PeriodKind.ALL_TIME:
            return ALL_TIME
        case PeriodKind.SEASON:
            raise UsageError("a day may lie in several seasons; name the season")


def period_of_season(season: Season) -> Period:
    """The period of a season."""
    return Period(PeriodKind.SEASON, season.name, season.first, season.last, season.label or "")


def parse_period(text: str, seasons: Mapping[str, Season]) -> Period:
    """The period that a user names; the inverse of `Period.name`.

    >>> parse_period("2026-W53", {}).days
    (datetime.date(2026, 12, 28), datetime.date(2027, 1, 3))

    Raises:
        UsageError: neither a day, week, year, `all_time` nor a known season.
    """
    if found := calendar_period(text):
        return found
    if text in seasons:
        return period_of_season(seasons[text])
    known = ", ".join(sorted(seasons)) or "none is defined"
    near = did_you_mean(text, [*seasons, ALL_TIME.name])
    raise UsageError(
        f"{text!r} is no period{near}; write 2026-03-01, 2026-W28, 2026, all_time or a season of seasons.toml ({known})"
    )


def calendar_period(text: str) -> Period | None:
    """The day, week, year or all_time that `text` names; None when it names none."""
    if text == ALL_TIME.name:
        return ALL_TIME
    try:
        if week := WEEK.fullmatch(text):
            return period_at(PeriodKind.WEEK, date.fromisocalendar(int(week[1]), int(week[2]), 1))
        if YEAR.fullmatch(text):
            return period_at(PeriodKind.YEAR, date(int(text), 1, 1))
        if DAY.fullmatch(text):
            return period_at(PeriodKind.DAY, date.fromisoformat(text))
    except ValueError:
        return None
    return None


def calendar_periods(kind: PeriodKind, first: date, last: date) -> Iterator[Period]:
    """Every period of a calendar kind that has a day between `first` and `last`, in order; none when last < first.

    >>> [period.name for period in calendar_periods(PeriodKind.WEEK, date(2026, 12, 27), date(2027, 1, 4))]
    ['2026-W52', '2026-W53', '2027-W01']
    """
    day = first
    while day <= last:
        period = period_at(kind, day)
        yield period
        if (period.last or date.max) >= last:
            return
        day = period.days[1] + ONE_DAY


class SeasonGiven(BaseModel):
    """A season as seasons.toml gives it: a label, a range of days, or both."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: SeasonName
    label: str | None = Field(None, description="Only events with this season label.")
    first: date | None = Field(None, alias="from", description="First day; with a label it may be left out.")
    last: date | None = Field(None, alias="to", description="Last day, included; without it the season has no end.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if calendar_period(self.name):
            raise ValueError("this name is a day, week, year or all_time already; give the season another")
        if not self.label and (self.first is None or self.last is None):
            raise ValueError("a season needs a label, or both from and to")
        if self.first and self.last and self.first > self.last:
            raise ValueError(f"from {self.first} is after to {self.last}; swap them")
        return self

    @property
    def season(self) -> Season:
        """What it says."""
        return Season(self.name, self.label or None, self.first, self.last)
