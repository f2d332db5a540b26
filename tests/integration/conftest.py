"""Worlds for the tests of whole nights; each ends its own Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from nights import World

from daybreak.serving.server import EmbeddedServer

RETAIL = Path(__file__).parents[3] / "shared" / "data" / "online-retail"
HAS_RETAIL = RETAIL.exists()
collect_ignore = [] if HAS_RETAIL else ["test_online_retail.py"]


def pytest_report_header() -> str:
    """Says which acceptance tests this run has."""
    return f"online-retail: {'found' if HAS_RETAIL else 'not beside this clone, so its acceptance tests are left out'}"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    home = tmp_path / "home"
    home.mkdir()
    made = World(home)
    yield made
    made.engine.stop()
    EmbeddedServer(home).stop()
