"""The demo's data, and the two lists side by side."""

import csv
import io
import json
import zipfile
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from daybreak.cli.setup import demo
from daybreak.cli.setup import flights as demo_data
from daybreak.errors import LakeFailedError, UsageError
from daybreak.settings import Settings
from daybreak.settings import load as load_settings

DAY = demo_data.DAY.isoformat()


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The flights of 6 to 13 July: those of the whole year take seconds to read."""
    with zipfile.ZipFile(demo_data.flights_archive()) as whole:
        names, *rows = whole.read("flights.csv").decode().splitlines(keepends=True)
    assert names.startswith("year,month,day,")
    days = tuple(f"2013,7,{day}," for day in range(6, 14))
    file = tmp_path_factory.mktemp("flights") / "flights.csv.zip"
    with zipfile.ZipFile(file, "w") as some:
        some.writestr("flights.csv", names + "".join(row for row in rows if row.startswith(days)))
    return file


@pytest.fixture(scope="module")
def replay(archive, tmp_path_factory):
    file = tmp_path_factory.mktemp("demo") / "events.jsonl"
    return demo_data.write_replay(file, archive), file.read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def flights(archive):
    with zipfile.ZipFile(archive) as some:
        text = some.read("flights.csv").decode()
    return [
        row
        for row in csv.DictReader(io.StringIO(text))
        if (row["year"], row["month"]) == ("2013", "7") and row["day"] in ("9", "10")
    ]


def parsed(lines):
    for line in lines:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if not event["event_id"].startswith("broken"):
            yield event


def test_the_parts_add_up_to_the_lines(replay):
    counts, lines = replay
    assert counts.lines == len(lines) == counts.flights + counts.repeated + counts.broken
    assert min(counts.cancelled, counts.repeated, counts.late) > 0


def test_every_flight_of_both_days_is_there_and_copies_are_identical(replay, flights):
    counts, lines = replay
    seen = Counter(json.dumps(event) for event in parsed(lines))
    assert len(seen) == len(flights) == counts.flights
    assert sum(n - 1 for n in seen.values()) == counts.repeated


def test_departures_are_the_schedule_plus_the_delay_in_utc(replay, flights):
    """New York is four hours behind UTC in July; the schedule's own local time is the oracle."""
    _, lines = replay
    departed = {event["event_id"]: event["occurred_at"] for event in parsed(lines)}
    for row in flights:
        key = f"2013-07-{int(row['day']):02}-{row['carrier']}-{row['flight']}-{row['origin']}"
        if row["dep_delay"] == "NA":
            assert departed[key] is None
            continue
        clock = row["sched_dep_time"].zfill(4)
        local = datetime(2013, 7, int(row["day"]), int(clock[:2]), int(clock[2:]), tzinfo=UTC)
        expected = local + timedelta(hours=4, minutes=int(row["dep_delay"]))
        assert datetime.fromisoformat(departed[key]) == expected


def test_unknown_aircraft_are_null_and_not_an_item_called_na(replay, flights):
    _, lines = replay
    items = Counter(event["item_id"] for event in parsed(lines))
    assert items["NA"] == 0
    assert items[None] >= sum(row["tailnum"] == "NA" for row in flights) > 0


def test_late_events_are_of_the_day_and_come_after_its_end(replay):
    counts, lines = replay
    tail = [json.loads(line) for line in lines[-counts.late :]]
    assert {event["occurred_at"][:10] for event in tail} == {DAY}
    before = [e["occurred_at"] for e in parsed(lines[: -counts.late]) if e["occurred_at"]]
    assert max(before) > f"{demo_data.DAY + timedelta(days=1)}T00:30"


def test_the_replay_is_the_same_each_time(replay, archive, tmp_path):
    demo_data.write_replay(tmp_path / "again.jsonl", archive)
    assert (tmp_path / "again.jsonl").read_text("utf-8").splitlines() == replay[1]


def test_side_by_side_marks_what_the_exact_list_does_not_hold():
    provisional = [{"position": "1", "item_id": "A", "count": "5"}, {"position": "2", "item_id": "X", "count": "4"}]
    exact = [{"position": "1", "item_id": "B", "count": "3"}, {"position": "2", "item_id": "A", "count": "2"}]
    console = Console(file=io.StringIO(), width=80)
    console.print(demo.side_by_side(provisional, exact))
    rows = [line.split() for line in console.file.getvalue().splitlines()[1:]]
    assert rows == [["1", "A", "5", "✓", "B", "3"], ["2", "X", "4", "✗", "A", "2"]]


def test_a_foreign_folder_is_not_removed(tmp_path):
    mine = tmp_path / "demo" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("keep")
    with pytest.raises(UsageError, match="was not made by a demo"):
        demo.fresh_home(Settings(home=tmp_path), Console(file=io.StringIO()))
    assert mine.read_text() == "keep"


def test_a_home_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeFailedError, match=r"cannot be written .*DAYBREAK_HOME"):
        demo.fresh_home(Settings(home=tmp_path / "file"), Console(file=io.StringIO()))


def test_of_the_users_settings_only_the_engines_reach_the_demo(tmp_path, monkeypatch):
    for name, value in (("LAKE__ROOT", "/precious"), ("REDIS__URL", "redis://production"), ("ENV", "production")):
        monkeypatch.setenv(f"DAYBREAK_{name}", value)
    theirs = load_settings(
        {
            "DAYBREAK_ENGINE": "spark",
            "DAYBREAK_SPARK__MASTER": "spark://one:7077",
            "DAYBREAK_SPARK__CONF": '{"spark.a": "é"}',
            "DAYBREAK_LAKE__ROOT": "/precious",
            "DAYBREAK_REDIS__URL": "redis://production",
        },
        tmp_path,
    )
    found = load_settings(demo.demo_environment(theirs, tmp_path / "demo"), tmp_path / "demo" / "conf")
    assert (found.engine, found.spark) == ("spark", theirs.spark)
    assert found.lake_root == tmp_path / "demo" / "lake"
    assert found.staging_root == tmp_path / "demo" / "staging"
    assert found.redis.url is None
    assert found.home == tmp_path / "demo"
