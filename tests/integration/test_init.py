"""`daybreak init` from an installed wheel, with no checkout around: a folder in which a night can be run as it is."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from daybreak.cli.main import app
from daybreak.errors import UsageError
from daybreak.serving.embedded import EmbeddedServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"
DAY = "2026-03-01"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Where a wheel of this checkout lies unpacked."""
    source, wheels, folder = tmp_path / "source", tmp_path / "wheels", tmp_path / "installed"
    for package in ("daybreak", "streaming", "lakehouse", "jobs"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    wheels.mkdir()
    subprocess.run([sys.executable, "-c", BUILD, str(wheels)], cwd=source, check=True, capture_output=True)
    (wheel,) = wheels.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "a deployment"
    yield folder
    EmbeddedServer(folder / ".daybreak").stop()


def run(installed: Path, folder: Path, *words: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DAYBREAK_")}
    done = subprocess.run(
        [sys.executable, *([] if words[0] == "-c" else ["-m", "daybreak.cli"]), *words],
        cwd=folder,
        env=environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_night_runs_in_a_fresh_deployment_of_an_installed_wheel(installed: Path, deployment: Path, tmp_path: Path):
    said = run(installed, tmp_path, "init", deployment.name)
    assert run(installed, tmp_path, "-c", "import daybreak; print(daybreak.__file__)").startswith(str(installed))
    assert "    cd 'a deployment'\n" in said
    board = (deployment / "conf" / "boards.toml").read_text().partition("# [laps]")[2].partition("\n\n")[0]
    (deployment / "conf" / "boards.toml").write_text("[laps]" + board.replace("\n# ", "\n"))
    event = {"event_id": "1", "item_id": "a", "player_id": "ana", "match_id": "m", "points": 61, "weight": 2}
    for kind in ("items", "scores"):
        (deployment / f"{kind}.jsonl").write_text(json.dumps(event | {"occurred_at": f"{DAY}T10:00:00Z"}))
        run(installed, deployment, "ingest", f"{kind}.jsonl", "--kind", kind, "--complete-through", DAY)
    run(installed, deployment, "nightly", "--day", DAY)
    assert "1,1,a,2" in run(installed, deployment, "top", "--at", DAY, "--format", "csv")
    assert "1,1,ana,61.000" in run(installed, deployment, "board", "top", "laps", "--format", "csv")
    assert {each.name for each in deployment.iterdir()} == {
        ".daybreak",
        ".gitignore",
        "conf",
        "items.jsonl",
        "scores.jsonl",
    }


def test_a_conf_that_is_there_stays_as_it_is(tmp_path: Path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "base.toml").write_text("engine = 'spark'")
    refused = CliRunner().invoke(app, ["init", str(tmp_path)])
    assert isinstance(refused.exception, UsageError)
    assert f"{tmp_path / 'conf'} is there already" in str(refused.exception)
    assert [each.name for each in (tmp_path / "conf").iterdir()] == ["base.toml"]
    (tmp_path / "file").write_text("")
    refused = CliRunner().invoke(app, ["init", str(tmp_path / "file")])
    assert isinstance(refused.exception, UsageError)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("nigh", {"nightly"}),
        ("board to", {"top"}),
        ("board top ", {"goals", "laps"}),
        ("run c", {"complete", "check", "commit", "capture"}),
        ("top --window ", {"minute", "hour", "day"}),
        ("top --format ", {"table", "json", "csv"}),
    ],
)
def test_a_shell_completes_commands_and_what_they_take(tmp_path: Path, typed: str, offered: set[str]):
    (tmp_path / "boards.toml").write_text("[goals]\n[laps]")
    words = f"daybreak {typed}"
    environ = {"_DAYBREAK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    environ["DAYBREAK_BOARDS_FOLDER"] = str(tmp_path)
    done = CliRunner().invoke(app, [], prog_name="daybreak", env=environ)
    assert {*done.stdout.split()} == offered
    broken = CliRunner().invoke(app, [], prog_name="daybreak", env=environ | {"DAYBREAK_NO_SETTING": "1"})
    assert {*broken.stdout.split()} == (offered if typed != "board top " else set())


def test_completion_can_be_installed():
    options = {name for option in typer.main.get_command(app).params for name in option.opts}
    assert "--install-completion" in options
