"""A running Airflow: three days are backfilled, forwards and backwards, by the scheduler and its executor."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import date
from pathlib import Path

import pytest

from tests.dags.conftest import ROOT

PATIENCE = 240.0
RECORDER = """#!{python} -IS
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[2] == "complete" and not sys.argv[-1].startswith("2026-03"):
    sys.exit(3)
sys.exit(4 if sys.argv[2] == "check" and os.path.exists({log!r} + ".refuse") else 0)
"""
"""Notes what it is asked to do; its check fails while there is a file that says so.

Yesterday, which the schedule itself adds, is not complete, so that its run goes no further.
"""
REPROCESS = ("--reprocess-behavior", "completed")
DAYS = [date(2026, 3, day) for day in (1, 2, 3)]


AIRFLOW = """
import json, sys
from airflow.__main__ import main
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    main()
"""
"""Several commands of Airflow in one process: each process takes seconds to start."""


SERVICES = ("api-server", "scheduler")
"""What tasks are run by. Of the rest of `airflow standalone`, no task here defers, and the DAGs are read once."""


class Airflow:
    """A running Airflow on loopback, in a home of its own, its tasks' commands recorded."""

    def __init__(self, home: Path) -> None:
        self.home, self.log = home, home / "commands.jsonl"
        self.services: dict[str, subprocess.Popen[bytes]] = {}
        command = home / "daybreak"
        command.write_text(RECORDER.format(python=sys.executable, log=str(self.log)))
        command.chmod(0o755)
        self.port, *ports = (free_port() for _ in range(3))
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        self.environ |= {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "AIRFLOW_HOME": str(home),
            # two commands and a scheduler write at once: wait for the lock instead of failing after five seconds
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=120",
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "airflow_dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{self.port}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(ports[0]),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports[1]),
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
            "AIRFLOW_VAR_DAYBREAK_BIN": str(command),
            "AIRFLOW_VAR_DAYBREAK_DIR": str(home),
        }

    def prepare(self, *commands: Sequence[str]) -> str:
        """What the commands say, once there are the tables, the pool and the DAGs."""
        pool = ["pools", "set", "daybreak_lake", "1", "what reads or writes the lake"]
        return self.airflow(["db", "migrate"], pool, ["dags", "reserialize"], *commands)

    def start(self, service: str) -> None:
        """Start a service of Airflow; returns once tasks can be run."""
        words = [sys.executable, "-m", "airflow", service]
        with (self.home / "services.log").open("ab") as out:
            self.services[service] = subprocess.Popen(
                words, env=self.environ, stdout=out, stderr=out, start_new_session=True
            )
        end = time.monotonic() + PATIENCE
        while not answers(self.port):  # before it does, tasks would fail to start
            assert time.monotonic() < end, self.said()
            time.sleep(0.2)

    def said(self) -> str:
        return (self.home / "services.log").read_text()[-3000:]

    def airflow(self, *commands: Sequence[str]) -> str:
        """What the commands say."""
        words = [sys.executable, "-c", AIRFLOW, json.dumps(commands)]
        done = subprocess.run(words, env=self.environ, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def commands(self) -> list[list[str]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def days_of(self, step: str) -> list[str]:
        """The days of March for which a step of the night was run, in order; the schedule itself adds yesterday."""
        pinned = {words[3]: words[5] for words in self.commands() if words[:2] == ["run", "pin"]}
        days = [pinned[words[3]] for words in self.commands() if words[:2] == ["run", step]]
        return [day for day in days if day.startswith("2026-03")]

    def has_open_backfill(self) -> bool:
        """Whether a backfill is not noted as over, as the tables say: a command of Airflow takes seconds to ask."""
        with closing(sqlite3.connect(f"file:{self.home}/airflow.db?mode=ro", uri=True, timeout=60)) as tables:
            (count,) = tables.execute("select count(*) from backfill where completed_at is null").fetchone()
        return bool(count)

    def stop(self, *services: str) -> None:
        """End these services."""
        stopping = [self.services.pop(service) for service in services if service in self.services]
        for process in stopping:
            os.killpg(process.pid, signal.SIGTERM)
        for process in stopping:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):  # what it started may outlive it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Airflow]:
    made = Airflow(tmp_path)
    yield made
    made.stop(*SERVICES)


def backfill(last: str, *words: str) -> list[str]:
    """The command that makes a backfill from 1 March on."""
    span = ("--from-date", "2026-03-01", "--to-date", last, "--max-active-runs", "1")
    return ["backfill", "create", "--dag-id", "nightly_correction", *span, *words]


def until_the_one_before_is_over(running: Airflow) -> None:
    """Returns once Airflow has noted the end of the backfill before, which it does every 30 seconds."""
    end = time.monotonic() + PATIENCE
    while running.has_open_backfill():
        assert time.monotonic() < end, running.said()
        time.sleep(0.5)


def days_of(running: Airflow, step: str, count: int) -> list[str]:
    """The days for which the step was run, in order, once there are as many."""
    end = time.monotonic() + PATIENCE
    while len(done := running.days_of(step)) < count:
        assert time.monotonic() < end, (done, running.said())
        time.sleep(0.5)
    return done


def test_three_days_are_backfilled_in_both_directions(running: Airflow):
    due = [str(day) for day in DAYS]
    first = [backfill("2026-03-03", "--dry-run"), ["dags", "unpause", "nightly_correction"]]
    short = running.prepare(*first)
    assert "2026-03-02 02:30" in short
    assert "2026-03-03 02:30" not in short, "the trap: midnight of the last day is before its run"
    running.airflow(backfill("2026-03-04"))
    for service in SERVICES:  # the scheduler last: without an answer from the other, its tasks fail to start
        running.start(service)
    assert days_of(running, "boards", 3) == due
    (running.home / "commands.jsonl.refuse").touch()
    until_the_one_before_is_over(running)
    running.stop("scheduler")  # SQLite refuses a command that has read what the scheduler then writes
    again = [backfill("2026-03-04", "--dry-run"), backfill("2026-03-04", "--run-backwards", *REPROCESS)]
    said = running.airflow(*again)
    running.start("scheduler")
    assert "2026-03-01 02:30" not in said, "the trap: days that have runs are left out"
    assert days_of(running, "check", 6) == [*due, *due[::-1]]
    taken: dict[str, list[str]] = {}
    for words in running.commands():
        if words[0] == "run" and words[1] != "complete" and words[3].startswith("backfill"):
            taken.setdefault(words[3], []).append(words[1])
    steps = ["pin", "derive", "check", "commit", "capture", "publish", "report", "optimize", "boards"]
    assert [*taken.values()] == [*[steps] * 3, *[steps[:3]] * 3], "runs of their own; a failed check is not repeated"
    assert ["board", "close", "--due"] not in running.commands(), "paused: nobody has switched it on"
