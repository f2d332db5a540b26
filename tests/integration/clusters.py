"""A standalone Spark cluster on loopback, its processes real; and what its event logs say."""

import json
import os
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

import psutil

from lakehouse.engines.jars import spark_home
from lakehouse.engines.java import find_java
from tests.engines import QUICK

PATIENCE = 120.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.1)


class Cluster:
    """One master and two workers of one core, each a process of its own. No Python runs in their environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        self._all: list[subprocess.Popen[bytes]] = []
        self._port, self._ui = free_port(), free_port()
        folder.mkdir(parents=True, exist_ok=True)
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        self.environ = environ | {
            "JAVA_HOME": str(find_java(folder / "java").home),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_PUBLIC_DNS": "127.0.0.1",
        }

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        try:
            self._start("master.Master", "--port", str(self._port), "--webui-port", str(self._ui))
            wait_until(self._answers, "the master answers")  # workers that come sooner wait for 5 to 15 s
            self.complete()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def complete(self) -> None:
        """Two workers, new ones for those that are gone."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < 2:
            work = self.folder / "work" / str(len(self._all))
            words = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work), self.master)
            self.workers.append(self._start("worker.Worker", *words))
        wait_until(lambda: self._alive() == 2, "two workers are registered")

    def executor(self, worker: subprocess.Popen[bytes]) -> psutil.Process:
        """The process in which this worker's tasks run."""
        family = psutil.Process(worker.pid).children()
        living = [each for each in family if each.status() != psutil.STATUS_ZOMBIE]  # spark-class leaves one
        return next(each for each in living if "--executor-id" in each.cmdline())

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """End a worker and what it started as a machine ends: at once."""
        family = [psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        worker.wait()

    def stop(self) -> None:
        """End every process, each by its id."""
        for process in reversed(self._all):
            if process.poll() is None:
                self.kill(process)

    def _start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1"]
        environ = self.environ | {
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.master.rest.enabled=false {QUICK}",
            "PYTHONHOME": "/nonexistent",  # a Python that is started with this ends at once
        }
        with (self.folder / f"{len(self._all)}-{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, *words], env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._all.append(process)
        return process

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
            return True
        return False

    def _alive(self) -> int:
        """Workers that the master counts; none while its page is not there yet."""
        with suppress(OSError, ValueError), urlopen(f"http://127.0.0.1:{self._ui}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
        return 0


def name_of(executor: psutil.Process) -> str:
    """The id under which Spark knows this process."""
    words = executor.cmdline()
    return words[words.index("--executor-id") + 1]


def active_tasks(ui: int, executor: str) -> int:
    """Tasks that the executor of this id was given and has not finished, as the driver's page says.

    None while the page does not answer: on a busy machine its first answer takes longer than a while.
    """
    base = f"http://127.0.0.1:{ui}/api/v1/applications"
    with suppress(OSError):
        with urlopen(base, timeout=20) as answer:
            (application,) = json.load(answer)
        with urlopen(f"{base}/{application['id']}/executors", timeout=20) as answer:
            return sum(each["activeTasks"] for each in json.load(answer) if each["id"] == executor)
    return 0


def task_ends(logs: Path) -> list[dict[str, Any]]:
    """How each task ended, of the runs that logged into this folder."""
    events = (json.loads(line) for file in sorted(logs.iterdir()) for line in file.read_text().splitlines())
    return [event for event in events if event["Event"] == "SparkListenerTaskEnd"]


def tasks_by_executor(logs: Path) -> Counter[str]:
    """How many tasks each executor finished well."""
    ends = task_ends(logs)
    return Counter(end["Task Info"]["Executor ID"] for end in ends if end["Task End Reason"]["Reason"] == "Success")
