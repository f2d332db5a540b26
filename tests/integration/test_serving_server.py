"""The embedded server: shared, outliving its starter, on disk, and never mistaken for another process."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daybreak import settings
from daybreak.errors import UnreachableError, UsageError
from daybreak.serving.client import client_of
from daybreak.serving.connection import connect
from daybreak.serving.embedded import SOCKET_PATH_BYTES, EmbeddedServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
START = """
import sys
from pathlib import Path
from daybreak.serving.embedded import EmbeddedServer, client_of
url = EmbeddedServer(Path(sys.argv[1])).ensure()
print(url, client_of(url).info("server")["process_id"], flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path):
    yield tmp_path
    for home in tmp_path.iterdir():
        if home.is_dir():
            EmbeddedServer(home).stop()


def starter(home: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", START, str(home)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True)


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


def test_several_processes_that_start_at_once_share_one_server(folder: Path):
    found = {process.communicate(timeout=60)[0] for process in [starter(folder / "s") for _ in range(5)]}
    assert len(found) == 1
    assert EmbeddedServer(folder / "s").status().is_running


def test_it_outlives_its_starter_and_keeps_what_it_holds(folder: Path):
    home = folder / "k"
    url, pid = starter(home).communicate(timeout=60)[0].split()
    assert is_alive(int(pid))
    client_of(url).set("kept", "yes")
    server = EmbeddedServer(home)
    assert server.stop() is True
    assert not is_alive(int(pid))
    assert server.status().is_running is False
    assert server.stop() is False
    assert client_of(server.ensure()).get("kept") == b"yes"


def test_it_comes_back_after_a_kill(folder: Path):
    server = EmbeddedServer(folder / "r")
    client = client_of(server.ensure())
    client.set("kept", "yes")
    time.sleep(1.5)  # appendfsync everysec
    pid = server.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert client_of(server.ensure()).get("kept") == b"yes"
    assert server.status().pid != pid


def test_a_launcher_that_died_before_it_recorded_the_process_leaves_a_server_that_is_found(folder: Path):
    server = EmbeddedServer(folder / "d")
    url = server.ensure()
    pid = server.status().pid
    server.record.write_text(json.dumps({"url": url}))
    assert server.ensure() == url
    assert server.status().pid == pid


def test_another_process_is_never_signalled(folder: Path):
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    other = EmbeddedServer(folder / "o")
    other_url = other.ensure()
    try:
        for url in ("unix:///nowhere/redis.sock", "redis://127.0.0.1:1/0", other_url):
            server = EmbeddedServer(folder / "b")
            server.folder.mkdir(parents=True, exist_ok=True)
            server.record.write_text(json.dumps({"url": url, "pid": bystander.pid}))
            assert server.status().is_running is False
            assert server.stop() is False
        assert bystander.poll() is None
        assert other.status().is_running
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("name", ["short", "x" * SOCKET_PATH_BYTES])
def test_a_path_too_long_for_a_socket_is_served_on_loopback(folder: Path, name: str):
    home = folder / name
    url = EmbeddedServer(home).ensure()
    fits = len(os.fsencode(home / "redis" / "redis.sock")) <= SOCKET_PATH_BYTES
    assert url.startswith("unix://" if fits else "redis://127.0.0.1:")
    assert client_of(url).ping()
    assert EmbeddedServer(home).ensure() == url


def test_a_server_that_cannot_start_says_why(folder: Path):
    home = folder / "e"
    (home / "redis" / "appendonlydir").mkdir(parents=True)
    (home / "redis" / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense\n")
    with pytest.raises(UnreachableError, match=r"does not start: .*manifest"):
        EmbeddedServer(home).ensure()


def test_a_home_that_cannot_be_written_says_so(folder: Path):
    (folder / "file").write_text("")
    with pytest.raises(UnreachableError, match="cannot use"):
        EmbeddedServer(folder / "file").ensure()
    (folder / "redis" / "lock").mkdir(parents=True)
    (folder / "redis" / "server.json").write_text("{}")
    with pytest.raises(UnreachableError, match=r"cannot use .*DAYBREAK_HOME"):
        EmbeddedServer(folder).stop()


def test_a_url_that_nobody_answers_at_is_named_without_its_password():
    conf = settings.Settings(redis=settings.Redis(url="redis://me:secret@127.0.0.1:1/0"))
    with pytest.raises(UnreachableError, match=r"redis://me:\*\*\*@127\.0\.0\.1:1/0") as refused:
        connect(conf)
    assert "secret" not in str(refused.value)
    assert refused.value.exit_code == 6


def test_a_url_of_something_else_is_a_usage_error():
    with pytest.raises(UsageError, match="is no Redis url"):
        connect(settings.Settings(redis=settings.Redis(url="http://127.0.0.1:6379")))


def test_a_named_server_is_used_instead_of_the_embedded_one(folder: Path):
    url = EmbeddedServer(folder / "n").ensure()
    conf = settings.Settings(home=folder / "unused", redis=settings.Redis(url=url))
    assert connect(conf).ping()
    assert not (folder / "unused").exists()
