"""A deployment that tasks work in, and an Airflow of its own; this folder runs in Airflow's environment.

`make test-airflow` runs it. Nothing of ours is imported here: what tasks do, they do by the `daybreak` command.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DAYBREAK = ROOT / ".venv" / "bin" / "daybreak"
HOME = Path(tempfile.mkdtemp(prefix="airflow-"))
DAG_IDS = ("nightly_correction", "season_close", "recorrect_stale")
DAYS = [date(2026, 3, 1), date(2026, 3, 2)]

for name in [name for name in os.environ if name.startswith(("AIRFLOW", "DAYBREAK_"))]:
    del os.environ[name]
os.environ |= {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "airflow_dags"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
}  # before anything imports airflow


def pytest_sessionfinish() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's tables."""
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True, timeout=120)


@pytest.fixture
def dags(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The DAGs by name, read anew, and what they share."""
    monkeypatch.syspath_prepend(ROOT / "airflow_dags")
    names = ("daybreak_command", *DAG_IDS)
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    command, *modules = (importlib.import_module(name) for name in names)
    return SimpleNamespace(
        **vars(command), **{name: vars(each)[name] for name, each in zip(DAG_IDS, modules, strict=True)}
    )


class Deployment:
    """A folder with `conf/` and its own lake and Redis, reached by the command alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "conf", folder / "conf")
        (folder / "conf" / "seasons.toml").write_text("[spring]\nfrom = 2026-03-01\nto = 2026-03-01\n")
        (folder / "conf" / "boards.toml").write_text(
            '[points]\nperiods = ["day"]\nseasons = ["spring"]\ngrace = "0s"\n'
        )

    def daybreak(self, *words: str, code: int = 0) -> str:
        """What the command prints on standard output."""
        done = subprocess.run([str(DAYBREAK), *words], cwd=self.folder, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stderr
        return done.stdout

    def ingest(self, name: str, rows: list[dict[str, Any]], kind: str = "items", through: date | None = None) -> None:
        file = self.folder / name
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.daybreak("ingest", str(file), "--kind", kind, *(["--complete-through", str(through)] if through else []))

    def states(self) -> dict[str, str]:
        """The state of each day that is known."""
        said = self.daybreak("status", "--format", "json", "--from", str(DAYS[0]), "--to", str(DAYS[-1]))
        return {row["day"]: row["state"] for row in map(json.loads, said.splitlines())}


def some_events(day: date, count: int) -> list[dict[str, Any]]:
    return [
        {"event_id": f"{day}-{n}", "item_id": f"item-{n % 7}", "occurred_at": f"{day}T{n % 24:02}:00:00Z"}
        for n in range(count)
    ]


def some_scores(day: date) -> list[dict[str, Any]]:
    return [
        {
            "event_id": f"s-{day}-{n}",
            "match_id": "m",
            "match_type": "ranked",
            "player_id": f"player-{n}",
            "points": n,
            "occurred_at": f"{day}T12:00:00Z",
        }
        for n in range(5)
    ]


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Two days of events and scores, all there; nothing corrected yet."""
    made = Deployment(tmp_path_factory.mktemp("site"))
    sizes = zip(DAYS, (200, 10), strict=True)
    made.ingest("events.jsonl", [row for day, size in sizes for row in some_events(day, size)], through=DAYS[-1])
    made.ingest("scores.jsonl", [row for day in DAYS for row in some_scores(day)], "scores", through=DAYS[-1])
    os.environ |= {"AIRFLOW_VAR_DAYBREAK_BIN": str(DAYBREAK), "AIRFLOW_VAR_DAYBREAK_DIR": str(made.folder)}
    yield made
    made.daybreak("down")


def tasks_of(run: Any) -> dict[str, str]:
    """Task -> its state."""
    return {each.task_id: str(each.state) for each in run.get_task_instances()}


def without_waiting(dag: Any) -> Any:
    """The DAG with retries at once."""
    for each in dag.tasks:
        each.retry_delay, each.retry_exponential_backoff = timedelta(seconds=0), 0
    return dag
