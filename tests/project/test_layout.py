"""Where modules and their tests lie: no floor is crowded, and a test is found from the module that it tests."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "tests" / "unit"
MOST = 10
"""Modules on one floor, as of the house style; what holds more is two things."""


def packages() -> list[Path]:
    """The folders with modules of ours."""
    tops = (ROOT / name for name in ("daybreak", "streaming", "lakehouse", "jobs"))
    return sorted({file.parent.relative_to(ROOT) for top in tops for file in top.rglob("__init__.py")})


def modules(package: Path) -> set[str]:
    return {file.stem for file in (ROOT / package).glob("*.py")} - {"__init__"}


def module_of(test: Path) -> str | None:
    """The module that a file of tests/unit belongs to: test_X.py to X, and test_X_more.py to X as well."""
    known = modules(test.relative_to(UNIT).parent)
    words = test.stem.removeprefix("test_").split("_")
    names = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    return next((name for name in names if name in known), None)


@pytest.mark.parametrize("package", packages(), ids=str)
def test_no_floor_holds_more_modules_than_a_reader_can_survey(package: Path):
    assert len(modules(package)) <= MOST, sorted(modules(package))


def test_each_unit_test_has_the_address_of_its_module():
    files = sorted(UNIT.rglob("test_*.py"))
    assert len(files) > 20
    strays = [str(file.relative_to(ROOT)) for file in files if module_of(file) is None]
    assert strays == [], "no module of this name in the same package"
    assert {file.parent.relative_to(UNIT) for file in files} <= set(packages())


def test_a_name_of_no_module_is_told_apart():
    assert module_of(UNIT / "daybreak" / "test_ranking.py") == "ranking"
    assert module_of(UNIT / "lakehouse" / "audit" / "test_board_recount_parts.py") == "board_recount"
    assert module_of(UNIT / "lakehouse" / "audit" / "test_parts_of_recount.py") is None
    assert module_of(UNIT / "jobs" / "test_ranking.py") is None


def test_every_file_that_contributing_names_is_there():
    named = re.findall(
        r"`((?:daybreak|streaming|lakehouse|jobs|tests)/[\w/.]+)`", (ROOT / "CONTRIBUTING.md").read_text()
    )
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists()] == []
