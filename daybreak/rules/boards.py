"""Boards as configured: what is ranked, by which rule, for which periods. `conf/boards.toml`, `conf/seasons.toml`."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, StringConstraints, ValidationError, model_validator

from daybreak.errors import UsageError, did_you_mean
from daybreak.ranking import RankStyle
from daybreak.rules.seasons import (
    Period,
    PeriodKind,
    Season,
    SeasonGiven,
    calendar_periods,
    parse_period,
    period_of_season,
)
from daybreak.settings import Span

Semantics = Literal["sum", "best", "latest"]
PrizeTies = Literal["all", "share", "tie_break"]
TieBreak = Literal["reached_at", "fewer_events", "more_events", "player_id"]
BoardName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]  # no dot: it ends the name
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
M = TypeVar("M", bound=BaseModel)
FILTERS = {
    "score_events": ("region", "match_type", "season"),
    "item_events": ("region", "category"),
}


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class Prize(_Model):
    """One row of a prize table: who gets `prize`."""

    prize: str = Field(min_length=1, description="What is won; rows may share it.")
    ranks: tuple[PositiveInt, PositiveInt] | None = Field(
        None, description="`[first, last]`: the ranks that win it, both included."
    )
    percentile: tuple[Percent, Percent] | None = Field(
        None, description="`[low, high]`: the percentiles that win it, low included, high not."
    )

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if (self.ranks is None) == (self.percentile is None):
            raise ValueError("a prize needs either ranks = [first, last] or percentile = [low, high]")
        if self.ranks and self.ranks[0] > self.ranks[1]:
            raise ValueError(f"ranks {list(self.ranks)} hold no rank; swap them")
        if self.percentile and self.percentile[0] >= self.percentile[1]:
            raise ValueError(f"percentile {list(self.percentile)} holds nothing, high is not included; widen it")
        return self


class Filter(_Model):
    """Values that an event must have; a column that is left out may have any."""

    region: tuple[str, ...] = Field((), description="Of both sources.")
    match_type: tuple[str, ...] = Field((), description="Of score_events.")
    category: tuple[str, ...] = Field((), description="Of item_events.")
    season: tuple[str, ...] = Field((), description="Labels of score_events.")

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that are filtered, with the values that pass."""
        return {name: values for name, values in self if values}


class Board(_Model):
    """One board. `name` is its key in boards.toml."""

    name: BoardName
    source: Literal["score_events", "item_events"] = Field(
        "score_events",
        description="Where its events are; of item_events, item and weight are player and points.",
    )
    filter: Filter = Field(Filter(), description="Only events with one of these values per column.")
    semantics: Semantics = Field("sum", description="What a player has: the sum, the best or the latest points.")
    order: Literal["descending", "ascending"] = Field("descending", description="Whether more or fewer points win.")
    decimals: int = Field(0, ge=0, le=4, description="Decimals shown; ranks always use all four.")
    rank_style: RankStyle = Field("competition", description="competition 1 1 3, dense 1 1 2, ordinal 1 2 3")
    tie_breaks: tuple[TieBreak, ...] = Field(
        ("reached_at",), description="What orders equal points, in turn; player_id (UTF-8 bytes) is always the last."
    )
    reached_by: Literal["occurred_at", "received_at"] = Field(
        "occurred_at", description="The clock of reached_at; servers of games may be skewed."
    )
    periods: tuple[Literal["day", "week", "year", "all_time"], ...] = Field(
        ("day", "week", "year", "all_time"), description="Calendar periods that are ranked."
    )
    seasons: tuple[str, ...] = Field((), description="Seasons of seasons.toml that are ranked.")
    depth: int = Field(1000, gt=0, description="Players of a published board and of a snapshot; a close ranks all.")
    grace: Span = Field(timedelta(hours=2), description="A period can be closed this long after its end.")
    prizes: tuple[Prize, ...] = Field((), description="Who wins what at a close; the first row that fits counts.")
    prize_ties: PrizeTies = Field(
        "all", description="Equals across a prize's last rank: all get it, share it, or the tie-breaks decide."
    )

    @model_validator(mode="after")
    def _names_each_once(self) -> Self:
        for key in ("tie_breaks", "periods", "seasons"):
            values = getattr(self, key)
            if len(set(values)) < len(values):
                raise ValueError(f"{key} {list(values)} names one twice; name each once")
        if "player_id" in self.tie_breaks[:-1]:
            raise ValueError("tie_breaks after player_id decide nothing, no two players are equal in it; put it last")
        return self

    @model_validator(mode="after")
    def _fits_its_source(self) -> Self:
        for column in self.filter.columns():
            if column not in FILTERS[self.source]:
                raise ValueError(f"{self.source} have no {column} to filter by; use {', '.join(FILTERS[self.source])}")
        if not self.periods and not self.seasons:
            raise ValueError("a board without periods and seasons ranks nothing; name some")
        return self

    @property
    def sign(self) -> int:
        """1 when more points are better, -1 when fewer are."""
        return 1 if self.order == "descending" else -1

    @property
    def order_within_equals(self) -> tuple[TieBreak, ...]:
        """The tie-breaks, `player_id` last."""
        return (*(each for each in self.tie_breaks if each != "player_id"), "player_id")


@dataclass(frozen=True)
class Boards:
    """All boards and seasons of a deployment."""

    boards: Mapping[str, Board]
    seasons: Mapping[str, Season]

    def __iter__(self) -> Iterator[Board]:
        return iter(self.boards.values())

    def board(self, name: str) -> Board:
        """The board of that name.

        Raises:
            UsageError: there is none.
        """
        if name not in self.boards:
            known = ", ".join(sorted(self.boards)) or "none is defined"
            near = did_you_mean(name, self.boards)
            raise UsageError(f"no board {name!r} in boards.toml{near}; the boards are: {known}")
        return self.boards[name]

    def period(self, board: Board, text: str) -> Period:
        """The period of `board` that a user names.

        Raises:
            UsageError: no period, or one that the board does not rank.
        """
        period = parse_period(text, self.seasons)
        ranked = (
            period.name in board.seasons if period.kind is PeriodKind.SEASON else period.kind.value in board.periods
        )
        if not ranked:
            raise UsageError(
                f"board {board.name} does not rank {text}; it ranks {', '.join((*board.periods, *board.seasons))}"
            )
        return period

    def periods(self, board: Board, first: date, last: date) -> list[Period]:
        """Every period of `board` that has a day between `first` and `last`."""
        found = [period for kind in board.periods for period in calendar_periods(PeriodKind(kind), first, last)]
        seasons = [period_of_season(self.seasons[name]) for name in board.seasons]
        return found + [each for each in seasons if each.days[0] <= last and first <= each.days[1]]

    def labels(self, board: Board) -> list[str]:
        """The season labels that `board` keeps apart; the empty one stands for all events."""
        seasons = [self.seasons[name].label or "" for name in board.seasons]
        return sorted({*seasons, *([""] if board.periods else [])})


def load(conf: Path) -> Boards:
    """The boards of `conf/boards.toml` with the seasons of `conf/seasons.toml`; none where a file is missing.

    Raises:
        UsageError: naming the file, the board or season, the key and what is wrong.
    """
    season_file, board_file = conf / "seasons.toml", conf / "boards.toml"
    seasons = {name: _season(name, given, season_file) for name, given in _read(season_file).items()}
    boards = {name: _board(name, given, seasons, board_file) for name, given in _read(board_file).items()}
    return Boards(boards, seasons)


def _season(name: str, given: Any, file: Path) -> Season:
    return _valid(SeasonGiven, name, given, file).season


def _board(name: str, given: Any, seasons: Mapping[str, Season], file: Path) -> Board:
    board = _valid(Board, name, given, file)
    for season in board.seasons:
        if season not in seasons:
            near = did_you_mean(season, seasons)
            raise UsageError(
                f"{file}: board {name} ranks season {season!r}, which seasons.toml does not have{near}; add it"
            )
        if seasons[season].label and board.source == "item_events":
            raise UsageError(f"{file}: board {name} ranks season {season!r} by its label, but item_events have none")
    return board


def _valid(model: type[M], name: str, given: Any, file: Path) -> M:
    if not isinstance(given, dict):
        raise UsageError(f"{file}: {name} = {given!r} is no table; write [{name}] and its keys below")
    if "name" in given:
        raise UsageError(f"{file}: [{name}] name: is not known here; the name stands in the brackets")
    try:
        return model.model_validate({**given, "name": name})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "keys together"
        what = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            what = "is not known here" + did_you_mean(key, _keys(model))
        raise UsageError(f"{file}: [{name}] {key}: {what}; docs/reference/boards.md lists the keys") from None


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from None
