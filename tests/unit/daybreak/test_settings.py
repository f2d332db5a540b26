"""Settings: layers, variables, and what is said of those that do not fit."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from daybreak.errors import UsageError
from daybreak.settings import Settings, load


def from_files(folder: Path, base: str = "", overlay: str = "", **variables: str) -> Settings:
    """What a process finds that has these files and variables."""
    (folder / "base.toml").write_text(base)
    (folder / "site.toml").write_text(overlay)
    return load({"DAYBREAK_ENV": "site", **variables}, folder)


def test_each_layer_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    found = from_files(
        tmp_path,
        "[stream.minute]\ngrace = '7m'\n[night]\nreport_k = 5",
        "[stream.minute]\nrelative_error = 0.5\n[night]\nreport_k = 6",
        DAYBREAK_NIGHT__REPORT_K="8",
    )
    assert found.stream.minute.grace == timedelta(minutes=7)
    assert found.stream.minute.relative_error == 0.5
    assert found.stream.hour == Settings().stream.hour
    assert found.night.report_k == 8


@pytest.mark.parametrize("window", ["minute", "hour", "day"])
def test_one_half_of_a_window_can_be_set_by_itself(tmp_path: Path, window: str) -> None:
    found = from_files(tmp_path, **{f"DAYBREAK_STREAM__{window.upper()}__GRACE": "3h"})
    assert getattr(found.stream, window).grace == timedelta(hours=3)
    assert getattr(found.stream, window).relative_error == getattr(Settings().stream, window).relative_error


def test_sparks_own_settings_come_as_one_json_object_in_their_own_letters(tmp_path: Path) -> None:
    wanted = {"spark.executor.memoryOverhead": "1g"}
    found = from_files(tmp_path, "[spark.conf]\n'spark.a' = '1'", DAYBREAK_SPARK__CONF=json.dumps(wanted))
    assert found.spark.conf == wanted | {"spark.a": "1"}


def test_folders_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = from_files(
        tmp_path, DAYBREAK_HOME="h", DAYBREAK_LAKE__ROOT="l", DAYBREAK_LAKE__STAGING="s", DAYBREAK_BOARDS_FOLDER="b"
    )
    monkeypatch.chdir("/")
    assert found.lake.root == found.lake_root
    assert found.lake.staging == found.staging_root
    places = (found.home, found.lake_root, found.staging_root, found.boards_folder)
    assert places == (tmp_path / "h", tmp_path / "l", tmp_path / "s", tmp_path / "b")
    monkeypatch.chdir(tmp_path)
    assert from_files(tmp_path).lake_root == tmp_path / ".daybreak" / "lake"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"DAYBREAK_LAKE__ROOT": ""}, "DAYBREAK_LAKE__ROOT is empty; unset it"),
        ({"DAYBREAK_SPARK": "x", "DAYBREAK_SPARK__MASTER": "y"}, "DAYBREAK_SPARK__MASTER cannot be set beside"),
        ({"DAYBREAK_SPARK": "x"}, "spark = 'x' does not fit"),
        ({"DAYBREAK_SPARK__CONF": "spark.a=1"}, "DAYBREAK_SPARK__CONF = 'spark.a=1' is not a JSON object"),
        (
            {"DAYBREAK_SPARK__CONF__A": "1", "DAYBREAK_SPARK__CONF": "{}"},
            "DAYBREAK_SPARK__CONF__A is not a setting",
        ),
        ({"DAYBREAK_LAKE__RETENTION": "9999999999d"}, "lake.retention = '9999999999d' does not fit"),
        ({"DAYBREAK_LAKE__RETENTION": "soon"}, "lake.retention = 'soon' does not fit"),
        ({"DAYBREAK_NIGHT__DEDUP_LOOKBACK": "25h"}, "night.dedup_lookback = '25h' does not fit"),
        (
            {"DAYBREAK_NIGHT__REPROT_K": "5"},
            "DAYBREAK_NIGHT__REPROT_K: night.reprot_k = '5' is not a setting (did you mean 'report_k'?)",
        ),
        ({"DAYBREAK_NIHGT__LEASE": "5s"}, "(did you mean 'night'?)"),
        ({"DAYBREAK_SPARK__CONF": '{"spark.a": 1}'}, "DAYBREAK_SPARK__CONF: spark.conf.spark.a = 1 does not fit"),
        ({"DAYBREAK_ENV": "stie"}, "stie.toml, which is not there (did you mean 'site'?)"),
    ],
)
def test_a_variable_that_does_not_fit_is_named(tmp_path: Path, variables: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        from_files(tmp_path, **variables)
    assert said in str(refused.value)


def test_the_file_with_the_wrong_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"site\.toml: night\.k = 5 is not a setting"):
        from_files(tmp_path, "[night]\nreport_k = 5", "[night]\nk = 5")
    with pytest.raises(UsageError, match=r"base\.toml: night\.k = 5 is not a setting"):
        from_files(tmp_path, "[night]\nk = 5", "[night]\nk = 6")
    for key in ("lake.root", "lake.staging", "home", "boards_folder"):
        with pytest.raises(UsageError, match=rf"base\.toml: {key} = '' does not fit: it is empty"):
            from_files(tmp_path, f"{key} = ''")
    with pytest.raises(UsageError, match=r"base\.toml is not valid TOML"):
        from_files(tmp_path, "[night")
    with pytest.raises(UsageError, match=r"other\.toml, which is not there"):
        from_files(tmp_path, DAYBREAK_ENV="other")
    with pytest.raises(UsageError, match=r"site\.toml: lake\.rot = 'x' is not a setting \(did you mean 'root'\?\)"):
        from_files(tmp_path, "", "[lake]\nrot = 'x'")
