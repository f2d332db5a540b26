"""A client of Redis, and the errors of one that does not answer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

import redis
from redis.exceptions import BusyLoadingError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from daybreak.errors import UnreachableError, UsageError

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 30.0

P = ParamSpec("P")
R = TypeVar("R")


def client_of(url: str, answer_seconds: float = ANSWER_SECONDS) -> redis.Redis:
    """A client that answers in bytes and gives up in time; it has not connected yet."""
    try:
        return redis.Redis.from_url(
            url,
            decode_responses=False,
            socket_timeout=answer_seconds,
            socket_connect_timeout=CONNECT_SECONDS,
        )
    except ValueError as error:
        raise UsageError(
            f"redis.url = {without_password(url)!r} is no Redis url ({error}); "
            "write redis://HOST:PORT/0, rediss://… or unix:///PATH"
        ) from None


def unreachable(url: str, reason: object) -> UnreachableError:
    """The error for a Redis that does not answer."""
    return UnreachableError(
        f"Redis at {without_password(url)} does not answer ({reason}); start it, or correct DAYBREAK_REDIS__URL "
        "(without it the embedded one is used)"
    )


def without_password(url: str) -> str:
    """The url as it may be shown.

    >>> without_password("redis://me:secret@db:6379/0")
    'redis://me:***@db:6379/0'
    """
    password = urlsplit(url).password
    return url.replace(f":{password}@", ":***@") if password else url


def address(client: redis.Redis) -> str:
    """Where a client connects to, for messages."""
    given = client.connection_pool.connection_kwargs
    return f"unix://{given['path']}" if "path" in given else f"redis://{given.get('host')}:{given.get('port')}"


@contextmanager
def answering(client: redis.Redis) -> Iterator[None]:
    """Turns a connection that breaks inside into an UnreachableError."""
    try:
        yield
    except (RedisConnectionError, RedisTimeoutError, BusyLoadingError) as error:
        raise unreachable(address(client), error) from error


def reaches_redis(method: Callable[P, R]) -> Callable[P, R]:
    """A method of an object with a `client` whose broken connections are UnreachableErrors."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        owner: Any = args[0]
        with answering(owner.client):
            return method(*args, **kwargs)

    return guarded
