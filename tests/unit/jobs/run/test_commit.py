"""A night's commits over what a dead or a newer run has left: claims, half of the tables, later days."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daybreak.errors import FenceRefusedError, LakeFailedError
from daybreak.settings import Settings
from jobs.run import commit
from jobs.run.context import Context
from jobs.run.pin import next_attempt
from jobs.run.run import ATTEMPT_BITS, DayPin, Pin, Run, RunState
from lakehouse.opening import open_engine
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables import registry as tables

D1, D2, D3 = (date(2026, 3, day) for day in (1, 2, 3))
AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
Nights = Callable[..., Run]


@pytest.fixture
def run(home: Path) -> Nights:
    """Makes nights over one lake, each with one row a day staged in every table."""
    settings = Settings.model_validate({"home": home})
    engine = open_engine(settings)
    store = DeltaRsStore(settings.lake_root, settings.lake.retention)

    def made(run_id: str, *days: date, lake_version: int = 1, attempt: int = 1) -> Run:
        pinned = [DayPin(day=day, rows=1, lookback_rows=0, previous_rows=0, is_complete=True) for day in days]
        pin = Pin(
            run_id=run_id,
            first=days[0],
            last=days[-1],
            lake_version=lake_version,
            read_version=lake_version,
            attempt=attempt,
            days=pinned,
        )
        state = RunState(pin=pin, step="checked", started_at=AT, parameters_hash="p")
        found = Run(settings, store, lambda: AT, state, engine)
        for table in found.tables:
            staged = found.folder / table.name
            staged.mkdir(parents=True)
            pq.write_table(rows_of(table, run_id, days), staged / "part-0.parquet")
            state.staged_rows[table.name] = len(days)
        found.save()
        return found

    return made


def rows_of(table: tables.Table, item_id: str, days: tuple[date, ...]) -> pa.Table:
    """One row a day, which says whose it is."""
    fixed = {"hour": 10, "item_id": item_id, "count": 1, "event_count": 1, "first_occurred_at": AT}
    fixed |= {"last_occurred_at": AT, "is_complete": True, "window": "day", "bucket_start": AT, "dimension": ""}
    fixed |= {"position": 1, "rank": 1, "population": 1}
    rows = [{name: fixed[name] for name in table.schema.names if name != "day"} | {"day": day} for day in days]
    return pa.Table.from_pylist(rows, schema=table.schema)


def owners(run: Run, table: tables.Table) -> dict[date, str]:
    """Whose row each day has."""
    return {row["day"]: row["item_id"] for row in run.store.read(table).to_pylist()}


def context_of(run: Run) -> Context:
    """Where the night works; no Redis is needed to finish a run."""
    return Context(run.settings, run.store, None, run.clock, run.engine)


def claim(run: Run, table: tables.Table) -> None:
    """What a Spark night leaves that dies between its two commits."""
    store = DeltaRsStore(run.settings.lake_root)
    store.claim(table, store.writable(table), run.pin.transaction(table))


def test_a_claim_is_no_commit_and_is_taken_up_by_its_run(run: Nights) -> None:
    mine = run("mine", D1, D2)
    claim(mine, tables.HOURLY_COUNTS)
    assert not commit.holds_our_commit(mine, tables.HOURLY_COUNTS)
    commit.commit(mine)
    assert owners(mine, tables.HOURLY_COUNTS) == {D1: "mine", D2: "mine"}
    assert all(commit.holds_our_commit(mine, table) for table in mine.tables)
    before = [mine.store.version(table) for table in mine.tables]
    commit.commit_tables(mine)
    assert [mine.store.version(table) for table in mine.tables] == before


def test_a_claim_of_a_dead_run_hinders_no_night_of_other_days(run: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    dead, mine = run("dead", D1), run("mine", D2)
    claim(dead, tables.HOURLY_COUNTS)
    commit.commit(mine)
    assert owners(mine, tables.HOURLY_COUNTS) == {D2: "mine"}
    dead.state.step = "committing"
    dead.save()
    assert commit.finish_others(context_of(mine)) == ["dead"]
    assert capsys.readouterr().err == f"finished a run that had died while it committed days={D1} run_id=dead\n"
    assert owners(mine, tables.HOURLY_COUNTS) == {D1: "dead", D2: "mine"}


def test_a_claim_raises_the_next_attempt_at_its_days(run: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    dead = run("dead", D1, D2, attempt=4)
    claim(dead, tables.HOURLY_COUNTS)
    assert next_attempt(dead.store, 1, [D2, D3]) == 5
    newer = run("newer", D2, D3, attempt=5)
    commit.commit(newer)
    dead.state.step = "committing"
    dead.save()
    assert commit.finish_others(context_of(newer)) == []
    assert capsys.readouterr().err.startswith("gave up a run that had died while it committed: ")
    assert owners(newer, tables.HOURLY_COUNTS) == {D2: "newer", D3: "newer"}


def test_a_range_of_which_a_newer_run_took_one_day_is_not_held_any_more(run: Nights) -> None:
    mine, newer = run("mine", D1, D2), run("newer", D2, lake_version=2)
    commit.commit(mine)
    commit.commit(newer)
    assert not commit.holds_our_commit(mine, tables.HOURLY_COUNTS)
    with pytest.raises(FenceRefusedError, match=f"hourly_counts/{D2} is at version {(2 << ATTEMPT_BITS) + 1}"):
        commit.commit_tables(mine)
    assert owners(mine, tables.TOP_LISTS) == {D1: "mine", D2: "newer"}


def test_a_run_whose_staging_cannot_be_written_says_which_setting_names_another(run: Nights) -> None:
    mine = run("mine", D1)
    mine.settings.staging_root.rename(mine.settings.home / "moved")
    mine.settings.staging_root.write_text("")
    with pytest.raises(LakeFailedError, match="DAYBREAK_LAKE__STAGING"):
        mine.save()
