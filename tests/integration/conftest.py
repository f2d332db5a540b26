"""Worlds for the tests of whole nights; each ends its own Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from nights import World

from daybreak.serving.server import EmbeddedServer


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    home = tmp_path / "home"
    home.mkdir()
    yield World(home)
    EmbeddedServer(home).stop()
