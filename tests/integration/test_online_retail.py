"""The real shop: 541,909 events over a year, against the expected answers that come with them.

The data lies outside the repository; `conftest.py` leaves this module out where it is not there, and says so.
"""

import csv
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.nights import World

SHARED = Path(__file__).parents[3] / "shared" / "data"
RETAIL = SHARED / "online-retail"
READ = ("--map", "ts=occurred_at", "--default-timezone", "UTC")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("shop") / "home"
    home.mkdir()
    world = World(home)
    world.command("ingest", str(RETAIL / "events.parquet"), *READ, "--complete-through", "2011-12-09")
    world.command("nightly", "--from", "2010-12-01", "--to", "2011-12-09")
    yield world
    world.command("down")


def check(mode: str, expected: str, served: str, folder: Path, *more: str) -> None:
    file = folder / "served.csv"
    file.write_text(served)
    words = [sys.executable, str(SHARED / "check.py"), mode, str(RETAIL / expected), str(file), *more]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("window", "at", "expected"),
    [
        ("day", "2011-12-05", "expected_top20_2011-12-05.csv"),
        ("hour", "2011-12-05T17:00", "expected_top20_hour_2011-12-05T17.csv"),
        ("minute", "2011-12-05T17:24", "expected_top20_minute_2011-12-05T1724.csv"),
    ],
)
def test_exact_lists_are_the_expected_ones(shop: World, window: str, at: str, expected: str):
    out, err = shop.command("top", "--window", window, "--at", at, "-k", "20", "--format", "csv")
    assert out.splitlines()[0] == "position,rank,item_id,count"
    assert "state=exact" in err
    want = [(r["item_id"], int(r["count"]), r["rank"]) for r in csv.DictReader((RETAIL / expected).open())]
    have = [(r["item_id"], int(r["count"]), r["rank"]) for r in csv.DictReader(io.StringIO(out))]
    assert [row[1:] for row in have] == [row[1:] for row in want]
    last = want[-1][1]
    # any member of the tie that crosses the last place is right
    assert {row for row in have if row[1] > last} == {row for row in want if row[1] > last}


def test_the_busiest_day_passes_the_data_sets_own_check(shop: World, tmp_path: Path):
    out, _ = shop.command("top", "--at", "2011-12-05", "-k", "20", "--format", "csv")
    check("topk", "expected_daily_2011-12-05.csv", out, tmp_path)


def test_every_item_of_the_busiest_day_is_in_sql(shop: World, tmp_path: Path):
    query = "select item_id, count from daily_counts where day = '2011-12-05' order by count desc, item_id desc"
    out, _ = shop.command("sql", query, "--format", "csv")
    check("topk", "expected_daily_2011-12-05.csv", out, tmp_path, "--k", "1774")


def test_events_and_items_of_every_day_are_the_expected_ones(shop: World):
    query = """select day, sum(event_count)::bigint as events, count(*) as distinct_items
               from daily_counts group by day order by day"""
    out, _ = shop.command("sql", query, "--format", "csv")
    expected = list(csv.DictReader((RETAIL / "expected_days.csv").open()))
    found = list(csv.DictReader(io.StringIO(out)))
    assert [(r["day"], r["events"], r["distinct_items"]) for r in found] == [
        (r["date"], r["events"], r["distinct_items"]) for r in expected if r["events"] != "0"
    ]


def test_a_saturday_is_an_explicitly_empty_list(shop: World):
    out, err = shop.command("top", "--at", "2011-12-03", "--format", "csv")
    assert out == "position,rank,item_id,count\n"
    assert "state=exact" in err


@pytest.mark.parametrize(("relative_error", "recall"), [("0.01", 0.30), ("0.001", 1.00)])
def test_a_forced_sketch_is_as_wrong_as_its_size_says(tmp_path: Path, relative_error: str, recall: float):
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    home = tmp_path / "home"
    home.mkdir()
    world = World(home)
    rows = pq.read_table(RETAIL / "events.parquet")
    day = rows.filter(pc.equal(pc.strftime(rows["ts"], "%Y-%m-%d"), "2011-12-05"))
    pq.write_table(day, home / "day.parquet")
    try:
        file = str(home / "day.parquet")
        trial = ("--relative-error", relative_error, "--force-cells")
        world.command("stream", file, *READ, "--until-idle", *trial)
        out, err = world.command("top", "--at", "2011-12-05", "--format", "csv")
        assert "state=provisional" in err
        truth = {
            r["item_id"]: int(r["count"]) for r in csv.DictReader((RETAIL / "expected_daily_2011-12-05.csv").open())
        }
        listed = [(r["item_id"], int(r["count"])) for r in csv.DictReader(io.StringIO(out))]
        floor = sorted(truth.values(), reverse=True)[19]
        found = sum(truth.get(item, 0) >= floor for item, _ in listed) / 20
        assert abs(found - recall) <= 0.1 + 1e-9
        out, _ = world.command("top", "--at", "2011-12-05", "-k", "1000", "--format", "csv")
        overcounts = [int(r["count"]) - truth.get(r["item_id"], 0) for r in csv.DictReader(io.StringIO(out))]
        assert min(overcounts) >= 0, "an estimate below the truth"
        assert max(overcounts) > 0, "a forced sketch of this size must collide"
        bound = float(relative_error) * sum(truth.values())
        assert sum(over <= bound for over in overcounts) / len(overcounts) >= 0.99
    finally:
        world.command("down")
