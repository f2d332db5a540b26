"""A publication killed after each of its side effects: readers see one whole day, the next one completes."""

import subprocess
import sys
from pathlib import Path

import pytest

from daybreak.serving import keys
from daybreak.serving.lists import Lists, content_hash
from tests.served import DAY, publish, serving, whole_day

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PUBLISH = """
import sys
from pathlib import Path
from daybreak import settings
from daybreak.serving.lists import Lists
from daybreak.serving.connection import connect
from tests.served import publish, whole_day
conf = settings.Settings(home=Path(sys.argv[1]))
publish(Lists(connect(conf), conf.redis), *whole_day(2, 50), generation=2, version=2)
"""


def generation_served(lists: Lists) -> set[int]:
    """The generations that a reader sees over all lists of the day; checks that each list is whole."""
    found = lists.served(DAY)
    assert len(found) == 25
    for each in found:
        assert len(each.entries) == 50
        assert content_hash(each.entries) == each.meta.content_hash
    return {each.meta.generation for each in found}


@pytest.mark.parametrize(("point", "seen"), [("publish.staged", 1), ("publish.swapped", 2), ("publish.pointer", 2)])
def test_a_killed_publication_leaves_one_whole_day(tmp_path: Path, point: str, seen: int):
    home = tmp_path / "c"
    with serving(home) as lists:
        publish(lists, *whole_day(1, 50))
        lists.client.delete(keys.LATEST_EXACT_DAY)
        environment = {"DAYBREAK_CRASH_AT": point, "PYTHONPATH": str(ROOT)}
        killed = subprocess.run([sys.executable, "-c", PUBLISH, str(home)], env=environment, capture_output=True)
        assert killed.returncode == -9, killed.stderr.decode()
        assert generation_served(lists) == {seen}
        assert lists.client.get(keys.LATEST_EXACT_DAY) == (b"2026-03-01" if point == "publish.pointer" else None)
        publish(lists, *whole_day(2, 50), generation=2, version=2)
        assert generation_served(lists) == {2}
        assert lists.client.get(keys.LATEST_EXACT_DAY) == b"2026-03-01"
        left = [key for key in lists.client.keys(keys.day_prefix(DAY) + "next.*") if lists.client.pttl(key) < 0]
        assert left == []
