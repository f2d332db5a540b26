"""Records as Redis hashes: every value is text, what is not known is the empty string."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any, TypeVar

from daybreak.errors import CheckFailedError

R = TypeVar("R")
STAGING_TTL = timedelta(minutes=10)
"""What a killed publication leaves behind is gone after this."""


def to_texts(values: Mapping[str, object]) -> dict[str, str]:
    """The fields of the Redis hash.

    >>> to_texts({"as_of": date(2026, 3, 1), "items_total": None, "depth": 10})
    {'as_of': '2026-03-01', 'items_total': '', 'depth': '10'}
    """
    return {name: _text(value) for name, value in values.items()}


def from_texts(
    kind: Callable[..., R], found: Mapping[bytes, bytes], read: Mapping[str, Callable[[str], Any]], what: str
) -> R:
    """The record of a hash: `read` gives each field's inverse of `to_texts`.

    Raises:
        CheckFailedError: a field is missing or does not read.
    """
    given = {name.decode(): value.decode() for name, value in found.items()}
    try:
        return kind(**{name: reader(given[name]) for name, reader in read.items()})
    except (KeyError, ValueError) as error:
        raise CheckFailedError(f"{what} in Redis is not readable ({error!r}); publish it again") from None


def millis(span: timedelta) -> int:
    """A time to live as Redis takes it."""
    return span // timedelta(milliseconds=1)


def _text(value: object) -> str:
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, date) else str(value)
