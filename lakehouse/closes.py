"""Closed periods, typed: the rows of `board_closes`, each a version that holds. Written by `jobs.closing.versions`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from daybreak.rules.boards import Board
from daybreak.rules.seasons import Period, PeriodKind
from lakehouse.stores.store import StoreReader
from lakehouse.tables import registry as tables


@dataclass(frozen=True)
class Version:
    """One version of a closed period: a row of board_closes."""

    board: str
    period: str
    version: int
    kind: str
    content_hash: str
    population: int
    lake_version: int
    counted: Mapping[str, int]
    accepted: tuple[str, ...]
    policy: str
    reason: str
    run_id: str
    closed_at: datetime
    day: date

    @property
    def key(self) -> tuple[str, str]:
        """(board, period)"""
        return self.board, self.period

    @property
    def rules(self) -> Board:
        """The board as it was published with version 1."""
        known = json.loads(self.policy)
        return Board.model_validate({name: value for name, value in known.items() if name in Board.model_fields})

    @property
    def lookback(self) -> timedelta:
        """How far copies were looked for then."""
        return timedelta(seconds=json.loads(self.policy)["dedup_lookback"])

    @property
    def span(self) -> Period:
        """The period as it was then."""
        given = json.loads(self.policy)["period"]
        first, last = (given[name] and date.fromisoformat(given[name]) for name in ("first", "last"))
        return Period(PeriodKind(given["kind"]), self.period, first, last, given["label"])


def policy_of(board: Board, period: Period, lookback: timedelta) -> str:
    """What a version was made by, as JSON; the grace has done its work by then."""
    days = {name: day and day.isoformat() for name, day in (("first", period.first), ("last", period.last))}
    known = board.model_dump(mode="json", exclude={"grace"})
    known |= {"period": {"kind": period.kind.value, "label": period.label} | days}
    return json.dumps(known | {"dedup_lookback": lookback.total_seconds()}, sort_keys=True)


def versions(store: StoreReader) -> list[Version]:
    """Every version that holds, oldest first."""
    rows = store.read(tables.BOARD_CLOSES).to_pylist()
    found = [Version(**row | {"counted": dict(row["counted"]), "accepted": tuple(row["accepted"])}) for row in rows]
    return sorted(found, key=lambda each: (each.board, each.period, each.version))


def newest_versions(store: StoreReader) -> dict[tuple[str, str], Version]:
    """The newest version of each closed (board, period)."""
    return {each.key: each for each in versions(store)}


def closed_periods(store: StoreReader) -> set[tuple[str, str]]:
    """(board, period) of every closed period: nights leave those alone."""
    rows = store.read(tables.BOARD_CLOSES).select(["board", "period"]).to_pylist()
    return {(row["board"], row["period"]) for row in rows}
