"""A Spark cluster reached over Spark Connect: no JVM here, every frame is sent to the server.

Reads and writes of frames are all it asks of the server; Delta's own plugin for Connect is not needed.
"""

import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from daybreak.errors import LakeFailedError, UsageError
from lakehouse.engines.engine import Engine, first_line
from lakehouse.engines.jvm import hush
from lakehouse.engines.spark import MEANING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PORT = 15002
PROBE_SECONDS = 5.0
REMOTE = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE")
"""pyspark would take these for the URL; ours comes from the settings."""


class ConnectEngine(Engine):
    """One session on a remote Spark. The server goes on when it stops.

    `conf` is set on the session; the URL may hold a token, so only `shown` is printed.
    """

    name = "connect"
    speaks_connect = True

    def __init__(self, url: str, conf: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.url = url
        self.shown = "sc://{}:{}".format(*address(url))
        self.conf = {**MEANING, **(conf or {})}

    def _start(self) -> "SparkSession":
        from pyspark.sql import SparkSession
        from pyspark.sql.connect.client.retries import DefaultPolicy

        self.probe()
        hush()
        for name in REMOTE:
            os.environ.pop(name, None)
        with self.failing_as("opening a session"):
            spark = SparkSession.builder.remote(self.url).create()
            spark.client.set_retry_policies([DefaultPolicy(max_retries=2, initial_backoff=50, max_backoff=100)])
        for name, value in self.conf.items():
            with self.failing_as(f"setting {name} = {value}"):
                spark.conf.set(name, value)
        return spark

    def _stop(self, spark: "SparkSession | None") -> None:
        if spark is not None:
            with suppress(Exception):  # the server may be gone; it drops the session by itself then
                spark.stop()

    def probe(self) -> None:
        """Does nothing when something listens at the URL.

        Raises:
            UsageError: it is no Connect URL.
            LakeFailedError: nobody listens there.
        """
        host, port = address(self.url)
        try:
            socket.create_connection((host, port), PROBE_SECONDS).close()
        except OSError as error:
            raise LakeFailedError(
                f"no Spark Connect server answers at {self.shown} ({error.strerror or error}); start it, or set "
                "spark.remote (DAYBREAK_SPARK__REMOTE) to the one that runs"
            ) from None

    @contextmanager
    def failing_as(self, what: str) -> Iterator[None]:
        """Failures of the server inside become ours. Building a frame can fail too."""
        from grpc import RpcError
        from pyspark.errors import PySparkException
        from pyspark.errors.exceptions.connect import SparkConnectGrpcException

        try:
            yield
        except (PySparkException, RpcError) as error:
            if isinstance(error, RpcError) or type(error) is SparkConnectGrpcException:
                self._drop_dead_session()
            raise LakeFailedError(f"Spark at {self.shown} failed during {what}: {reason_of(error)}") from error

    def _drop_dead_session(self) -> None:
        """The next use opens a new session when the server is gone."""
        try:
            self.probe()
        except LakeFailedError:
            self._spark = None


def address(url: str) -> tuple[str, int]:
    """(host, port) of a Connect URL.

    >>> address("sc://spark.example:443/;use_ssl=true")
    ('spark.example', 443)
    >>> address("sc://[::1]")
    ('::1', 15002)
    """
    try:
        parts = urlsplit(url)
        if parts.scheme == "sc" and parts.hostname:
            return parts.hostname, parts.port or PORT
    except ValueError:
        pass
    shown = url.partition(";")[0].rpartition("@")[2]  # what follows may be a token
    raise UsageError(f"spark.remote = {shown!r} is not a Spark Connect URL; write it as sc://host:{PORT}")


def reason_of(error: Exception) -> str:
    """The first line of an error; of one from below Spark, its details.

    >>> reason_of(ValueError('<_InactiveRpcError of RPC>\\n\\tdetails = "Connection refused"'))
    'Connection refused'
    """
    details = re.search(r'details = "(.*)"', str(error))
    return details[1] if details else first_line(error)
