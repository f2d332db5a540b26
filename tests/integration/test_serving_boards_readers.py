"""Readers hammer a board while it is published over and over, and killed: no read is empty, torn or mixed."""

import multiprocessing
import subprocess
import sys
from decimal import Decimal
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import pytest

from daybreak import settings
from daybreak.serving import keys
from daybreak.serving.boards import BoardLists, ServedBoard, content_hash
from daybreak.serving.client import address, client_of
from tests.served_boards import BOARD, PERIOD, generation_of, publish_board, serving_boards

pytestmark = pytest.mark.slow

GENERATIONS = 25
DEPTH, POPULATION = 200, 300
MILLION = 1_000_000
ROOT = Path(__file__).parents[2]
PUBLISH = """
import sys
from pathlib import Path
from tests.served_boards import generation_of, publish_board
from daybreak import settings
from daybreak.serving.boards import BoardLists
from daybreak.serving.standings import histogram_key
from daybreak.serving.connection import connect
conf = settings.Settings(home=Path(sys.argv[1]))
publish_board(BoardLists(connect(conf), conf.redis), generation_of(2, 300), depth=200, lake_version=2, run_id="run-2")
"""


def fault_of(found: ServedBoard | None, first: int, last: int) -> str | None:
    """What is wrong with a slice of places: its length, its positions, or points of another generation."""
    if found is None:
        return "nothing"
    if [place.position for place in found.places] != list(range(first, last + 1)):
        return f"positions {[place.position for place in found.places]} and not {first} to {last}"
    generations = {int(place.points) // MILLION for place in found.places} | {found.meta.generation}
    return None if len(generations) == 1 else f"mixed generations {generations}"


def read_once(boards: BoardLists, n: int) -> str | None:
    """One read of each kind; what is wrong with the first bad one."""
    whole = boards.top(BOARD, PERIOD, DEPTH)
    if fault := fault_of(whole, 1, DEPTH):
        return f"top: {fault}"
    if whole is None or content_hash(whole.places) != whole.meta.content_hash:
        return "top: the places do not fit their hash"
    player = whole.places[n % DEPTH].player_id
    near = boards.around(BOARD, PERIOD, player, 4)
    if near is not None:
        at = next((place.position for place in near.places if place.player_id == player), 0)
        if at == 0 or (fault := fault_of(near, max(1, at - 4), min(DEPTH, at + 4))):
            return f"around {player} at {at}: {fault}"
    page = boards.page(BOARD, PERIOD, "20:nobody", 10)
    if page is None or (fault := fault_of(page[0], 20, 29)):
        return f"page: {fault}"
    answer = boards.percentile(BOARD, PERIOD, Decimal(0))
    if answer != (0.0, POPULATION + 1, POPULATION):
        return f"percentile: {answer}"
    with boards.client.pipeline(transaction=True) as together:
        together.zrange(keys.board_key(BOARD, PERIOD, "top"), 0, -1)
        together.hkeys(keys.board_key(BOARD, PERIOD, "players"))
        together.zrange(keys.board_key(BOARD, PERIOD, "histogram"), 0, 0)
        together.hget(keys.board_key(BOARD, PERIOD, "meta"), "generation")
        top, details, lowest, generation = together.execute()
    if (
        len(top) != DEPTH
        or set(top) != set(details)
        or not lowest
        or f"{int(generation)}00000".encode() not in lowest[0]
    ):
        return f"plain: {len(top)} places, {len(details)} details, lowest points {lowest}, generation {generation}"
    return None


def hammer(
    url: str, ready: Barrier, stop: Event, reads: "Synchronized[int]", bad: "multiprocessing.SimpleQueue[str]"
) -> None:
    """Read until told to stop."""
    boards = BoardLists(client_of(url), settings.Redis())
    count = 0
    ready.wait()
    while not stop.is_set():
        if fault := read_once(boards, count):
            bad.put(fault)
        count += 1
    with reads.get_lock():
        reads.value += count


def test_boards_under_readers(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    with serving_boards(tmp_path / "h") as boards:
        url = address(boards.client)
        publish_board(boards, generation_of(1, POPULATION), depth=DEPTH)
        ready, stop, reads, bad = context.Barrier(3), context.Event(), context.Value("q", 0), context.SimpleQueue()
        readers = [context.Process(target=hammer, args=(url, ready, stop, reads, bad)) for _ in range(2)]
        for reader in readers:
            reader.start()
        ready.wait(60)
        for n in range(2, GENERATIONS + 2):
            for again in range(2):
                made = publish_board(
                    boards, generation_of(n, POPULATION), depth=DEPTH, lake_version=n, run_id=f"run-{n}-{again}"
                )
                assert made == n
        stop.set()
        found = []
        while any(reader.is_alive() for reader in readers) or not bad.empty():
            if not bad.empty():
                found.append(bad.get())
            for reader in readers:
                reader.join(0.01)
        assert found == []
        assert [reader.exitcode for reader in readers] == [0, 0]
        assert reads.value > 50


@pytest.mark.parametrize(("point", "seen"), [("board.staged", 1), ("board.swapped", 2)])
def test_a_killed_publication_leaves_one_whole_board(tmp_path: Path, point: str, seen: int):
    home = tmp_path / "c"
    with serving_boards(home) as boards:
        publish_board(boards, generation_of(1, POPULATION), depth=DEPTH)
        environment = {"DAYBREAK_CRASH_AT": point, "PYTHONPATH": str(ROOT)}
        killed = subprocess.run([sys.executable, "-c", PUBLISH, str(home)], env=environment, capture_output=True)
        assert killed.returncode == -9, killed.stderr.decode()
        for expected in (seen, 2):
            found = boards.top(BOARD, PERIOD, DEPTH)
            assert found is not None
            assert (found.meta.generation, read_once(boards, 0)) == (expected, None)
            made = publish_board(
                boards, generation_of(2, POPULATION), depth=DEPTH, lake_version=2, run_id=f"again-{expected}"
            )
            assert made == 2
        left = boards.client.keys(keys.board_prefix(BOARD, PERIOD) + "next.*")
        assert all(boards.client.pttl(key) > 0 for key in left)
