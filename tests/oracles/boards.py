"""Boards in plain Python: dicts, Counter, sorted, Decimal. No Arrow, no SQL, nothing shared with an engine.

An event here is a dict of the fields of an accepted score event or item event, as in tests/oracles/items.py.
Its *time* is the clock that the board names: `occurred_at` or `received_at`.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, localcontext
from typing import Any

from daybreak.rules.boards import Board
from daybreak.rules.seasons import ALL_TIME, Period
from tests.oracles.items import HOUR, Event, order_key

PLENTY = Context(prec=60)
"""Enough digits for the sum of any decimal(18,4); the default context rounds after 28."""


@dataclass(frozen=True)
class Row:
    """One player of a board in a period."""

    position: int
    rank: int
    player_id: str
    points: Decimal
    reached_at: datetime
    event_count: int
    percentile: float
    population: int


def day_of(event: Event) -> date:
    """The UTC day that the event lies in, whatever zone its instant is written in."""
    day: date = event["occurred_at"].astimezone(UTC).date()
    return day


def distinct(events: Iterable[Event], lookback: timedelta = HOUR) -> list[Event]:
    """The events that count, of all days: of each id the smallest copy per day, none whose id is in the look-back."""
    copies: dict[tuple[date, str], list[Event]] = defaultdict(list)
    before: set[tuple[date, str]] = set()
    for event in events:
        day = day_of(event)
        copies[day, event["event_id"]].append(event)
        if day < date.max and (next_day := (event["occurred_at"] + lookback).astimezone(UTC).date()) > day:
            before.add((next_day, event["event_id"]))
    return [min(group, key=order_key) for key, group in copies.items() if key not in before]


def player_of(event: Event, board: Board) -> str:
    return str(event["player_id" if board.source == "score_events" else "item_id"])


def points_of(event: Event, board: Board) -> Decimal:
    return Decimal(event["points" if board.source == "score_events" else "weight"])


def counted(
    events: Iterable[Event],
    board: Board,
    period: Period,
    voided: Collection[str] = (),
    as_of: date = date.max,
) -> dict[str, list[Event]]:
    """The events of each player that count in the period. The copy that wins decides about filter, label and day."""
    wanted = [*board.filter.columns().items(), *([("season", (period.label,))] if period.label else [])]
    players: dict[str, list[Event]] = defaultdict(list)
    for event in distinct(events):
        day = day_of(event)
        passes = all(event[column] in values for column, values in wanted)
        if passes and period.holds(day) and day <= as_of and event["event_id"] not in voided:
            players[player_of(event, board)].append(event)
    return dict(players)


def standing(events: list[Event], board: Board) -> tuple[Decimal, datetime]:
    """(points, reached_at) of one player from the counted events."""
    scored = [(points_of(event, board), event[board.reached_by], event) for event in events]
    match board.semantics:
        case "sum":
            with localcontext(PLENTY):
                total = sum((points for points, _, _ in scored), Decimal(0))
            changes = [at for points, at, _ in scored if points != 0]
            return total, max(changes) if changes else min(at for _, at, _ in scored)
        case "best":
            best = max(points for points, _, _ in scored) if board.sign > 0 else min(points for points, _, _ in scored)
            return best, min(at for points, at, _ in scored if points == best)
        case "latest":
            points, at, _ = max(scored, key=lambda each: (each[1], order_key(each[2])))
            return points, at


def board(
    events: Iterable[Event],
    board: Board,
    period: Period,
    banned: Mapping[str, datetime] = {},
    voided: Collection[str] = (),
    as_of: date = date.max,
) -> list[Row]:
    """Every player of the board in order. Banned ones are out of the periods that end after their ban began."""
    players = {
        player: (*standing(of_player, board), len(of_player))
        for player, of_player in counted(events, board, period, voided, as_of).items()
        if player not in banned or (period.end is not None and period.end <= banned[player])
    }

    def order(player: str) -> tuple[Any, ...]:
        points, reached_at, event_count = players[player]
        breaks = {
            "reached_at": reached_at,
            "fewer_events": event_count,
            "more_events": -event_count,
            "player_id": player.encode(),
        }
        return points.copy_negate() if board.sign > 0 else points, *(breaks[name] for name in board.order_within_equals)

    equals = Counter(points for points, _, _ in players.values())
    better = dense = 0
    of_points: dict[Decimal, tuple[int, int, int]] = {}
    for points in sorted(equals, reverse=board.sign > 0):
        of_points[points] = better, dense, len(players) - better - equals[points]
        better, dense = better + equals[points], dense + 1
    rows = []
    for position, player in enumerate(sorted(players, key=order), 1):
        points, reached_at, event_count = players[player]
        above, above_dense, worse = of_points[points]
        rank = {"competition": 1 + above, "dense": 1 + above_dense, "ordinal": position}[board.rank_style]
        percentile = 100 * worse / len(players)
        rows.append(Row(position, rank, player, points, reached_at, event_count, percentile, len(players)))
    return rows


def histogram(
    events: Iterable[Event],
    board_: Board,
    period: Period,
    banned: Mapping[str, datetime] = {},
    voided: Collection[str] = (),
    as_of: date = date.max,
) -> list[tuple[Decimal, int]]:
    """(points, players with them) of all distinct points, best first."""
    return list(Counter(row.points for row in board(events, board_, period, banned, voided, as_of)).items())


def partials(
    events: Iterable[Event],
    board: Board,
    day: date,
    labels: Iterable[str] = ("",),
    voided: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Every row of `player_days` of a day, by (season, player_id bytes); the label '' stands for all events."""
    rows = []
    for label in sorted(labels):
        period = Period(ALL_TIME.kind, ALL_TIME.name, day, day, label)
        players = counted(events, board, period, voided)
        for player in sorted(players, key=str.encode):
            rows.append({"day": day, "board": board.name, "season": label, "player_id": player})
            rows[-1] |= partial(players[player], board)
    return rows


def partial(events: list[Event], board: Board) -> dict[str, Any]:
    """What a day keeps of one player's events, so that days can be merged without them."""
    points, reached_at = standing(events, board)
    row: dict[str, Any] = {
        "points": points,
        "event_count": len(events),
        "first_at": min(event[board.reached_by] for event in events),
        "changed_at": reached_at,
    }
    if board.semantics == "sum" and not any(points_of(event, board) for event in events):
        row["changed_at"] = None
    last = max(events, key=lambda event: (event[board.reached_by], order_key(event)))
    is_latest = board.semantics == "latest"
    key = ("received_at", "source", "partition", "offset")
    return row | {f"last_{name}": last[name] if is_latest else None for name in key}
