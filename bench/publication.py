"""Server time of publishing a day: 25 lists of 1,000, with three readers at work; and of reading a list.

The time of the swap is the server's own, from SLOWLOG: what every other client waits for.
Run: `python -m bench.publication`.
"""

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from multiprocessing.synchronize import Event
from pathlib import Path

from bench.harness import Result, show
from daybreak import settings
from daybreak.ranking import item_order_key
from daybreak.serving.client import client_of
from daybreak.serving.connection import connect
from daybreak.serving.embedded import EmbeddedServer
from daybreak.serving.lists import Lists, Meta, Publication, ServedList, content_hash
from daybreak.windows import bucket_of_label

DAY = date(2026, 3, 1)
AS_OF = datetime(2026, 3, 2, tzinfo=UTC)
LABELS = ("day", *(f"hour.{hour:02}" for hour in range(24)))
DEPTH = 1000
ROUNDS = 25

WHY_READERS = (
    "The script is the same as without readers (0.84 ms); two readers without a pause keep both cores busy, so "
    "that the server waits for one (0.88 to 1.08 ms in four runs, 2026-12-01)."
)


def day_of(generation: int, run_id: str = "run") -> list[ServedList]:
    """25 lists of 1,000 with ids as long as UUIDs."""
    pairs = [(f"{n:08x}-0000-4000-8000-{generation:012x}", 1_000_000 - n // 2) for n in range(DEPTH)]
    entries = tuple(sorted(pairs, key=lambda pair: item_order_key(*pair), reverse=True))
    total = sum(count for _, count in entries)
    digest = content_hash(entries)
    meta = Meta("exact", 1, AS_OF, AS_OF, run_id, 1, DEPTH, DEPTH, total, DEPTH, 0.0, 1.0, digest, "exact", "")
    return [ServedList(bucket_of_label(DAY, label), entries, meta) for label in LABELS]


def publish(lists: Lists, generation: int, content: int) -> None:
    """Publish one generation of the day."""
    publication = Publication(generation, f"run-{generation}", generation, AS_OF, f"{content}")
    lists.publish_exact(DAY, day_of(content), publication)


def swap_times(lists: Lists) -> list[float]:
    """Milliseconds of each script call since the last reset that built on the day's state, newest last."""
    calls = lists.client.slowlog_get(1000)
    swaps = [call for call in calls if call["command"].startswith(b"EVAL") and b":state" in call["command"]]
    return [call["duration"] / 1000 for call in reversed(swaps)]


def watched(lists: Lists, work: Callable[[], None]) -> list[float]:
    """Milliseconds of the scripts that `work` ran."""
    lists.client.slowlog_reset()
    work()
    return swap_times(lists)


def read_on(url: str, stop: Event) -> None:
    """A reader of whole lists, as fast as it can."""
    lists = Lists(client_of(url), settings.Redis())
    while not stop.is_set():
        lists.read(bucket_of_label(DAY, "day"))


def run() -> list[Result]:
    """Median and worst server times, in milliseconds."""
    home = Path(tempfile.mkdtemp())
    conf = settings.Settings(home=home)
    try:
        return measure(Lists(connect(conf), conf.redis), EmbeddedServer(home).ensure())
    finally:
        EmbeddedServer(home).stop()


def measure(lists: Lists, url: str) -> list[Result]:
    """The measures, on one server."""
    lists.client.config_set("slowlog-log-slower-than", 0)
    lists.client.config_set("slowlog-max-len", 100_000)
    changed: list[float] = []
    equal: list[float] = []
    first: list[float] = []
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    readers = [context.Process(target=read_on, args=(url, stop)) for _ in range(2)]
    publish(lists, 1, 1)
    for generation in range(2, ROUNDS):  # interleaved, readers idle
        changed += watched(lists, lambda g=generation: publish(lists, g, g))
        equal += watched(lists, lambda g=generation: publish(lists, g, g))
    for _ in range(5):
        lists.client.flushall()
        provisional(lists, minutes=1440)
        first += watched(lists, lambda: publish(lists, 1, 1))
    for reader in readers:
        reader.start()
    time.sleep(2)
    busy: list[float] = []
    for generation in range(ROUNDS, 2 * ROUNDS):
        busy += watched(lists, lambda g=generation: publish(lists, g, g))
    stop.set()
    for reader in readers:
        reader.join()
    started = time.perf_counter()
    for _ in range(100):
        lists.read(bucket_of_label(DAY, "day"))
    read = (time.perf_counter() - started) * 10
    return [
        milliseconds("swap of 25 x 1,000, new content, median", statistics.median(changed), 1.0),
        milliseconds("swap of 25 x 1,000, new content, worst", max(changed), None),
        milliseconds("swap of 25 x 1,000, equal content, median", statistics.median(equal), 1.0),
        milliseconds("swap of 25 x 1,000 under two readers, median", statistics.median(busy), 1.0, WHY_READERS),
        milliseconds("first swap: replaces 1,465 provisional lists, median", statistics.median(first), None),
        milliseconds("read of one list of 1,000, at the client", read, None),
    ]


def provisional(lists: Lists, minutes: int) -> None:
    """A provisional day: 25 lists of 1,000 and short minute lists."""
    whole = day_of(0)
    meta = Meta("provisional", 0, AS_OF, None, "w", -1, 1, None, 1, DEPTH, 1.0, 0.99, "", "pairs", "{}")
    for each in whole:
        lists.publish_provisional(each.bucket, each.entries, meta)
    for minute in range(minutes):
        bucket = bucket_of_label(DAY, f"minute.{minute // 60:02}.{minute % 60:02}")
        lists.publish_provisional(bucket, whole[0].entries[:100], meta)


def milliseconds(name: str, value: float, limit: float | None, why: str = "") -> Result:
    """One line of the results."""
    return Result(name, round(value, 3), "ms", target=f"<= {limit:g} ms" if limit else "", why=why)


if __name__ == "__main__":
    show(run())
