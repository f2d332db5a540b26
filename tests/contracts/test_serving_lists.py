"""What every Redis that lists are served from must do; run on the embedded one."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from daybreak.errors import CheckFailedError, FenceRefusedError, UnreachableError
from daybreak.serving import keys
from daybreak.serving.embedded import EmbeddedServer
from daybreak.serving.lists import Lists, content_hash
from daybreak.windows import bucket_of_label
from tests.served import AS_OF, DAY, LABELS, meta, order, provisional, publish, served, serving, whole_day

pytestmark = pytest.mark.slow

DAY_BUCKET = bucket_of_label(DAY, "day")
ODD_IDS = [
    "Lets\nCrash",
    "caf\u00e9",
    "cafe\u0301",
    "\U0001f9ed",
    "\u05e9\u05dc\u05d5\u05dd",
    " padded ",
    "A",
    "a",
    "nul\0byte",
    "\u20ac" * 170 + "ab",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lists]:
    with serving(tmp_path_factory.mktemp("s")) as lists:
        yield lists


@pytest.fixture
def lists(server: Lists) -> Lists:
    server.client.flushall()
    return server


def all_keys(lists: Lists) -> set[str]:
    return {key.decode() for key in lists.client.keys("*")}


def test_a_list_and_its_meta_come_back_as_they_were_published(lists: Lists):
    entries = order([("a", 3), ("b", 3), ("c", 10)])
    given = provisional(entries, error_bound=1e-5 * 16, accounting='{"read": 3}')
    assert lists.publish_provisional(DAY_BUCKET, entries, given, b"\x00sketch", b"late") is True
    found = lists.read(DAY_BUCKET)
    assert found is not None
    assert found.entries == (("c", 10), ("b", 3), ("a", 3))
    assert found.meta == given
    assert lists.read_sketch(DAY_BUCKET) == (b"\x00sketch", b"late")
    state = lists.day_state(DAY)
    assert state is not None
    assert (state.state, state.generation, state.lake_version) == ("provisional", 0, -1)


def test_what_was_never_published_is_none(lists: Lists):
    assert lists.read(DAY_BUCKET) is None
    assert lists.day_state(DAY) is None
    assert lists.served(DAY) == []
    assert lists.read_sketch(DAY_BUCKET) == (None, None)
    assert lists.client.get(keys.LATEST_EXACT_DAY) is None


def test_ids_are_served_byte_for_byte_in_one_command(lists: Lists):
    assert len(ODD_IDS[-1].encode()) == 512
    publish(lists, served([(item_id, 7) for item_id in ODD_IDS]))
    answer = lists.client.zrevrange("daybreak:{items.2026-03-01}:day:top", 0, -1)
    assert answer == sorted((item_id.encode() for item_id in ODD_IDS), reverse=True)
    found = lists.read(DAY_BUCKET)
    assert found is not None
    assert {item_id for item_id, _ in found.entries} == set(ODD_IDS)


def test_a_provisional_list_replaces_the_one_before_and_its_sketch(lists: Lists):
    lists.publish_provisional(DAY_BUCKET, [("gone", 1)], provisional(), b"sketch", b"late")
    lists.publish_provisional(DAY_BUCKET, [("here", 2)], provisional())
    found = lists.read(DAY_BUCKET)
    assert found is not None
    assert found.entries == (("here", 2),)
    assert lists.read_sketch(DAY_BUCKET) == (None, None)


def test_a_long_list_is_written_whole(lists: Lists):
    entries = order([(f"item-{n}", n + 1) for n in range(25_000)])
    lists.publish_provisional(DAY_BUCKET, entries, provisional(entries))
    found = lists.read(DAY_BUCKET)
    assert found is not None
    assert content_hash(found.entries) == content_hash(entries)


def test_an_exact_day_replaces_every_provisional_list_and_sketch(lists: Lists):
    for label in ("day", "hour.03", "minute.03.04", "minute.23.59"):
        bucket = bucket_of_label(DAY, label)
        lists.publish_provisional(bucket, [("p", 1)], provisional(), b"sketch", b"late")
    other = bucket_of_label(date(2026, 3, 2), "day")
    lists.publish_provisional(other, [("next day", 1)], provisional(), b"sketch")
    assert publish(lists, served([("x", 5)]), served([], "hour.03")) is True
    assert [(each.bucket.label, each.entries) for each in lists.served(DAY)] == [("day", (("x", 5),)), ("hour.03", ())]
    prefix = "daybreak:{items.2026-03-01}:"
    assert {key for key in all_keys(lists) if key.startswith(prefix)} == {
        prefix + rest for rest in ("state", "labels", "day:top", "day:meta", "hour.03:meta")
    }
    untouched = lists.read(other)
    assert untouched is not None
    assert untouched.entries == (("next day", 1),)
    assert lists.read_sketch(other) == (b"sketch", None)


def test_an_empty_list_is_a_meta_without_a_sorted_set(lists: Lists):
    publish(lists, served([]))
    found = lists.read(DAY_BUCKET)
    assert found is not None
    assert found.entries == ()
    assert found.meta.items_total == 0
    assert not lists.client.exists(keys.items_key(DAY, "day", "top"))


def test_a_provisional_write_to_an_exact_day_is_refused_even_when_the_lists_have_expired(lists: Lists):
    publish(lists, served([("x", 5)]))
    before = lists.read(DAY_BUCKET)
    assert lists.publish_provisional(DAY_BUCKET, [("p", 1)], provisional(), b"sketch") is False
    assert lists.publish_provisional(bucket_of_label(DAY, "minute.01.01"), [("p", 1)], provisional()) is False
    assert lists.read(DAY_BUCKET) == before
    lists.client.delete(keys.items_key(DAY, "day", "top"), keys.items_key(DAY, "day", "meta"), keys.labels_key(DAY))
    assert lists.publish_provisional(DAY_BUCKET, [("p", 1)], provisional()) is False
    assert lists.read(DAY_BUCKET) is None


@pytest.mark.parametrize(("generation", "version"), [(3, 6), (1, 7), (1, 6)])
def test_older_events_or_a_lower_generation_are_refused(lists: Lists, generation: int, version: int):
    publish(lists, served([("new", 5)]), generation=2, version=7)
    before = lists.served(DAY), lists.day_state(DAY), all_keys(lists)
    with pytest.raises(FenceRefusedError, match="lake version 7, generation 2"):
        publish(lists, served([("old", 5)]), generation=generation, version=version)
    assert (lists.served(DAY), lists.day_state(DAY), all_keys(lists)) == before


def test_older_events_are_refused_with_equal_content_too(lists: Lists):
    publish(lists, served([("same", 5)]), generation=2, version=7)
    with pytest.raises(FenceRefusedError):
        publish(lists, served([("same", 5)]), generation=2, version=6)


def test_equal_content_keeps_its_generation_and_says_who_confirmed_it(lists: Lists):
    publish(lists, served([("x", 5)]), generation=4, version=7)
    later = AS_OF + timedelta(days=1)
    changed = publish(lists, served([("x", 5)]), generation=5, version=9, run_id="again", as_of=later)
    assert changed is False
    found, state = lists.read(DAY_BUCKET), lists.day_state(DAY)
    assert found is not None
    assert state is not None
    for kept in (found.meta, state):
        assert (kept.generation, kept.run_id, kept.as_of, kept.lake_version) == (4, "again", later, 9)
    assert found.entries == (("x", 5),)


def test_publishing_again_heals_a_list_that_was_lost(lists: Lists):
    publish(lists, served([("x", 5)]))
    lists.client.delete(keys.items_key(DAY, "day", "top"))
    publish(lists, served([("x", 5)]))
    found = lists.read(DAY_BUCKET)
    assert found is not None
    assert found.entries == (("x", 5),)


def test_exactly_one_earlier_generation_is_kept(lists: Lists):
    previous = keys.previous_prefix(DAY)
    lists.publish_provisional(DAY_BUCKET, [("p", 1)], provisional())
    publish(lists, served([("one", 1)]), served([("h", 1)], "hour.01"), generation=1)
    assert not [key for key in all_keys(lists) if key.startswith(previous)]
    publish(lists, served([("two", 2)]), generation=2)
    publish(lists, served([("two", 2)]), generation=2, version=2)
    assert lists.client.zrevrange(previous + "day:top", 0, -1) == [b"one"]
    assert lists.client.zrevrange(previous + "hour.01:top", 0, -1) == [b"h"]
    publish(lists, served([("three", 3)]), generation=3, version=2)
    assert {key for key in all_keys(lists) if key.startswith(previous)} == {
        previous + rest for rest in ("labels", "day:top", "day:meta")
    }
    assert lists.client.zrevrange(previous + "day:top", 0, -1) == [b"two"]


def test_counts_that_a_score_cannot_hold_leave_out_their_list_only(lists: Lists):
    fits, too_big = 2**53 - 1, 2**53
    with pytest.raises(CheckFailedError, match=r"list hour\.01.*'big' counts 9007199254740992"):
        publish(lists, served([("x", fits)]), served([("big", too_big)], "hour.01"), served([("y", 1)], "hour.02"))
    assert [(each.bucket.label, each.entries) for each in lists.served(DAY)] == [
        ("day", (("x", 9007199254740991),)),
        ("hour.02", (("y", 1),)),
    ]
    assert lists.client.get(keys.LATEST_EXACT_DAY) == b"2026-03-01"
    with pytest.raises(CheckFailedError, match="2\\^53"):
        lists.publish_provisional(bucket_of_label(date(2026, 3, 2), "day"), [("big", too_big)], provisional())


def test_three_large_weights_add_up_in_the_list(lists: Lists):
    publish(lists, served([("a", 3 * 2_147_483_647)]))
    assert lists.client.zrevrange(keys.items_key(DAY, "day", "top"), 0, -1, withscores=True) == [(b"a", 6_442_450_941)]


@pytest.mark.parametrize("entries", [(("a", 1), ("b", 2)), (("a", 2), ("a", 2)), (("a", 1), ("b", 1))])
def test_entries_out_of_order_or_twice_are_found_on_reading_back(lists: Lists, entries: tuple[tuple[str, int], ...]):
    publish(lists, served([("old", 1)]))
    before = lists.served(DAY)
    bad = replace(served([]), entries=entries, meta=meta(entries))
    with pytest.raises(CheckFailedError, match="reads back differently"):
        publish(lists, bad, generation=2)
    assert lists.served(DAY) == before


def test_staging_that_has_expired_changes_nothing(lists: Lists, monkeypatch: pytest.MonkeyPatch):
    publish(lists, served([("old", 1)]))
    before = lists.served(DAY), lists.day_state(DAY)
    monkeypatch.setattr(
        "daybreak.serving.lists.crash_point",
        lambda name: lists.client.delete(keys.staged_prefix(DAY, "run-2-1") + "day:meta"),
    )
    with pytest.raises(CheckFailedError, match="went away"):
        publish(lists, served([("new", 1)]), generation=2)
    assert (lists.served(DAY), lists.day_state(DAY)) == before


def test_the_pointer_moves_forwards_only(lists: Lists):
    march, february = date(2026, 3, 1), date(2026, 2, 28)
    publish(lists, served([("x", 1)], day=march), day=march)
    publish(lists, served([("x", 1)], day=february), day=february)
    assert lists.client.get(keys.LATEST_EXACT_DAY) == b"2026-03-01"


def test_lists_expire_by_policy_and_the_fence_does_not(lists: Lists):
    lists.publish_provisional(DAY_BUCKET, [("p", 1)], provisional(), b"sketch", b"late")
    lists.publish_provisional(bucket_of_label(DAY, "minute.00.01"), [("p", 1)], provisional())

    def days_left(label: str, part: keys.Part) -> float:
        return lists.client.pttl(keys.items_key(DAY, label, part)) / 86_400_000

    assert {round(days_left("day", part), 2) for part in keys.PARTS} == {3.0}
    assert {round(days_left("minute.00.01", part), 2) for part in ("top", "meta")} == {1.0}
    assert lists.client.pttl(keys.state_key(DAY)) > 0
    publish(lists, served([("x", 1)]))
    publish(lists, served([("y", 1)]), generation=2)
    assert {round(days_left("day", part), 2) for part in ("top", "meta")} == {400.0}
    assert round(lists.client.pttl(keys.previous_prefix(DAY) + "day:top") / 86_400_000, 2) == 2.0
    assert lists.client.pttl(keys.state_key(DAY)) == -1
    without_ttl = {key for key in all_keys(lists) if lists.client.pttl(key) == -1}
    assert without_ttl == {keys.state_key(DAY), keys.LATEST_EXACT_DAY}


def test_served_gives_every_list_of_a_day_in_order(lists: Lists):
    publish(lists, *reversed(whole_day(1, depth=3)))
    assert [each.bucket.label for each in lists.served(DAY)] == list(LABELS)


def test_no_command_walks_the_whole_server(lists: Lists):
    lists.client.config_resetstat()
    lists.publish_provisional(DAY_BUCKET, [("p", 1)], provisional())
    publish(lists, *whole_day(1, depth=3))
    lists.served(DAY)
    used = set(lists.client.info("commandstats"))
    assert not used & {"cmdstat_keys", "cmdstat_scan", "cmdstat_flushall", "cmdstat_del"}


def test_a_server_that_goes_away_is_an_unreachable_error(tmp_path: Path):
    with serving(tmp_path / "g") as lists:
        publish(lists, served([("x", 1)]))
        EmbeddedServer(tmp_path / "g").stop()
        with pytest.raises(UnreachableError, match="does not answer"):
            lists.read(DAY_BUCKET)


def test_the_content_hash_tells_lists_apart():
    one = [("ab", 1), ("c", 2)]
    assert content_hash(one) == content_hash(list(one))
    for other in ([("a", 1), ("bc", 2)], [("c", 2), ("ab", 1)], [("ab", 12), ("c", 2)], [("ab", 1)], []):
        assert content_hash(other) != content_hash(one)


def test_as_of_keeps_its_microseconds_and_zone(lists: Lists):
    instant = datetime(2026, 3, 2, 1, 2, 3, 456789, tzinfo=UTC)
    lists.publish_provisional(DAY_BUCKET, [], provisional(as_of=instant, complete_through=instant))
    found = lists.read(DAY_BUCKET)
    assert found is not None
    assert (found.meta.as_of, found.meta.complete_through) == (instant, instant)
