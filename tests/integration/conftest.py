"""Worlds for the tests of whole nights; each ends its own Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from daybreak.serving.embedded import EmbeddedServer
from tests.integration.nights import World

SHARED = Path(__file__).parents[3] / "shared" / "data"
ACCEPTANCE = {"online-retail": "test_online_retail.py", "international-football": "test_football.py"}
ABSENT = [name for name in ACCEPTANCE if not (SHARED / name).exists()]
collect_ignore = [ACCEPTANCE[name] for name in ABSENT]


def pytest_report_header() -> list[str]:
    """Says which acceptance tests this run has."""
    left_out = "not beside this clone, so its acceptance tests are left out"
    return [f"{name}: {left_out if name in ABSENT else 'found'}" for name in ACCEPTANCE]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    home = tmp_path / "home"
    home.mkdir()
    made = World(home)
    yield made
    made.engine.stop()
    EmbeddedServer(home).stop()
