"""The examples in our docstrings run and give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for package in ("daybreak", "streaming", "lakehouse", "jobs")
    for file in (ROOT / package).rglob("*.py")
    if ">>> " in file.read_text(encoding="utf-8")
)


def test_there_are_examples():
    assert len(MODULES) > 3


@pytest.mark.parametrize("module", MODULES)
def test_examples_of(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0
