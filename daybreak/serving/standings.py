"""A board as it is served: its places, its meta, its content hash, and how its points are written in Redis.

Points are decimals with four places and up to 28 digits: text in Redis, never a score, which is a double.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

from daybreak.errors import CheckFailedError, UsageError
from daybreak.ranking import RankStyle, ranks
from daybreak.serving.hashes import from_texts, to_texts

Histogram = Sequence[tuple[Decimal, int]]
"""Every distinct points of a board, with how many players have them; in any order."""
UNIT = 10**4
LIMIT = 10**28


@dataclass(frozen=True)
class Place:
    """A player's place: `position` runs 1..N without gaps, `rank` is on points alone in the board's style."""

    position: int
    rank: int
    player_id: str
    points: Decimal
    reached_at: datetime
    event_count: int

    def to_json(self) -> str:
        """The player's details as the hash of players holds them; the id is the field's name."""
        return json.dumps(
            {
                "position": self.position,
                "rank": self.rank,
                "points": points_text(self.points),
                "reached_at": self.reached_at.astimezone(UTC).isoformat(),
                "event_count": self.event_count,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, player_id: bytes, text: bytes | None) -> "Place":
        """The inverse of `to_json`. Details that are missing or incomplete are refused with CheckFailedError."""
        try:
            found = json.loads(text or b"")
            return cls(
                position=found["position"],
                rank=found["rank"],
                player_id=player_id.decode(),
                points=Decimal(found["points"]),
                reached_at=datetime.fromisoformat(found["reached_at"]),
                event_count=found["event_count"],
            )
        except (KeyError, ValueError) as error:
            raise CheckFailedError(
                f"the details of player {player_id.decode()!r} in Redis are not readable ({error!r}); "
                "publish the board again"
            ) from None


@dataclass(frozen=True)
class BoardMeta:
    """What is known of a board in a period. `version` is 0 while the period is open."""

    board: str
    period: str
    state: Literal["exact", "closed"]
    generation: int
    version: int
    as_of: date
    run_id: str
    lake_version: int
    population: int
    depth: int
    content_hash: str
    order: Literal["descending", "ascending"]
    decimals: int
    rank_style: RankStyle

    @property
    def published(self) -> int:
        """How many places are served."""
        return min(self.depth, self.population)

    def to_fields(self) -> dict[str, str]:
        """The fields of the Redis hash."""
        return to_texts(asdict(self))

    @classmethod
    def from_fields(cls, found: dict[bytes, bytes]) -> "BoardMeta":
        """The inverse of `to_fields`. A hash that lacks a field is refused with CheckFailedError."""
        return from_texts(cls, found, _READ, "a board's meta")


@dataclass(frozen=True)
class ServedBoard:
    """Places of a board, best first, with the board's meta; both of one publication."""

    meta: BoardMeta
    places: tuple[Place, ...]


def content_hash(places: Iterable[Place], histogram: Histogram = ()) -> str:
    """sha256 over all details of each player, in order, and over the histogram: equal for equal boards only.

    The same points written with more zeros, the same instant in another zone, and the histogram in another order
    give the same hash.
    """
    digest = hashlib.sha256()
    for place in places:
        player = place.player_id.encode()
        digest.update(b"%d:%b%b\n" % (len(player), player, place.to_json().encode()))
    for unit, players in sorted((in_units(points), players) for points, players in histogram):
        digest.update(b"%d=%d\n" % (unit, players))
    return digest.hexdigest()


def in_units(points: Decimal) -> int:
    """Points as the whole number of ten-thousandths that they are.

    >>> in_units(Decimal("-12.5")), in_units(Decimal(2**53 + 1))
    (-125000, 90071992547409930000)

    Raises:
        UsageError: not a number, more than four decimals, or more than 28 digits.
    """
    if points.is_finite():
        numerator, denominator = points.as_integer_ratio()
        unit, rest = divmod(numerator * UNIT, denominator)
        if rest == 0 and abs(unit) < LIMIT:
            return unit
    raise UsageError(f"points {points} are not a number of at most 28 digits with four decimals; round them first")


def points_text(points: Decimal) -> str:
    """Points with their four decimals, and no exponent.

    >>> points_text(Decimal("1E+3")), points_text(Decimal("-0.1"))
    ('1000.0000', '-0.1000')
    """
    unit = in_units(points)
    whole, rest = divmod(abs(unit), UNIT)
    return f"{'-' if unit < 0 else ''}{whole}.{rest:04}"


def histogram_key(points: Decimal) -> bytes:
    """Text whose byte order is the order of the points.

    >>> histogram_key(Decimal("-3")) < histogram_key(Decimal("-0.0001")) < histogram_key(Decimal(10))
    True
    """
    return b"%029d:" % (in_units(points) + LIMIT)


def histogram_members(histogram: Histogram) -> list[bytes]:
    """Each distinct points as `KEY:players with less:players with as much`, in byte order."""
    members, less = [], 0
    for points, players in sorted(histogram):
        members.append(b"%b%d:%d" % (histogram_key(points), less, players))
        less += players
    return members


def standing(meta: BoardMeta, points: Decimal, found: Sequence[bytes]) -> tuple[int, int]:
    """Players strictly better and strictly worse than `points`; `found` is the first member at or above them."""
    if not found:
        less, equal = meta.population, 0
    else:
        key, at, players = found[0].split(b":")
        less, equal = int(at), int(players) if key + b":" == histogram_key(points) else 0
    more = meta.population - less - equal
    return (more, less) if meta.order == "descending" else (less, more)


def faults(board: str, period: str, places: Sequence[Place], histogram: Histogram, meta: BoardMeta) -> str | None:
    """The first thing that makes these no board; None when all fits together."""
    units = [in_units(place.points) for place in places]
    best_first = sorted(units, reverse=meta.order == "descending")
    if (board, period) != (meta.board, meta.period):
        return f"its meta is of {meta.board} {meta.period}"
    if (meta.state == "closed") != (meta.version > 0):
        return f"it is {meta.state} in version {meta.version}; versions count from 1 and are of closed boards"
    if [place.position for place in places] != list(range(1, len(places) + 1)):
        return "its positions do not run from 1 without gaps"
    if len({place.player_id for place in places}) < len(places):
        return "a player is on it twice"
    if units != best_first:
        return f"its points are not {meta.order}"
    if [place.rank for place in places] != ranks(units, meta.rank_style):
        return f"its ranks are not in {meta.rank_style} style"
    if len(places) != meta.published:
        return f"it has {len(places)} places where depth {meta.depth} and population {meta.population} give another"
    if len({in_units(points) for points, _ in histogram}) < len(histogram):
        return "its histogram names points twice"
    if (total := sum(players for _, players in histogram)) != meta.population:
        return f"its histogram holds {total} players and its population is {meta.population}"
    return None


_READ: dict[str, Any] = {
    "board": str,
    "period": str,
    "state": str,
    "generation": int,
    "version": int,
    "as_of": date.fromisoformat,
    "run_id": str,
    "lake_version": int,
    "population": int,
    "depth": int,
    "content_hash": str,
    "order": str,
    "decimals": int,
    "rank_style": str,
}
