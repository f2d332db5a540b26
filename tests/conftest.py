"""What every test may ask for."""

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh DAYBREAK_HOME."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("DAYBREAK_HOME", str(folder))
    return folder
