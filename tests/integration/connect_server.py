"""A real Spark Connect server with Delta's jars, a process of its own on loopback."""

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from daybreak.settings import Spark
from lakehouse.engines import jars
from lakehouse.engines.spark import SparkEngine, own_conf
from tests.engines import SHORT_LIVED

START_SECONDS = 120.0


@dataclass(frozen=True)
class Server:
    """Where it listens and which process it is."""

    url: str
    process: "subprocess.Popen[bytes]"


@contextmanager
def connect_server(home: Path) -> Iterator[Server]:
    """A server that is ended afterwards."""
    engine = SparkEngine(Spark(master="local[2]", driver_memory="2g", conf=SHORT_LIVED), home)
    port = free_port()
    conf = own_conf(engine.settings, engine.folder, home / "scratch", engine.warm()) | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    command = [str(jars.spark_home() / "bin" / "spark-submit")]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    dropped = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS")
    environ = {name: value for name, value in os.environ.items() if name not in dropped}
    environ |= {"JAVA_HOME": str(engine.java().home), "SPARK_HOME": str(jars.spark_home()), "SPARK_CONNECT_MODE": "0"}
    log = home / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=end_with_parent
        )
    try:
        wait_for(port, server, log)
        yield Server(f"sc://127.0.0.1:{port}", server)
    finally:
        server.kill()
        server.wait()


def wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    """Returns once the server listens."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"no Connect server: {log.read_text(errors='replace')[-2000:]}")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end_with_parent() -> None:
    """Asks Linux to kill this process with its parent, so that a killed test run leaves no server behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
