"""The packages, their owner, and the lock files."""

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)(\[[a-z,]+\])?==([^ ;\\]+)", re.MULTILINE)


def test_the_package_list_is_what_lies_in_the_checkout():
    found = {
        str(init.parent.relative_to(ROOT)).replace("/", ".")
        for top in ("daybreak", "streaming", "lakehouse", "jobs")
        for init in (ROOT / top).rglob("__init__.py")
    }
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == found


@pytest.mark.parametrize("package", ["daybreak", "streaming", "lakehouse", "jobs"])
def test_each_package_belongs_to_this_distribution_alone(package):
    others = {
        owner
        for owner in metadata.packages_distributions().get(package, [])
        if owner.lower() != PROJECT["project"]["name"]
    }
    assert others == set()
    module = __import__(package)
    assert Path(module.__file__).is_relative_to(ROOT)


def test_init_files_hold_a_docstring_only():
    for package in PROJECT["tool"]["setuptools"]["packages"]:
        init = ROOT / package.replace(".", "/") / "__init__.py"
        tree = ast.parse(init.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), init
        assert len(tree.body) == 1, init


def test_dags_import_airflow_and_the_standard_library_and_what_they_share_only():
    allowed = {"airflow", "daybreak_command", *sys.stdlib_module_names}
    for file in (ROOT / "airflow_dags").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file.name} imports a neighbour"
                names = [node.module or ""]
            assert {name.split(".")[0] for name in names} <= allowed, file.name


def test_there_are_four_lock_files():
    assert [lock.name for lock in LOCKS] == ["airflow.txt", "bootstrap.txt", "dev.txt", "runtime.txt"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_file_holds_no_address_and_no_path_of_a_machine(lock):
    for line in lock.read_text(encoding="utf-8").splitlines():
        assert "://" not in line, line
        assert not line.lstrip().startswith(("-i", "-f", "--index", "--extra-index", "--find-links")), line
        assert not re.search(r"(^|\s)/\w", line), line


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_has_a_hash(lock):
    for block in re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8")):
        if not block.startswith("#"):
            assert PIN.match(block), block.splitlines()[0]
            assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", block), block.splitlines()[0]


def test_the_locks_agree_and_cover_what_the_project_asks_for():
    pins = {lock.stem: {m[1]: m[3] for m in PIN.finditer(lock.read_text("utf-8"))} for lock in LOCKS}
    assert pins["runtime"].items() <= pins["dev"].items()
    assert pins["bootstrap"]["setuptools"] == pins["dev"]["setuptools"]

    def names(lines):
        return {re.split(r"[\[=<>~! ]", line)[0].replace("_", "-").lower() for line in lines}

    assert names(PROJECT["project"]["dependencies"]) <= pins["runtime"].keys()
    assert names(PROJECT["dependency-groups"]["dev"]) <= pins["dev"].keys()
