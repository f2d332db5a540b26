"""Every Redis key. The keys of one day share a hash tag, so that one script can flip the day, on a cluster too.

`daybreak:{items.2026-03-01}:day:top`, `…:hour.17:top`, `…:minute.17.24:meta`.
"""

from datetime import date
from typing import Literal

LATEST_EXACT_DAY = "daybreak:latest_exact_day"
"""Pointer to the newest exact day, as YYYY-MM-DD."""

Part = Literal["top", "meta", "sketch", "late"]
PARTS: tuple[Part, ...] = ("top", "meta", "sketch", "late")
"""What a list consists of: sorted set, hash, and while provisional the sketch and the late sketch."""


def day_prefix(day: date) -> str:
    """What every key of `day` starts with.

    >>> day_prefix(date(2026, 3, 1))
    'daybreak:{items.2026-03-01}:'
    """
    return f"daybreak:{{items.{day.isoformat()}}}:"


def items_key(day: date, label: str, part: Part) -> str:
    """The key of one part of a list.

    >>> items_key(date(2026, 3, 1), "hour.17", "top")
    'daybreak:{items.2026-03-01}:hour.17:top'
    """
    return f"{day_prefix(day)}{label}:{part}"


def state_key(day: date) -> str:
    """The day's control hash: state, generation, lake_version. It is the fence, and outlives the lists."""
    return f"{day_prefix(day)}state"


def labels_key(day: date) -> str:
    """The set of the labels that have a list; so that nobody ever scans the server."""
    return f"{day_prefix(day)}labels"


def staged_prefix(day: date, run_id: str) -> str:
    """What the keys of a publication under way start with; they expire soon."""
    return f"{day_prefix(day)}next.{run_id}:"


def previous_prefix(day: date) -> str:
    """What the keys of the generation before start with."""
    return f"{day_prefix(day)}prev:"


def lease_key(name: str) -> str:
    """The lease called `name`.

    >>> lease_key("night")
    'daybreak:lease:night'
    """
    return f"daybreak:lease:{name}"


BoardPart = Literal["top", "players", "histogram", "meta"]
BOARD_PARTS: tuple[BoardPart, ...] = ("top", "players", "histogram", "meta")
"""What a board consists of: sorted set player to position, hash player to details, sorted set of points, hash."""


def board_prefix(board: str, period: str) -> str:
    """What every key of a board in one period starts with; a dot in the board's name is written `%2E`.

    Names of boards and of seasons may both hold dots: this way `a.b` in `c` is not `a` in `b.c`.

    >>> board_prefix("goals", "2026-W28"), board_prefix("goals.eu", "2026")
    ('daybreak:{board.goals.2026-W28}:', 'daybreak:{board.goals%2Eeu.2026}:')
    """
    return f"daybreak:{{board.{board.replace('.', '%2E')}.{period}}}:"


def board_key(board: str, period: str, part: BoardPart) -> str:
    """The key of one part of a board.

    >>> board_key("goals", "2026-03-01", "top")
    'daybreak:{board.goals.2026-03-01}:top'
    """
    return f"{board_prefix(board, period)}{part}"


def board_state_key(board: str, period: str) -> str:
    """The control hash of a board in a period: state, version, generation, lake_version. The fence; never expires."""
    return f"{board_prefix(board, period)}state"


def board_staged_key(board: str, period: str, run_id: str, part: BoardPart) -> str:
    """One part of a board whose publication is under way; it expires soon."""
    return f"{board_prefix(board, period)}next.{run_id}:{part}"


BOARD_NAMES_KEY = "daybreak:board_names"
"""The set of the boards that were ever published."""


def board_periods_key(board: str) -> str:
    """The set of the periods that a board was ever published for; so that nobody ever scans the server.

    >>> board_periods_key("goals")
    'daybreak:board_periods:goals'
    """
    return f"daybreak:board_periods:{board}"
