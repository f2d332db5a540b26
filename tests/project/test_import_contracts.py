"""Who may import whom: the contracts of pyproject.toml hold, and they are able to fail."""

import shutil
import subprocess
import sys
import tomllib
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
        ("streaming/sources/planted.py", "import jobs", "cli above jobs"),
        ("streaming/planted.py", "import lakehouse.tables", "do not know each other"),
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


def test_the_layers_name_every_module_of_the_vocabulary():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers")["layers"]
    named = {name.strip(" ()") for layer in layers for name in layer.replace("|", ":").split(":")}
    found = [*(ROOT / "daybreak").glob("*.py"), *(init.parent for init in (ROOT / "daybreak").glob("*/__init__.py"))]
    modules = {f"daybreak.{path.stem}" for path in found if path.stem[0] != "_"}
    assert modules - named == set()
