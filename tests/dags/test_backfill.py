"""A running Airflow: three days are backfilled, forwards and backwards, by the scheduler and its executor."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from conftest import ROOT

PATIENCE = 240.0
RECORDER = """#!{python}
import json, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
"""
DAYS = [date(2026, 3, day) for day in (1, 2, 3)]


class Standalone:
    """`airflow standalone` on loopback, in a home of its own, its tasks' commands recorded."""

    def __init__(self, home: Path) -> None:
        self.home, self.log = home, home / "commands.jsonl"
        command = home / "daybreak"
        command.write_text(RECORDER.format(python=sys.executable, log=str(self.log)))
        command.chmod(0o755)
        ports = [free_port() for _ in range(3)]
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        self.environ |= {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "airflow_dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{ports[0]}/execution/",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(ports[0]),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(ports[1]),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports[2]),
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
            "AIRFLOW_VAR_DAYBREAK_BIN": str(command),
            "AIRFLOW_VAR_DAYBREAK_DIR": str(home),
        }
        self.airflow("db", "migrate")
        self.airflow("pools", "set", "daybreak_lake", "1", "what reads or writes the lake")
        with (home / "standalone.log").open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "airflow", "standalone"],
                env=self.environ,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def airflow(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *words], env=self.environ, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def commands(self) -> list[list[str]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def days_of(self, step: str) -> list[str]:
        """The days of March for which a step of the night was run, in order; the schedule itself adds yesterday."""
        pinned = {words[3]: words[5] for words in self.commands() if words[:2] == ["run", "pin"]}
        days = [pinned[words[3]] for words in self.commands() if words[:2] == ["run", step]]
        return [day for day in days if day.startswith("2026-03")]

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    made = Standalone(tmp_path_factory.mktemp("standalone"))
    yield made
    made.stop()


def backfilled(standalone: Standalone, *words: str, count: int) -> list[str]:
    """The days whose last step has run, once there are `count` more of them than before."""
    before = len(standalone.days_of("boards"))
    span = ("--from-date", "2026-03-01", "--to-date", "2026-03-03T23:59:59", "--max-active-runs", "1")
    end = time.monotonic() + PATIENCE
    while True:  # until the DAG is known
        try:
            standalone.airflow("backfill", "create", "--dag-id", "nightly_correction", *span, *words)
            break
        except AssertionError:
            assert time.monotonic() < end, (standalone.home / "standalone.log").read_text()[-2000:]
            time.sleep(2)
    standalone.airflow("dags", "unpause", "nightly_correction")  # a paused DAG's backfill waits
    while len(done := standalone.days_of("boards")[before:]) < count:
        assert time.monotonic() < end, (done, (standalone.home / "standalone.log").read_text()[-3000:])
        time.sleep(1)
    return done


def test_three_days_are_backfilled_in_both_directions(standalone: Standalone):
    due = [str(day) for day in DAYS]
    assert backfilled(standalone, count=3) == due
    again = backfilled(standalone, "--run-backwards", "--reprocess-behavior", "completed", count=3)
    assert again == due[::-1]
    runs = [words[3] for words in standalone.commands() if words[:2] == ["run", "pin"]]
    assert len(set(runs)) == 6, "a day that is corrected anew is another run for the lake"
    for run in runs:
        steps = [words[1] for words in standalone.commands() if words[:1] == ["run"] and words[3] == run]
        assert steps == ["pin", "derive", "check", "commit", "capture", "publish", "report", "optimize", "boards"]
    assert ["board", "close", "--due"] not in standalone.commands(), "paused: nobody has switched it on"
