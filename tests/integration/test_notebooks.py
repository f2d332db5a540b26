"""Every notebook runs headless, on what its README says it needs, and holds no outputs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daybreak.serving.embedded import EmbeddedServer
from tests.engines import Engines
from tests.integration.nights import D1, D3, some_days
from tests.integration.test_board_night import BoardWorld, board_world, some_scores

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Iterator[BoardWorld]:
    """Three days with provisional lists and scores, corrected night by night."""
    made = board_world(tmp_path_factory.mktemp("notebooks") / "home", engines["sail"])
    made.ingest("events.jsonl", some_days(), through=D3)
    made.scores("scores.jsonl", some_scores(), through=D3)
    made.stream("events.jsonl")
    made.night(D1)
    made.night(D1 + (D3 - D1) / 2, D3)
    yield made
    EmbeddedServer(made.home).stop()


def ran(notebook: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The notebook as a script, without a screen."""
    return subprocess.run(
        [sys.executable, str(notebook)],
        env=os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(FOLDER.parent)} | environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_headless(world: BoardWorld, notebook: Path) -> None:
    done = ran(notebook, world.environ)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["a_day_and_its_error", "a_season"])
def test_a_notebook_says_what_it_lacks(tmp_path: Path, name: str) -> None:
    done = ran(FOLDER / f"{name}.py", {"DAYBREAK_HOME": str(tmp_path)})
    assert done.returncode != 0
    assert str(tmp_path) in done.stderr


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_is_listed_and_holds_no_outputs(notebook: Path) -> None:
    assert f"`{notebook.name}`" in (FOLDER / "README.md").read_text()
    assert notebook.read_text().startswith('"""')
    assert not list(FOLDER.glob("**/__marimo__/*")), "no session is kept beside the notebooks"
    assert not list(FOLDER.glob("*.ipynb"))


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3
