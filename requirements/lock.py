"""Resolve the lock files from pyproject.toml, for every platform, with hashes and without addresses."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
COMMON = [
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-annotate",
    "--no-strip-extras",
    "--quiet",
    "--custom-compile-command=make lock",
]
LOCKS = {
    "runtime.txt": ["pyproject.toml"],
    "dev.txt": ["pyproject.toml", "--group=dev", "--constraints=requirements/runtime.txt"],
    "bootstrap.txt": ["requirements/bootstrap.in", "--constraints=requirements/dev.txt"],
    "airflow.txt": ["requirements/airflow.in", "--strip-extras"],
}


def main() -> None:
    """Write each lock in order: a later one is held to the versions of the one before."""
    for name, sources in LOCKS.items():
        command = [sys.executable, "-m", "uv", "pip", "compile", *COMMON, *sources]
        subprocess.run([*command, "--output-file", f"requirements/{name}"], check=True, cwd=HERE.parent)


if __name__ == "__main__":
    main()
