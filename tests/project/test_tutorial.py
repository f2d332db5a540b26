"""The tutorial, replayed as it is printed: every command in turn, in a fresh folder, and what the page says of it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from daybreak.serving.embedded import EmbeddedServer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
SETUP = ("make setup", ". .venv/bin/activate")
"""Done already where this test runs."""


def printed() -> list[str]:
    """What a reader types, in order: indented lines, and blocks that are no picture."""
    found: list[str] = []
    fenced: list[str] | None = None
    for line in PAGE.splitlines():
        if line.startswith("```"):
            if fenced:
                found.append("\n".join(fenced))
            fenced = [] if fenced is None else None
        elif fenced is not None:
            fenced.append(line)
        elif line.startswith("    "):
            found.append(line.strip())
    return [each for each in found if each not in SETUP]


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DAYBREAK_")}
    environ["PATH"] = os.pathsep.join([str(ROOT / ".venv" / "bin"), environ["PATH"]])
    said: dict[str, str] = {}
    try:
        for typed in printed():
            done = subprocess.run(
                ["bash", "-c", typed], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120
            )
            assert done.returncode == 0, (typed, done.stdout, done.stderr)
            said[typed] = said.get(typed, "") + done.stderr + done.stdout
    finally:
        EmbeddedServer(tmp_path / ".daybreak").stop()
    top = next(text for typed, text in said.items() if typed.startswith("daybreak top"))
    provisional, exact = top.split("state=")[1:]
    assert (provisional.split()[0], exact.split()[0]) == ("provisional", "exact")
    assert re.search(r"1\s*│\s*1\s*│\s*A\s*│\s*3", provisional), "it says 3 for A"
    assert re.search(r"A\s*│\s*2", exact), "the list is now exact and says 2 for A"
    ingest = next(text for typed, text in said.items() if typed.startswith("daybreak ingest"))
    assert "4 accepted + 1 refused = 5 read" in ingest
    assert "stopped" in said["daybreak down"]


def test_the_tutorial_is_read_whole() -> None:
    words = printed()
    assert words[0] == "daybreak doctor"
    assert words[-1] == "daybreak down"
    assert len(words) >= 10
