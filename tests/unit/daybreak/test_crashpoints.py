import re
import subprocess
import sys
from pathlib import Path

import pytest

from daybreak.crashpoints import POINTS, crash_point
from daybreak.errors import UsageError

ROOT = Path(__file__).parents[3]


def test_nothing_happens_unless_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DAYBREAK_CRASH_AT", raising=False)
    crash_point("publish.staged")
    monkeypatch.setenv("DAYBREAK_CRASH_AT", "publish.swapped")
    crash_point("publish.staged")


def test_an_unknown_name_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DAYBREAK_CRASH_AT", "publish.stagd")
    with pytest.raises(UsageError, match=r"'publish\.stagd' is no crash point"):
        crash_point("publish.staged")


def test_the_process_dies_there():
    code = "from daybreak.crashpoints import crash_point\ntry: crash_point('publish.pointer')\nfinally: print('alive')"
    ended = subprocess.run(
        [sys.executable, "-c", code], env={"DAYBREAK_CRASH_AT": "publish.pointer"}, capture_output=True, cwd=ROOT
    )
    assert (ended.returncode, ended.stdout) == (-9, b"")


def test_every_point_in_the_code_is_registered_and_every_registered_one_is_in_the_code():
    sources = "\n".join(path.read_text() for folder in ("daybreak", "jobs") for path in (ROOT / folder).rglob("*.py"))
    called = re.findall(r"crash_point\(f?\"([^\"]+)\"\)", sources)
    patterns = [re.compile(re.sub(r"\\\{.*?\\\}", ".+", re.escape(name))) for name in called]
    assert [point for point in POINTS if not any(pattern.fullmatch(point) for pattern in patterns)] == []
    assert [p.pattern for p in patterns if not any(p.fullmatch(point) for point in POINTS)] == []
