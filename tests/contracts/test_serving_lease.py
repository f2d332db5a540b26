"""One holder at a time."""

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from daybreak.errors import FenceRefusedError, UnreachableError
from daybreak.serving import keys
from daybreak.serving.embedded import EmbeddedServer
from daybreak.serving.lease import Lease
from daybreak.serving.lists import Lists
from tests.served import serving

pytestmark = pytest.mark.slow

TTL = timedelta(milliseconds=600)
HOLD = """
import os, signal, sys
from datetime import timedelta
from daybreak.serving.embedded import EmbeddedServer
from daybreak.serving.lease import Lease
from daybreak.serving.embedded import client_of
lease = Lease(client_of(sys.argv[1]), "night", "dead-run", timedelta(minutes=10))
lease.acquire()
if sys.argv[2] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lists]:
    with serving(tmp_path_factory.mktemp("l")) as lists:
        yield lists


@pytest.fixture
def client(server: Lists):
    server.client.flushall()
    return server.client


def url_of(client) -> str:
    given = client.connection_pool.connection_kwargs
    return f"unix://{given['path']}" if "path" in given else f"redis://{given['host']}:{given['port']}/0"


def holder(client, how: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLD, url_of(client), how]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)


def test_the_second_is_refused_and_told_who_holds_it(client):
    with Lease(client, "night", "first", TTL):
        with pytest.raises(FenceRefusedError, match="held by run first"):
            Lease(client, "night", "second", TTL).acquire()
        with pytest.raises(FenceRefusedError, match="held by run first"):
            Lease(client, "night", "first", TTL).acquire()
        Lease(client, "another", "second", TTL).acquire()
    with Lease(client, "night", "second", TTL):
        pass
    assert not client.exists(keys.lease_key("night"))


def test_it_is_renewed_while_the_work_lasts(client):
    with Lease(client, "night", "first", TTL) as lease:
        time.sleep(3 * TTL.total_seconds())
        lease.check()
        with pytest.raises(FenceRefusedError):
            Lease(client, "night", "second", TTL).acquire()


def test_it_ends_by_itself_when_nobody_renews(client):
    first = Lease(client, "night", "first", TTL)
    first.acquire()
    time.sleep(1.5 * TTL.total_seconds())
    second = Lease(client, "night", "second", TTL)
    second.acquire()
    assert first.renew() is False
    assert first.release() is False
    assert second.renew() is True


def test_a_lease_that_was_lost_says_so_and_leaves_the_new_holder_alone(client):
    with Lease(client, "night", "first", TTL) as lease:
        client.set(keys.lease_key("night"), "somebody else")
        time.sleep(TTL.total_seconds())
        with pytest.raises(FenceRefusedError, match="lost its lease"):
            lease.check()
    assert client.get(keys.lease_key("night")) == b"somebody else"


def test_an_error_of_the_server_does_not_end_the_renewing(client):
    with Lease(client, "night", "first", TTL) as lease:
        held = client.get(keys.lease_key("night"))
        client.delete(keys.lease_key("night"))
        client.hset(keys.lease_key("night"), "wrong", "type")
        time.sleep(TTL.total_seconds() / 2)
        client.set(keys.lease_key("night"), held, px=TTL)
        time.sleep(2 * TTL.total_seconds())
        lease.check()
        assert client.get(keys.lease_key("night")) == held


def test_a_server_that_goes_away_does_not_hide_how_the_work_ended(tmp_path: Path):
    with serving(tmp_path / "g") as lists, Lease(lists.client, "night", "first", TTL) as lease:
        EmbeddedServer(tmp_path / "g").stop()
        time.sleep(TTL.total_seconds())
        lease.check()
        with pytest.raises(UnreachableError):
            lease.renew()
    assert lease.is_lost


def test_it_is_given_back_when_the_work_fails(client):
    with pytest.raises(ZeroDivisionError), Lease(client, "night", "first", TTL):
        1 / 0  # noqa: B018
    assert not client.exists(keys.lease_key("night"))


def test_a_holder_killed_on_this_machine_is_not_waited_for(client):
    assert holder(client, "die").wait(timeout=60) == -9
    assert client.exists(keys.lease_key("night"))
    with Lease(client, "night", "next", TTL):
        pass


def test_a_holder_that_lives_is_waited_for_however_still(client):
    living = holder(client, "live")
    assert living.stdout is not None
    assert living.stdout.readline() == "held\n"
    try:
        with pytest.raises(FenceRefusedError, match="dead-run"):
            Lease(client, "night", "next", TTL).acquire()
    finally:
        living.communicate("")
