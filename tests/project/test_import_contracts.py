"""Who may import whom: the contracts of pyproject.toml hold, and they are able to fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("daybreak", "streaming", "lakehouse", "jobs")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache", "--config", "pyproject.toml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_all_contracts_are_kept():
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("streaming/sources/planted.py", "import jobs", "the order of the packages"),
        ("streaming/planted.py", "import lakehouse.tables.registry", "the order of the packages"),
        ("jobs/planted.py", "import daybreak.queries.days", "the order of the packages"),
        ("daybreak/intake/planted.py", "import daybreak.serving.keys", "the order of the packages"),
        ("daybreak/planted.py", "import daybreak.rules.boards", "the words of daybreak"),
        ("daybreak/planted.py", "import daybreak.cli.setup.demo", "the words of daybreak"),
        ("daybreak/planted.py", "import jobs.run.pin", "the words of daybreak"),
        ("jobs/items/planted.py", "import jobs.publishing.items", "the order inside jobs"),
        ("jobs/run/planted.py", "import jobs.boards.plan", "the order inside jobs"),
        ("lakehouse/tables/planted.py", "import lakehouse.engines.engine", "the order inside lakehouse"),
        ("streaming/sketches/planted.py", "import streaming.counting.watermark", "the order inside streaming"),
        ("jobs/run/planted.py", "import jobs.night", "no circle"),
        ("daybreak/planted.py", "import pyspark", "Spark and Delta only"),
        ("streaming/planted.py", "import deltalake", "Spark and Delta only"),
        ("jobs/planted.py", "import duckdb", "DuckDB only"),
        ("lakehouse/planted.py", "import duckdb", "DuckDB only"),
        ("jobs/planted.py", "import great_expectations", "Great Expectations only"),
        ("jobs/planted.py", "import airflow", "Airflow only"),
    ],
)
def test_a_forbidden_import_breaks_its_contract(tmp_path, module, line, contract):
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / module).write_text(f'"""Planted."""\n\n{line}\n')
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    broken = [text for text in done.stdout.splitlines() if " BROKEN" in text]
    assert any(contract in text for text in broken), broken
