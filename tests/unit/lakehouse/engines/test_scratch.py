"""Folders that engines spill into, and the refusal when a place cannot be written."""

import subprocess
import sys
from pathlib import Path

import pytest

from daybreak.errors import LakeFailedError, UsageError
from lakehouse.engines import jars
from lakehouse.engines.connect import ConnectEngine
from lakehouse.engines.java import shim
from lakehouse.engines.sail import SailEngine
from lakehouse.engines.scratch import LOG_BYTES, Scratch, rotated
from lakehouse.tables import registry as tables


def test_the_folder_of_a_dead_process_is_removed_and_that_of_a_running_one_stays(tmp_path: Path) -> None:
    code = "import os, sys; from pathlib import Path; from lakehouse.engines.scratch import Scratch; "
    dies = code + "print(Scratch(Path(sys.argv[1])).open(), flush=True); os._exit(1)"
    died = subprocess.run([sys.executable, "-c", dies, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=False)
    left = Path(died.stdout.strip())
    assert left.is_dir()
    mine, other = Scratch(tmp_path), Scratch(tmp_path)  # the same process id, as in two containers
    folder = mine.open()
    assert mine.open() == folder != other.open()
    assert not left.exists()
    assert folder.is_dir()
    mine.close()
    mine.close()
    assert not folder.exists()
    assert other.open().is_dir()
    other.close()


def test_a_large_log_makes_room_and_says_where_the_new_one_begins(tmp_path: Path) -> None:
    log = tmp_path / "home" / "spark.log"
    assert rotated(log) == 0
    log.write_bytes(b"x" * 10)
    assert rotated(log) == 10
    log.write_bytes(b"x" * (LOG_BYTES + 1))
    assert rotated(log) == 0
    assert not log.exists()
    assert (tmp_path / "home" / "spark.log.1").stat().st_size == LOG_BYTES + 1


def test_a_place_that_cannot_be_written_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    inside = tmp_path / "file" / "home"
    for use in (lambda: rotated(inside / "spark.log"), lambda: Scratch(inside).open(), lambda: shim(tmp_path, inside)):
        with pytest.raises(LakeFailedError, match=rf"{inside}.* cannot be written .*DAYBREAK_HOME"):
            use()
    with pytest.raises(LakeFailedError, match=rf"{inside.parent}.* cannot be written .*DAYBREAK_LAKE__STAGING"):
        SailEngine(tmp_path, 0).stage(None, tables.RUNS, inside / "run" / "runs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(inside))
    with pytest.raises(LakeFailedError, match=rf"{inside}.* cannot be written .*XDG_CACHE_HOME"):
        jars.fetch(tmp_path, {}, tmp_path / "log")


def test_a_token_of_the_connect_url_is_never_printed() -> None:
    url = "sc://me@127.0.0.1:1/;token=hidden"
    with pytest.raises(LakeFailedError, match=r"sc://127\.0\.0\.1:1 ") as refused:
        ConnectEngine(url).__enter__()
    assert "hidden" not in str(refused.value)
    for wrong in ("http://me:hidden@spark:1/", "spark:1/;token=hidden"):
        with pytest.raises(UsageError, match="spark:1/") as refused:
            ConnectEngine(wrong)
        assert "hidden" not in str(refused.value)
