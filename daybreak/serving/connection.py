"""The Redis that lists are served from: one named by its url, or the embedded one."""

import time

import redis
from redis.exceptions import BusyLoadingError, RedisError

from daybreak.serving.client import client_of, unreachable
from daybreak.serving.embedded import START_SECONDS, EmbeddedServer
from daybreak.settings import Settings


def connect(settings: Settings) -> redis.Redis:
    """A client of the server that the settings name, or of the embedded one, started when it is not running.

    Raises:
        UnreachableError: nobody answers there.
        UsageError: the url is not one of a Redis.
    """
    if settings.redis.url is None:
        return client_of(EmbeddedServer(settings.home).ensure())
    client = client_of(settings.redis.url)
    give_up = time.monotonic() + START_SECONDS
    while True:
        try:
            client.ping()
            return client
        except BusyLoadingError as error:
            if time.monotonic() > give_up:
                raise unreachable(settings.redis.url, error) from None
            time.sleep(0.1)
        except (RedisError, OSError) as error:
            raise unreachable(settings.redis.url, error) from None
