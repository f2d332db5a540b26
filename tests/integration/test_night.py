"""Whole nights on a real lake and a real Redis, against an oracle in plain Python.

Both engines count; what the command says of it is the same words for both, so Sail, which starts at once, says them.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from daybreak.errors import CheckFailedError, FenceRefusedError, InputIncompleteError
from daybreak.serving.embedded import EmbeddedServer
from daybreak.windows import bucket_of_label
from jobs.night import new_run_id, run_step
from jobs.run.staleness import stale_days
from lakehouse.reading import analyst
from lakehouse.tables import registry as tables
from tests.engines import MAKERS, NAMES, Engines
from tests.integration.nights import D1, D2, D3, World, event, some_days

pytestmark = pytest.mark.slow


@pytest.fixture(params=NAMES)
def world(request: pytest.FixtureRequest, tmp_path: Path, engines: Engines) -> Iterator[World]:
    """A world on each engine; whatever was committed in it, that engine committed."""
    home = tmp_path / "home"
    home.mkdir()
    made = World(home, engines[request.param])
    yield made
    assert made.makers() <= {MAKERS[request.param]}
    EmbeddedServer(home).stop()


def exact(events: Iterable[dict[str, object]], day: date) -> Counter[str]:
    """Counts of a day: one per event id, none for an id seen in the hour before it."""
    start = datetime.fromisoformat(f"{day}T00:00:00+00:00")
    rows = sorted(
        (datetime.fromisoformat(str(e["occurred_at"])), str(e["event_id"]), str(e["item_id"])) for e in events
    )
    before = {i for at, i, _ in rows if start - timedelta(minutes=60) <= at < start}
    first: dict[str, str] = {}
    for at, event_id, item in rows:
        if start <= at < start + timedelta(days=1) and event_id not in before:
            first.setdefault(event_id, item)
    return Counter(first.values())


def in_order(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: (pair[1], pair[0].encode()), reverse=True))


def table_rows(world: World, table: tables.Table) -> list[dict[str, object]]:
    rows = world.store.read(table).to_pylist()
    return sorted(rows, key=lambda row: str([row[name] for name in table.grain]))


def test_what_is_served_after_the_night_is_the_oracle(world: World):
    world.ingest("events.jsonl", some_days(), through=D3)
    done = world.night(D2)
    assert done.distinct + done.duplicate == done.rows == 400 + 3
    assert done.duplicate == 2
    served = world.served(D2)
    assert served["day"] == in_order(exact(some_days(), D2))
    assert len(served) == 25
    found = analyst.query(
        analyst.connect(world.store), "select item_id, count from daily_counts order by count desc, item_id desc"
    )[1]
    assert tuple(found) == served["day"]


def test_a_range_equals_its_days_one_by_one(world: World, tmp_path):
    world.ingest("events.jsonl", some_days(), through=D3)
    world.night(D1, D3)
    other = world.beside(tmp_path / "other")
    other.ingest("events.jsonl", some_days(), through=D3)
    try:
        for day in (D3, D1, D2):
            other.night(day)
        for table in tables.DERIVED:
            assert table_rows(world, table) == table_rows(other, table)
        for day in (D1, D2, D3):
            assert world.served(day) == other.served(day)
    finally:
        other.command("down")


@pytest.mark.parametrize(("world", "parts"), [("sail", 1), ("sail", 8), ("spark", 8)], indirect=["world"])
def test_a_second_night_changes_nothing(world: World, parts: int):
    for n in range(parts):  # many parts are compacted by the first night: a newer version of the same rows
        world.ingest(f"part-{n}.jsonl", some_days()[n::parts], through=D3)
    world.file("events.jsonl", some_days())
    world.stream("events.jsonl")
    world.night(D2)
    kept = (*tables.DERIVED, tables.CORRECTIONS, tables.PUBLICATIONS, tables.SERVED_LISTS, tables.SERVED_SKETCHES)
    before = [table_rows(world, table) for table in kept]
    corrections_version = world.store.version(tables.CORRECTIONS)
    served, state = world.served(D2), world.lists.day_state(D2)
    assert before[3], "there is evidence, so there must be corrections"
    world.night(D2)
    assert [table_rows(world, table) for table in kept] == before
    assert world.store.version(tables.CORRECTIONS) == corrections_version
    assert world.served(D2) == served
    assert world.lists.day_state(D2).generation == state.generation == 1


def test_correcting_a_day_leaves_the_others_as_they_were(world: World):
    world.ingest("events.jsonl", some_days(), through=D3)
    world.night(D1, D3)
    rows = {t.name: [r for r in table_rows(world, t) if r["day"] != D2] for t in tables.DERIVED}
    served = {day: world.served(day) for day in (D1, D3)}
    states = {day: world.lists.day_state(day) for day in (D1, D3)}
    world.ingest("late.jsonl", [event("late-1", "item-4", f"{D2}T12:00")])
    world.night(D2)
    assert world.lists.day_state(D2).generation == 2
    assert {t.name: [r for r in table_rows(world, t) if r["day"] != D2] for t in tables.DERIVED} == rows
    assert {day: world.served(day) for day in (D1, D3)} == served
    assert {day: world.lists.day_state(day) for day in (D1, D3)} == states


def test_a_day_without_events_publishes_empty_lists(world: World):
    world.ingest("events.jsonl", some_days(), through=date(2026, 3, 7))
    if world.engine.name == "sail":
        _, err = world.command("nightly", "--day", "2026-03-07")
        assert "warning: no event" in err
    else:
        assert world.night(date(2026, 3, 7)).rows == 0
    served = world.lists.read(bucket_of_label(date(2026, 3, 7), "day"))
    assert served.entries == ()
    assert served.meta.state == "exact"


def test_an_incomplete_day_is_refused_and_when_allowed_leaves_redis_alone(world: World):
    world.ingest("events.jsonl", some_days(), through=D1)
    with pytest.raises(InputIncompleteError, match="2026-03-02 is not complete"):
        world.night(D2)
    assert world.store.version(tables.DAILY_COUNTS) == -1
    world.night(D2, allow_incomplete=True)
    assert {row["is_complete"] for row in table_rows(world, tables.DAILY_COUNTS)} == {False}
    assert world.lists.day_state(D2) is None
    assert world.served(D2) == {}


def test_a_late_row_makes_its_day_stale_and_the_next_one_within_the_lookback(world: World):
    world.ingest("events.jsonl", some_days(), through=D3)
    world.night(D1, D3)
    assert stale_days(world.context.lake) == set()
    world.ingest("noon.jsonl", [event("noon", "item-1", f"{D1}T12:00")])
    assert stale_days(world.context.lake) == {D1}
    world.ingest("evening.jsonl", [event(f"{D3}-0", "item-1", f"{D2}T23:30")])
    assert stale_days(world.context.lake) == {D1, D2, D3}
    if world.engine.name == "sail":
        world.command("nightly", "--stale")
    else:
        world.night(D1, D3)
    assert stale_days(world.context.lake) == set()
    events = [*some_days(), event(f"{D3}-0", "item-1", f"{D2}T23:30")]
    assert world.served(D3)["day"] == in_order(exact(events, D3))


def test_optimize_makes_no_day_stale(world: World):
    for n in range(6):
        world.ingest(f"part-{n}.jsonl", some_days()[n::6], through=D3)
    world.night(D1, D3)
    version = world.store.version(tables.ITEM_EVENTS)
    assert len(world.store.files(tables.ITEM_EVENTS, version, D2, D2)) < 6
    assert stale_days(world.context.lake) == set()


def test_copies_on_both_sides_of_midnight_count_once_in_either_order(world: World, tmp_path):
    pair = [event("x", "a", f"{D1}T23:59"), event("x", "a", f"{D2}T00:01"), event("y", "b", f"{D2}T00:01")]
    for n, order in enumerate((pair, pair[::-1])):
        each = world.beside(tmp_path / str(n))
        try:
            for i, one in enumerate(order):
                each.ingest(f"{i}.jsonl", [one], through=D2)
            each.night(D1, D2)
            assert each.served(D1)["day"] == (("a", 1),)
            assert each.served(D2)["day"] == (("b", 1),)
        finally:
            each.command("down")


def test_three_large_weights_and_difficult_ids_come_back_as_they_went_in(world: World):
    ids = ["Lets\nCrash", "café", "cafe\u0301", "🚀", "שלום", "é" * 256, 'a,b"c']
    events = [event(f"e{n}", ids[n % len(ids)], f"{D2}T10:00") for n in range(14)]
    events += [event(f"w{n}", "heavy", f"{D2}T10:00", weight=2_147_483_647) for n in range(3)]
    events += [event("long", "é" * 256 + "x", f"{D2}T10:00")]
    path = world.file("events.jsonl", events)
    world.command("stream", str(path), "--until-idle")
    provisional = world.lists.read(bucket_of_label(D2, "day"))
    assert dict(provisional.entries) == {"heavy": 6_442_450_941} | dict.fromkeys(ids, 2)
    world.ingest("events.jsonl", events, through=D2)
    world.night(D2)
    served = world.served(D2)["day"]
    assert served == in_order(Counter({"heavy": 6_442_450_941} | dict.fromkeys(ids, 2)))
    counts = {row["item_id"]: row["count"] for row in table_rows(world, tables.DAILY_COUNTS)}
    assert counts == dict(served)
    refused = table_rows(world, tables.REFUSALS)
    assert [row["code"] for row in refused] == ["too_long"]


def test_a_night_on_older_events_that_finishes_last_is_refused(world: World):
    world.ingest("events.jsonl", some_days(), through=D3)
    old = new_run_id(D2, D2)
    for step in ("pin", "derive", "check"):
        run_step(world.context, step, old, (D2, D2), False)
    world.ingest("late.jsonl", [event("late", "item-1", f"{D2}T12:00")])
    world.night(D2)
    rows = [table_rows(world, table) for table in tables.DERIVED]
    served = world.served(D2)
    with pytest.raises(FenceRefusedError):
        run_step(world.context, "commit", old, None, False)
    assert [table_rows(world, table) for table in tables.DERIVED] == rows
    assert world.served(D2) == served
    if world.engine.name == "sail":
        _, err = world.command("run", "commit", "--run-id", old, code=5)
        assert len(err.strip().splitlines()) == 1


def test_of_two_nights_at_once_one_is_refused_and_the_other_completes(world: World):
    world.ingest("events.jsonl", some_days(), through=D3)
    assert world.lists.day_state(D2) is None
    processes = [world.start("nightly", "--day", str(D2)) for _ in range(2)]
    results = [process.communicate(timeout=120) for process in processes]
    codes = sorted(process.returncode for process in processes)
    assert codes == [0, 5], results
    assert world.served(D2)["day"] == in_order(exact(some_days(), D2))


def test_steps_run_alone_and_again_equal_one_night(world: World):
    world.ingest("events.jsonl", some_days(), through=D3)
    steps = ["complete", "pin", "derive", "derive", "check", "commit", "commit", "capture", "publish", "publish"]
    for step in [*steps, "report", "report", "optimize"]:
        run_step(world.context, step, "alone", (D2, D2), False)
    assert world.served(D2)["day"] == in_order(exact(some_days(), D2))
    assert world.store.read(tables.RUNS).num_rows == 1
    assert world.lists.day_state(D2).generation == 1


@pytest.mark.parametrize("world", ["sail"], indirect=True)
def test_a_day_ten_times_smaller_than_the_one_before_stops_the_night(world: World):
    careful = world.beside(night={"breaker_min_rows": 100})
    careful.ingest("events.jsonl", [*some_days()[:400], *some_days()[400:430]], through=D3)
    with pytest.raises(CheckFailedError, match="2026-03-02 has 30 rows, the day before 400"):
        careful.night(D2)
    assert world.store.version(tables.DAILY_COUNTS) == -1
    world.night(D2)


@pytest.mark.parametrize("world", ["sail"], indirect=True)
def test_staging_of_finished_runs_is_removed_after_its_time(world: World):
    hasty = world.beside(lake={"staging_keep": "0s"})
    hasty.ingest("events.jsonl", some_days(), through=D3)
    first, second = hasty.night(D1), hasty.night(D2)
    left = [folder.name for folder in world.settings.staging_root.iterdir()]
    assert left == [second.run_id]
    assert first.run_id not in left


@pytest.mark.parametrize("world", ["sail"], indirect=True)
def test_doctor_finds_everything_here_and_names_what_is_not(world: World):
    out, _ = world.command("doctor", "--format", "csv")
    assert f"engine {world.settings.engine},True" in out
    out, _ = world.command("doctor", "--format", "csv", code=1, DAYBREAK_REDIS__URL="redis://127.0.0.1:1/0")
    assert "redis server,False" in out
    assert "127.0.0.1:1" in out


def test_a_wrong_staging_is_caught_by_the_recount_and_nothing_is_committed(world: World):
    import pyarrow.parquet as pq

    world.ingest("events.jsonl", some_days(), through=D3)
    for step in ("pin", "derive"):
        run_step(world.context, step, "forged", (D2, D2), False)
    folder = world.settings.staging_root / "forged" / tables.HOURLY_COUNTS.name
    file = next(folder.glob("*.parquet"))
    rows = pq.read_table(file)
    place = rows.schema.get_field_index("item_id")
    swapped = pa.array(["item-forged", *rows["item_id"].to_pylist()[1:]])
    pq.write_table(rows.set_column(place, rows.schema.field("item_id"), swapped), file)
    for checksum in folder.glob(".*.crc"):  # Spark's own; without it only the recount can tell
        checksum.unlink()
    with pytest.raises(CheckFailedError, match="not committed"):
        run_step(world.context, "check", "forged", None, False)
    assert world.store.version(tables.DAILY_COUNTS) == -1
    assert world.lists.day_state(D2) is None


def test_readers_see_the_old_day_or_the_new_one_while_nights_run(world: World):
    world.ingest("events.jsonl", some_days(), through=D3)
    world.night(D2)
    old = world.served(D2)["day"]
    late = [event(f"late-{n}", "item-1", f"{D2}T12:00") for n in range(50)]
    world.ingest("late.jsonl", late)
    new = in_order(exact([*some_days(), *late], D2))
    seen, done = set(), threading.Event()

    def read() -> None:
        lists = world.lists
        while not done.is_set():
            seen.add(lists.read(bucket_of_label(D2, "day")).entries)

    reader = threading.Thread(target=read)
    reader.start()
    world.night(D2)
    done.set()
    reader.join()
    assert seen <= {old, new}
    assert world.served(D2)["day"] == new != old
