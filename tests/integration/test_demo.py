"""`daybreak demo` as a user runs it, against a count of its own file in plain Python."""

import json
import os
import re
import subprocess
import sys
from collections import Counter

import psutil
import pytest

from daybreak.cli.setup import flights
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables import registry as tables
from tests.engines import MAKERS, SHORT_LIVED

pytestmark = pytest.mark.slow

DAY = flights.DAY.isoformat()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def shown(home):
    return run_demo(home)


def run_demo(home, engine="sail") -> str:
    """What it shows in a deployment whose lake and Redis are not to be touched; the engine is an overlay's."""
    conf = home / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "base.toml").write_text(f"lake.root = '{home}/precious'\nredis.url = 'redis://127.0.0.1:1/0'")
    name = "spark.driver.extraJavaOptions"
    options = f"spark.conf = {{ '{name}' = '{SHORT_LIVED[name]}' }}"
    (conf / "site.toml").write_text(f"engine = '{engine}'\nspark.driver_memory = '2g'\n{options}")
    shown = run_there(home, sys.executable, "-m", "daybreak.cli", "demo")
    assert not (home / "precious").exists()
    return shown


def run_there(home, *command) -> str:
    environ = {"DAYBREAK_HOME": str(home), "DAYBREAK_ENV": "site", "COLUMNS": "160", "NO_COLOR": "1"}
    done = subprocess.run(
        command,
        env={**os.environ, **environ},
        cwd=home,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def events_of_the_day(home):
    for line in (home / "demo" / "events.jsonl").read_text("utf-8").splitlines():
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if event["event_id"].startswith("broken") or None in (event["item_id"], event["occurred_at"]):
            continue
        if event["occurred_at"].startswith(DAY):
            yield event["event_id"], event["item_id"]


def both_lists(text):
    pattern = r"^ *\d+ +(N\w+) +(\d+) +[✓✗] +(N\w+) +(\d+) *$"
    return re.findall(pattern, text, re.MULTILINE)


def test_the_exact_list_is_what_a_counter_gives(home, shown):
    counts = Counter(item for _, item in set(events_of_the_day(home)))
    expected = sorted(counts.items(), key=lambda pair: (pair[1], pair[0].encode()), reverse=True)[:10]
    assert [(item, int(count)) for _, _, item, count in both_lists(shown)] == expected


def test_the_provisional_estimates_show_an_error_and_never_below_the_truth(home, shown):
    sent = Counter(item for _, item in events_of_the_day(home))
    file = (home / "demo" / "events.jsonl").read_text("utf-8").splitlines()
    assert sum(sent.values()) < len(file)
    late = Counter(json.loads(line)["item_id"] for line in file[-late_count(shown) :])
    overcounts = [int(estimate) - sent[item] + late[item] for item, estimate, _, _ in both_lists(shown)]
    assert min(overcounts) >= 0
    assert max(overcounts) > 0


def late_count(text) -> int:
    return int(re.search(r"(\d+) held back", " ".join(text.split()))[1])


def test_it_says_the_error_and_that_the_sketch_is_forced(shown):
    words = " ".join(shown.split())
    assert "sketch is forced" in words
    assert "recall" in words
    assert "one-sided law holds" in words
    assert "daily_counts" in words


def test_the_commands_that_it_ends_with_are_right_when_copied(home, shown):
    """In the shell that the demo was run from, where its conf and its variables name another lake and Redis."""
    lines = re.findall(r"^    (\S.*)$", shown.partition("Where to look next")[2], re.MULTILINE)
    assert lines[-1].endswith(" down")
    said = run_there(home, "bash", "-ec", "\n".join(lines))
    assert re.search(rf"{DAY} .* exact ", said)
    assert "bad_timestamp" in said
    assert not (home / "precious").exists()


def test_a_second_demo_gives_the_same_lists_and_leaves_no_process(home, shown):
    again = run_demo(home)
    assert both_lists(again) == both_lists(shown) != []
    left = [p.info for p in psutil.process_iter(["cmdline"]) if str(home) in " ".join(p.info["cmdline"] or [])]
    assert left == []


def test_on_apache_spark_it_gives_the_same_lists_tables_and_report(home, shown, tmp_path):
    on_spark = run_demo(tmp_path, engine="spark")
    assert both_lists(on_spark) == both_lists(shown) != []
    assert words_of(on_spark, tmp_path) == words_of(shown, home)
    stores = {
        engine: DeltaRsStore(folder / "demo" / "lake") for engine, folder in (("sail", home), ("spark", tmp_path))
    }
    for table in (*tables.DERIVED, tables.SERVED_LISTS, tables.CORRECTIONS):
        rows = {engine: sorted(map(str, store.read(table).to_pylist())) for engine, store in stores.items()}
        assert rows["spark"] == rows["sail"] != [], table.name
    for engine, maker in MAKERS.items():
        commits = [commit for table in tables.DERIVED for commit in stores[engine].commits_after(table, -1)]
        made = {commit.engine for commit in commits if commit.run_id}
        assert made
        assert all(name.startswith(maker) for name in made), made


def words_of(text, home) -> str:
    """What was shown, without what differs from run to run: homes, run ids, instants."""
    text = text.replace(str(home), "HOME")
    text = re.sub(r"night-\d{4}-\d{2}-\d{2}-[0-9a-f]{8}", "RUN", text)
    return re.sub(r"\d{4}-\d{2}-\d{2}T[0-9:.]+(\+00:00|Z)?", "INSTANT", " ".join(text.split()))
