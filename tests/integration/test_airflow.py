"""The DAGs' own suite, in Airflow's environment: `make airflow` makes it, `make test-airflow` runs the suite alone."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-airflow" / "bin" / "python"


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(file.name for file in (ROOT / "tests" / "dags").glob("test_*.py")))
def test_the_suite_of_the_dags_passes(file: str):
    assert PYTHON.exists(), "Airflow's environment is not there; run: make airflow"
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "DAYBREAK_"))}
    words = [str(PYTHON), "-m", "pytest", "-q", "-c", "tests/dags/pytest.ini", f"tests/dags/{file}"]
    done = subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=550, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout
