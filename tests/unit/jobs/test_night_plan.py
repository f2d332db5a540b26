"""What a night would do: from the lake alone, and nothing of the lake is changed by the asking."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from daybreak import clock
from daybreak.cli import night as cli_night
from daybreak.cli.main import app
from daybreak.errors import UsageError
from daybreak.events import Kind
from daybreak.rules import boards
from daybreak.rules.boards import Boards
from daybreak.settings import Settings
from jobs import night, night_work
from jobs.ingest import declare_complete, ingest_file
from jobs.night_plan import DayPlan, NightPlan, plan
from jobs.run.lake import Lake
from jobs.run.run import Pin, RunState, run_folder
from jobs.steps import BY_NAME
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables import registry as tables

D1, D2 = date(2026, 3, 1), date(2026, 3, 2)
AT = datetime(2026, 3, 3, tzinfo=UTC)
NONE = Boards({}, {})


@pytest.fixture
def settings(home: Path) -> Settings:
    """A lake with three events on D1, which is complete, and one on D2, which is not; scores on D1."""
    found = Settings(home=home)
    store = lake(found)
    for kind, name in ((Kind.ITEMS, "item_id"), (Kind.SCORES, "player_id")):
        file = home / f"{kind.value}.jsonl"
        rows = [(D1, "a"), (D1, "b"), (D1, "a"), (D2, "a")]
        events = [
            {"event_id": f"{n}", name: who, "occurred_at": f"{day}T10:00:00Z", "match_id": "m", "points": 1}
            for n, (day, who) in enumerate(rows)
        ]
        file.write_text("".join(json.dumps(event) + "\n" for event in events))
        ingest_file(store, found, clock.now, file, kind=kind, mapping={}, default_timezone=None)
        declare_complete(store, clock.now, kind, D1)
    return found


def lake(settings: Settings) -> DeltaRsStore:
    return DeltaRsStore(settings.lake_root, settings.lake.retention)


def planned(settings: Settings, ranked: Boards = NONE, first: date = D1, last: date = D1) -> NightPlan:
    return plan(Lake(settings, lake(settings), clock.now, ranked), first, last)


def died(settings: Settings, attempt: int) -> None:
    """A run of D1 that died while it committed."""
    pin = Pin(run_id="dead", first=D1, last=D1, lake_version=1, read_version=1, attempt=attempt, days=[])
    state = RunState(pin=pin, step="committing", started_at=AT, parameters_hash="")
    folder = run_folder(settings, "dead")
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(state.model_dump_json())


def test_a_first_night_replaces_nothing_and_publishes_the_first_generation(settings: Settings) -> None:
    version = lake(settings).version(tables.ITEM_EVENTS)
    assert planned(settings) == NightPlan([], [DayPlan("items", D1, 3, True, version, 1, "nothing", "generation 1")])


def test_an_incomplete_day_is_counted_and_not_published(settings: Settings) -> None:
    found = planned(settings, last=D2)
    assert [(day.rows, day.publishes) for day in found.days][1:] == [(1, "nothing, the day is incomplete")]
    assert found.open_days == [D2]


def test_what_stands_there_and_was_published_is_said(settings: Settings) -> None:
    store = lake(settings)
    row = {"day": D1, "generation": 4, "content_hash": "x", "run_id": "r", "lake_version": 1, "action": "publish"}
    schema = tables.PUBLICATIONS.schema
    store.append(tables.PUBLICATIONS, pa.Table.from_pylist([row | {"published_at": AT}], schema=schema))
    assert planned(settings).days[0].publishes == "generation 5 where lists change, else 4"


def test_a_dead_run_is_named_and_its_attempt_is_taken(settings: Settings) -> None:
    died(settings, attempt=7)
    found = planned(settings)
    assert (found.dead, found.days[0].attempt) == ([f"dead of {D1}"], 8)
    assert planned(settings, first=D2, last=D2).days[0].attempt == 1


def test_periods_that_hold_an_incomplete_day_are_not_published(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "boards.toml").write_text("[goals]\nperiods = ['day', 'week', 'all_time']")
    found = planned(settings, boards.load(tmp_path), last=D2)
    of_boards = {day.day: day for day in found.days if day.what == "boards"}
    assert [day.what for day in found.days] == ["items", "items", "boards", "boards"]
    assert of_boards[D1].publishes == "goals 2026-03-01, goals 2026-W09"
    assert of_boards[D2].publishes == "nothing, the day is incomplete"


def test_the_command_shows_it_writes_nothing_and_ends_as_the_night_would(settings: Settings) -> None:
    def all_files() -> dict[Path, float]:
        return {path: path.stat().st_mtime for path in settings.home.rglob("*")}

    before = all_files()
    words = ["nightly", "--from", str(D1), "--to", str(D2), "--dry-run", "--format", "json"]
    done = CliRunner().invoke(app, words, env={"DAYBREAK_HOME": str(settings.home)})
    assert [json.loads(line)["day"] for line in done.stdout.splitlines()] == [str(D1), str(D2)]
    assert done.exception is not None
    assert getattr(done.exception, "exit_code", None) == 3
    assert f"{D2} not complete" in str(done.exception)
    allowed = CliRunner().invoke(app, [*words, "--allow-incomplete"], env={"DAYBREAK_HOME": str(settings.home)})
    assert (allowed.exit_code, allowed.stdout) == (0, done.stdout)
    assert all_files() == before


def test_without_a_day_it_is_yesterday() -> None:
    yesterday = clock.now().date() - timedelta(days=1)
    assert cli_night.night_spans(None, None, None, False) == [(yesterday, yesterday)]


def test_the_command_knows_every_step_and_what_a_mistyped_one_was_meant_to_be() -> None:
    assert [*BY_NAME] == [*night_work.DOES], "each step has its function, and no function is without a step"
    with pytest.raises(UsageError, match=r"no step 'pni' \(did you mean 'pin'\?\)"):
        night.run_step(None, "pni", "r", None, False)
    assert "Did you mean 'nightly'" in CliRunner().invoke(app, ["nigtly"]).stderr
