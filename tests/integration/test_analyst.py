"""What analysts get: each documented query against an independent answer, macros, looking back, exports, the prompt."""

import csv
import io
import json
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daybreak import clock
from daybreak.errors import UsageError
from daybreak.serving.embedded import EmbeddedServer
from lakehouse.reading import analyst
from lakehouse.tables import registry as tables
from tests.engines import Engines
from tests.integration.nights import D1, D2, D3, event, some_days
from tests.integration.test_board_night import BoardWorld, board_world, some_scores

pytestmark = pytest.mark.slow
QUERIES = Path(__file__).parents[2] / "docs" / "queries"
DAYS = (D1, D2, D3)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, engines: Engines) -> Iterator[BoardWorld]:
    """Three corrected days with a provisional past, boards, and the moment before the last of them was corrected."""
    made = board_world(tmp_path_factory.mktemp("analyst") / "home", engines["sail"])
    made.ingest("events.jsonl", some_days(), through=D3)
    made.scores("scores.jsonl", some_scores(), through=D3)
    made.stream("events.jsonl")
    made.night(D1, D2)
    made.before = clock.now()
    made.night(D3)
    yield made
    EmbeddedServer(made.home).stop()


def first_copies() -> list[tuple[date, int, str]]:
    """(day, hour, item) of each event that counts, by hand: one copy of an id a day, the look-back of an hour."""
    seen: dict[str, datetime] = {}
    found = []
    for each in sorted(some_days(), key=lambda each: (str(each["occurred_at"]), str(each["event_id"]))):
        at = datetime.fromisoformat(str(each["occurred_at"]))
        before = seen.get(str(each["event_id"]))
        midnight = datetime(at.year, at.month, at.day, tzinfo=UTC)
        seen[str(each["event_id"])] = at
        if before and (before.date() == at.date() or midnight - before <= timedelta(hours=1)):
            continue
        found.append((at.date(), at.hour, str(each["item_id"])))
    return found


def counts(day: date) -> Counter[str]:
    """Count per item of a day."""
    return Counter(item for each, _, item in first_copies() if each == day)


def best(found: Counter[str]) -> list[tuple[str, int]]:
    """Items by count, ties by the larger id."""
    return sorted(sorted(found.items(), key=lambda each: each[0].encode(), reverse=True), key=lambda each: -each[1])


def leaders(world: BoardWorld, periods: dict[str, date]) -> list[tuple[str, date, str, Decimal, int]]:
    """The oracle's first of each board in these periods."""
    found = []
    for board in world.boards:
        for period, as_of in periods.items():
            if "day" in board.periods and (rows := world.expected(board.name, period, as_of)):
                found.append((board.name, as_of, rows[0].player_id, rows[0].points, rows[0].population))
    return sorted(found)


def answers(world: BoardWorld) -> dict[str, list[tuple[Any, ...]]]:
    """What the queries must give, from the events themselves."""
    days = {day: counts(day) for day in DAYS}
    hours = Counter(hour for _, hour, _ in first_copies())
    today = best(days[D3])
    competition = {count: 1 + sum(other > count for _, other in today) for _, count in today}
    rose = [(item, count, count - days[D2].get(item, 0)) for item, count in days[D3].items()]
    copies = []
    for day in DAYS:
        rows = sum(str(each["occurred_at"]).startswith(str(day)) for each in some_days())
        copies.append((day, rows, days[day].total(), rows - days[day].total()))
    corrections = [row for row in world.store.read(tables.CORRECTIONS).to_pylist() if row["window"] == "day"]
    shares = []
    for day, found in days.items():
        ten = sum(count for _, count in best(found)[:10])
        shares.append((day, ten, found.total(), round(100.0 * ten / found.total(), 2)))
    by_hour = Counter(hour for day, hour, item in first_copies() if day == D3 and item == today[0][0])
    last = {b.name: world.expected(b.name, "all_time", D3) for b in world.boards if "all_time" in b.periods}
    close = [
        (name, rows[0].player_id, rows[1].player_id, abs(rows[0].points - rows[1].points))
        for name, rows in sorted(last.items())
        if len(rows) > 1 and abs(rows[0].points - rows[1].points) < 10
    ]
    return {
        "01-top-items": [(n, competition[c], item, c) for n, (item, c) in enumerate(today[:10], 1)],
        "02-risers": sorted(rose, key=lambda each: (-each[2], each[0].encode()))[:10],
        "03-busiest-hours": [
            (hour, played, len({day for day, each, _ in first_copies() if each == hour}))
            for hour, played in sorted(hours.items(), key=lambda each: (-each[1], each[0]))[:5]
        ],
        "04-share-of-the-top": shares,
        "05-new-items": [(item, c) for item, c in today if item not in days[D1] and item not in days[D2]][:10],
        "06-copies": copies,
        "07-error-of-the-stream": [
            (row["day"], row["k"], row["recall"], row["max_overcount"], row["error_bound"])
            for row in sorted(corrections, key=lambda row: row["day"])
        ],
        "08-item-by-hour": [(hour, count, count) for hour, count in sorted(by_hour.items())],
        "09-leaders-by-day": leaders(world, {str(day): day for day in DAYS}),
        "10-close-finishes": close,
    }


@pytest.mark.parametrize("name", sorted(file.stem for file in QUERIES.glob("*.sql")))
def test_a_documented_query_gives_the_independent_answer(world: BoardWorld, name: str):
    text = (QUERIES / f"{name}.sql").read_text()
    assert text.startswith("-- "), "the question comes first"
    assert f"{name}.sql" in (QUERIES / "README.md").read_text()
    _, rows = analyst.query(analyst.connect(world.store), text)
    due = answers(world)[name]
    assert list(rows) == due
    assert due or name == "05-new-items"


def test_there_are_ten_queries():
    assert len(list(QUERIES.glob("*.sql"))) == 10


def test_the_macros_answer_the_usual_questions(world: BoardWorld):
    duck = analyst.connect(world.store)

    def asked(sql: str) -> list[tuple[Any, ...]]:
        return list(analyst.query(duck, sql)[1])

    top = best(counts(D2))
    assert asked(f"select item_id, count from top_of_day('{D2}', k := 3)") == top[:3]
    item = top[0][0]
    assert asked(f"select day, count from item_history('{item}')") == [
        (day, counts(day)[item]) for day in DAYS if counts(day)[item]
    ]
    assert {row[0] for row in asked("select day from error_over_time()")} == set(DAYS)
    assert len(asked("from error_over_time(of_window := 'hour')")) > len(DAYS)
    of_player = "from player_history('points', 'player-3') where period = 'all_time'"
    history = asked(f"select as_of, position, points {of_player}")
    assert history == [
        (day, row.position, row.points)
        for day in (D2, D3)
        for row in world.expected("points", "all_time", day)
        if row.player_id == "player-3"
    ]
    first = world.expected("points", "all_time", D3)[:2]
    assert asked("select player_id, points, as_of from board_of('points', 'all_time', k := 2)") == [
        (row.player_id, row.points, D3) for row in first
    ]


def test_looking_back_shows_everything_as_it_was(world: BoardWorld):
    sql = "select count(distinct day) from daily_counts"
    then = world.before
    for moment, days, corrected in ((then, 2, 2), (clock.now(), 3, 3), (datetime(2020, 1, 1, tzinfo=UTC), 0, 0)):
        duck = analyst.connect(world.store, as_of=moment)
        assert list(analyst.query(duck, sql)[1]) == [(days,)]
        seen = list(analyst.query(duck, "select count(distinct day) from corrections")[1])
        assert seen == [(corrected,)]
    out, _ = world.command("sql", sql, "--as-of", then.isoformat(), "--format", "csv")
    assert out.splitlines()[1] == "2"
    for wrong in ({"as_of": datetime(2026, 3, 1)}, {"as_of": then, "version": 0}):  # noqa: DTZ001 - it is refused
        with pytest.raises(UsageError, match="as_of"):
            analyst.connect(world.store, **wrong)


def test_large_sums_stay_exact_in_frames_and_files(world: BoardWorld, tmp_path: Path):
    duck = analyst.connect(world.store)
    largest = 2**63 - 1
    sql = f"select sum(x) as s, sum(1) as n, null::bigint as none from (values ({largest}::bigint), ({largest})) t(x);"
    found = analyst.frame(duck, sql)
    assert (int(found["s"][0]), found["n"][0]) == (2 * largest, 2)
    assert str(found["n"].dtype) == "Int64"
    assert analyst.export(duck, sql, tmp_path / "sums.parquet") == 1
    rows = pq.read_table(tmp_path / "sums.parquet")
    assert rows.schema.field("s").type == pa.decimal128(38, 0)
    assert rows.to_pylist() == [{"s": 2 * largest, "n": 2, "none": None}]
    world.command("sql", sql, "--out", str(tmp_path / "sums.csv"))
    assert list(csv.reader(io.StringIO((tmp_path / "sums.csv").read_text()))) == [
        ["s", "n", "none"],
        [str(2 * largest), "2", ""],
    ]
    _, err = world.command("sql", "select 1", "--out", str(tmp_path / "sums.xls"), code=2)
    assert "neither .csv nor .parquet" in err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["sums.csv", "sums.parquet"]


def test_a_query_comes_from_a_file_or_the_command_line(world: BoardWorld, tmp_path: Path):
    out, _ = world.command("sql", "--file", str(QUERIES / "01-top-items.sql"), "--format", "json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["item_id"], row["count"]) for row in rows] == best(counts(D3))[:10]
    assert "and not both" in world.command("sql", code=2)[1]
    assert "cannot be read as a query" in world.command("sql", "--file", str(tmp_path / "none.sql"), code=2)[1]


def test_the_prompt_reads_statements_from_a_pipe(world: BoardWorld):
    typed = (
        "select item_id, count\nfrom top_of_day('2026-03-02', k := 1);\n"
        "select no_such_column from daily_counts;\n.tables\n.columns daily_counts\n.macros\nselect 7 as seven\n"
    )
    command = [sys.executable, "-m", "daybreak.cli", "shell", "--format", "csv"]
    environ = {**world.environ, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, input=typed, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, "one statement was refused"
    assert "no_such_column" in done.stderr
    item, count = best(counts(D2))[0]
    assert f"item_id,count\n{item},{count}\n" in done.stdout
    for part in ("daily_counts,", "is_complete,BOOLEAN", "top_of_day", "seven\n7\n"):
        assert part in done.stdout
    fine = subprocess.run(command, input="select 1;", env=environ, capture_output=True, text=True, timeout=60)
    assert (fine.returncode, fine.stdout) == (0, "1\n1\n")


def test_queries_work_while_a_night_commits(world: BoardWorld):
    """Each connection sees one manifest: the day as it was, or as it is; never both or none."""
    sql = f"select sum(count) from daily_counts where day = '{D2}'"
    before = counts(D2).total()
    world.ingest("late.jsonl", [event(f"late-{n}", "item-1", f"{D2}T12:00") for n in range(5)])
    night = threading.Thread(target=world.night, args=(D2,))
    night.start()
    seen: dict[int, int] = defaultdict(int)
    while night.is_alive():
        ((total,),) = analyst.query(analyst.connect(world.store), sql)[1]
        seen[int(total)] += 1
    night.join()
    ((after,),) = analyst.query(analyst.connect(world.store), sql)[1]
    assert int(after) == before + 5
    assert set(seen) <= {before, before + 5}
    assert seen[before] > 1
