"""What the command says while it works: bars on a terminal, lines elsewhere, nothing on standard output."""

import io
import re
import sys
from pathlib import Path

import pytest

from daybreak.cli import options, output
from daybreak.errors import UsageError
from daybreak.windows import Window


class Screen(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        return True


def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal on standard error from now on; no fixture, for pytest lays its own capture over those."""
    found = Screen()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return found


def shown_on(found: Screen) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found.getvalue())


def test_on_a_terminal_steps_fill_a_bar_and_what_is_said_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal_of = screen(monkeypatch)
    with output.steps("2026-03-01", 2) as step:
        step("derive")
        output.say("finished run dead")
        step("commit")
        print("rows")
    shown = shown_on(terminal_of)
    assert "2026-03-01" in shown
    assert "━" in shown
    assert "commit" in shown
    assert "finished run dead\n" in shown
    assert "rows" not in shown
    assert capsys.readouterr().out == "rows\n"


def test_on_a_terminal_rows_are_counted_while_files_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    terminal_of = screen(monkeypatch)
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        file.write_text("x" * 10)
    with output.reading(files) as shown:
        shown.rows(1000)
        shown.rows(234)
        shown.file_done(files[0])
        assert shown.shown is not None
        assert shown.shown.tasks[0].percentage == 50
    assert "1,234 rows" in shown_on(terminal_of)


def test_elsewhere_a_step_is_a_line_and_reading_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with output.steps("2026-03-01", 2) as step:
        step("derive")
    with output.reading([Path("absent")]) as shown:
        shown.rows(7)
        shown.file_done(Path("absent"))
    with output.working("looking"):
        pass
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "2026-03-01: derive\n")
    assert shown.read == 7


def test_mistyped_names_come_with_what_was_probably_meant() -> None:
    assert options.parse_window("hour") is Window.HOUR
    with pytest.raises(UsageError, match=r"no window 'dya' \(did you mean 'day'\?\); the windows are minute, hour"):
        options.parse_window("dya")
    with pytest.raises(UsageError, match=r"--format 'jsn' is not known \(did you mean 'json'\?\)"):
        output.show(["a"], [], "jsn")


def test_the_commands_that_are_shown_name_the_program_that_the_shell_would_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(sys.executable).with_name("daybreak")
    monkeypatch.setenv("PATH", str(own.parent))
    assert output.command_line("daybreak", "down") == "daybreak down"
    other = tmp_path / "daybreak"
    other.write_text("#!/bin/sh")
    other.chmod(0o755)
    for path in (tmp_path, tmp_path / "none"):
        monkeypatch.setenv("PATH", str(path))
        assert output.command_line("daybreak", "down") == f"{own} down"
