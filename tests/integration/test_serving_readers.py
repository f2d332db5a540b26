"""Readers hammer a day while it is published over and over: no read is empty, torn or mixed."""

import multiprocessing
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path

import pytest

from daybreak import settings
from daybreak.serving import keys
from daybreak.serving.client import client_of
from daybreak.serving.connection import connect
from daybreak.serving.lists import Lists, content_hash
from daybreak.windows import bucket_of_label
from tests.served import DAY, LABELS, provisional, publish, serving, whole_day

pytestmark = pytest.mark.slow

GENERATIONS = 20
DEPTH = 200


def hammer(
    url: str, ready: Barrier, stop: Event, reads: "Synchronized[int]", bad: "multiprocessing.SimpleQueue[str]"
) -> None:
    """Read single lists with their hash, and pairs of lists in one transaction, until told to stop."""
    client = client_of(url)
    lists = Lists(client, settings.Redis())
    labels = list(LABELS)
    count = 0
    ready.wait()
    while not stop.is_set():
        label, other = labels[count % 25], labels[(count * 7 + 3) % 25]
        found = lists.read(bucket_of_label(DAY, label))
        if found is None:
            bad.put(f"{label}: no list")
        elif len(found.entries) != DEPTH or content_hash(found.entries) != found.meta.content_hash:
            bad.put(f"{label}: {len(found.entries)} entries do not fit their hash")
        with client.pipeline(transaction=True) as together:
            for each in (label, other):
                together.hget(keys.items_key(DAY, each, "meta"), "generation")
                together.zrevrange(keys.items_key(DAY, each, "top"), 0, 0, withscores=True)
            one, first, two, second = together.execute()
        if (
            one != two
            or not first
            or not second
            or {int(top[0][1]) // 1_000_000 for top in (first, second)} != {int(one)}
        ):
            bad.put(f"{label}, {other}: generations {one} and {two}, counts {first} and {second}")
        count += 1
    with reads.get_lock():
        reads.value += count


def test_serving_publication_under_readers(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    with serving(tmp_path / "h") as lists:
        url = f"unix://{tmp_path / 'h' / 'redis' / 'redis.sock'}"
        if "path" not in lists.client.connection_pool.connection_kwargs:
            given = lists.client.connection_pool.connection_kwargs
            url = f"redis://{given['host']}:{given['port']}/0"
        for each in whole_day(0, DEPTH):
            lists.publish_provisional(each.bucket, each.entries, provisional(each.entries), b"sketch")
        ready, stop, reads, bad = context.Barrier(4), context.Event(), context.Value("q", 0), context.SimpleQueue()
        readers = [context.Process(target=hammer, args=(url, ready, stop, reads, bad)) for _ in range(3)]
        for reader in readers:
            reader.start()
        ready.wait(60)
        for generation in range(1, GENERATIONS + 1):
            publish(lists, *whole_day(generation, DEPTH), generation=generation, version=generation)
            publish(lists, *whole_day(generation, DEPTH), generation=generation, version=generation)
        stop.set()
        found = []
        while any(reader.is_alive() for reader in readers) or not bad.empty():
            if not bad.empty():
                found.append(bad.get())
            for reader in readers:
                reader.join(0.01)
        assert found == []
        assert [reader.exitcode for reader in readers] == [0, 0, 0]
        assert reads.value > 200


def test_a_day_read_whole_is_of_one_publication(tmp_path: Path):
    """`served` reads in several transactions, and starts anew when a publication came between."""
    home = tmp_path / "w"
    with serving(home) as lists:
        minutes = [bucket_of_label(DAY, f"minute.{n // 60:02}.{n % 60:02}") for n in range(200)]
        for bucket in minutes:
            lists.publish_provisional(bucket, [("p", 1)], provisional())
        other = Lists(connect(settings.Settings(home=home)), settings.Redis())
        parts, read = [], lists._read

        def read_and_be_overtaken(buckets):
            parts.append(len(buckets))
            if len(parts) == 3:
                publish(other, *whole_day(1, 2))
            return read(buckets)

        lists._read = read_and_be_overtaken
        assert {each.meta.state for each in lists.served(DAY)} == {"exact"}
        assert len(lists.served(DAY)) == 25
