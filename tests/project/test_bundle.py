"""The bundle for spark-submit: everything in it is found with no checkout on the path."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PACKAGES = ("daybreak", "streaming", "lakehouse", "jobs")
DATA = sorted(
    file.relative_to(ROOT).as_posix()
    for package in PACKAGES
    for file in (ROOT / package).rglob("*")
    if file.is_file() and file.suffix != ".py" and "__pycache__" not in file.parts
)


def build(folder: Path) -> tuple[Path, Path]:
    spec = importlib.util.spec_from_file_location("deploy_bundle", ROOT / "deploy" / "bundle.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build(folder)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("bundle"))


@pytest.fixture
def python(bundle: tuple[Path, Path], tmp_path: Path):
    """Runs Python in an empty folder on the zip and the installed packages; `-S` keeps the editable install out."""

    def run(*words: str) -> str:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("DAYBREAK_")}
        for forced in ("PY_COLORS", "FORCE_COLOR"):  # either makes the help a terminal's
            environ.pop(forced, None)
        environ |= {
            "PYTHONPATH": os.pathsep.join([str(bundle[0]), sysconfig.get_path("purelib")]),
            "PYTHONSAFEPATH": "1",
            "DAYBREAK_HOME": str(tmp_path / "home"),
            "COLUMNS": "100",
        }
        done = subprocess.run(
            [sys.executable, "-S", *words], env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_same_checkout_gives_the_same_bytes(bundle, tmp_path):
    again = build(tmp_path)
    assert [file.read_bytes() for file in again] == [file.read_bytes() for file in bundle]


def test_it_holds_all_modules_and_data_of_our_packages_and_nothing_else(bundle):
    modules = {m.relative_to(ROOT).as_posix() for package in PACKAGES for m in (ROOT / package).rglob("*.py")}
    names = zipfile.ZipFile(bundle[0]).namelist()
    assert names == sorted(names)
    assert {name for name in names if ".dist-info/" not in name} == modules | set(DATA)
    assert "lakehouse/audit/recount.sql" in DATA
    assert "daybreak/serving/scripts/swap.lua" in DATA


def test_every_module_loads_from_the_zip(python, bundle):
    code = """
import importlib, sys, zipfile
names = [n for n in zipfile.ZipFile(sys.argv[1]).namelist() if n.endswith(".py")]
for name in names:
    module = importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    assert module.__file__.startswith(sys.argv[1]), module.__file__
print(len(names))
"""
    assert int(python("-c", code, str(bundle[0]))) > 50


def test_the_distribution_is_known_by_name_version_and_packages(python):
    code = """
from importlib.metadata import metadata, packages_distributions, requires
from daybreak.cli.setup.doctor import ownership
from jobs.run.run import code_version
assert {packages_distributions()[n][0] for n in ("daybreak", "streaming", "lakehouse", "jobs")} == {"daybreak"}
assert ownership()["ok"]
assert any(need.startswith("pyspark") for need in requires("daybreak"))
print(metadata("daybreak")["Name"], code_version())
"""
    from importlib.metadata import version

    assert python("-c", code) == f"daybreak {version('daybreak')}\n"


@pytest.mark.parametrize("name", DATA)
def test_a_file_that_modules_read_is_read_from_the_zip(python, name):
    package = next(folder for folder in Path(name).parents if (ROOT / folder / "__init__.py").exists())
    code = f"""
from importlib.resources import files
import sys
sys.stdout.write((files({".".join(package.parts)!r}) / {str(Path(name).relative_to(package))!r}).read_text())
"""
    assert python("-c", code) == (ROOT / name).read_text()


def test_the_redis_scripts_and_the_recount_are_found_by_their_users(python):
    code = """
from datetime import timedelta
import redis
from daybreak.serving.lease import Lease
from daybreak.serving.lists import Lists
from daybreak.settings import Settings
from lakehouse.audit import recount
client = redis.Redis()  # no connection is made
recount.STATEMENTS.texts["hourly"]
Lists(client, Settings().redis), Lease(client, "night", "run", timedelta(seconds=1))
"""
    python("-c", code)


def test_the_main_file_is_the_command(python, bundle):
    assert "nightly" in python(str(bundle[1]), "--help")
    assert "daybreak nightly --day" in python(str(bundle[1]), "nightly", "--help")


def test_a_lake_is_filled_and_queried_from_the_zip(python, bundle, tmp_path):
    (tmp_path / "events.jsonl").write_text(
        '{"event_id": "1", "item_id": "a", "occurred_at": "2026-03-01T10:00:00Z", "weight": 3}\n'
    )
    python(str(bundle[1]), "ingest", "events.jsonl")
    counted = python(str(bundle[1]), "sql", "SELECT sum(weight) AS total FROM item_events", "--format", "csv")
    assert counted.splitlines() == ["total", "3"]


def test_the_how_to_names_the_jars_that_the_code_fetches():
    from lakehouse.engines import jars

    page = (ROOT / "docs" / "how-to" / "move-to-a-cluster.md").read_text()
    submits = page.count("    spark-submit ")
    assert submits == page.count(f"--packages {','.join(jars.PACKAGES)} ") >= 4
    assert submits == page.count(f"--exclude-packages '{','.join(jars.EXCLUDES)}' ")
