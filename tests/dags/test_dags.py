"""What the DAGs are: that they load, their policy, their pages, their order, and which day a run is about."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.sdk.execution_time.context import TriggeringAssetEventsAccessor

from tests.dags.conftest import DAG_IDS, ROOT

OURS = ("pyspark", "pysail", "delta", "deltalake", "duckdb", "daybreak", "jobs", "lakehouse", "streaming")
LOADED = """
import sys
from airflow.dag_processing.dagbag import DagBag
sys.path.append(sys.argv[1])  # as Airflow does
bag = DagBag(sys.argv[1])
print(sorted(bag.dags), bag.import_errors)
print(sorted({name.split(".")[0] for name in sys.modules} & set(sys.argv[2:])))
"""


def dag_of(dags: SimpleNamespace, dag_id: str) -> Any:
    return vars(dags)[dag_id]


def test_parsing_imports_nothing_of_ours_and_no_engine():
    command = [sys.executable, "-c", LOADED, str(ROOT / "airflow_dags"), *OURS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ, check=True)
    assert done.stdout.splitlines()[-2:] == [f"{sorted(DAG_IDS)} {{}}", "[]"]


@pytest.mark.parametrize("dag_id", DAG_IDS)
def test_every_dag_keeps_to_the_policy(dags: SimpleNamespace, dag_id: str):
    dag = dag_of(dags, dag_id)
    assert dag.dag_id == dag_id
    assert (dag.catchup, dag.max_active_runs, dag.tags) == (False, 1, {"daybreak"})
    assert dag.doc_md.lstrip().startswith("### ")
    for each in dag.tasks:
        is_sensor = each.task_id == "complete"
        assert each.owner == "data-platform"
        assert each.pool == ("default_pool" if is_sensor else "daybreak_lake")
        assert (each.retries, each.retry_delay, each.retry_exponential_backoff) == (3, timedelta(minutes=1), 2)
        assert each.max_retry_delay == timedelta(minutes=30)
        assert each.doc or each.python_callable.__doc__
    for name in dag.params:
        assert dag.params.get_param(name).description, name


def test_every_task_of_a_night_is_explained_on_its_page(dags: SimpleNamespace):
    dag = dags.nightly_correction
    rows = [line.split("|")[1].strip() for line in dag.doc_md.splitlines() if line.startswith("|")]
    assert set(rows[2:]) == {each.task_id for each in dag.tasks}


def test_a_night_goes_step_by_step_and_publishes_after_the_checks(dags: SimpleNamespace):
    dag = dags.nightly_correction
    order = [each.task_id for each in dag.topological_sort()]
    due = ["complete", "pin", "derive", "check", "commit", "capture", "publish", "report", "optimize", "boards"]
    assert order == due
    for before, after in pairwise(due):
        assert after in dag.get_task(before).downstream_task_ids
    outlets = {each.task_id: [asset.name for asset in each.outlets] for each in dag.tasks if each.outlets}
    assert outlets == {"publish": ["daybreak_exact_day"], "boards": ["daybreak_ranked_day"]}
    assert [leaf.task_id for leaf in dag.leaves] == ["boards"], "a failure of the boards makes the run red"


def context(start: datetime | None = None, events: Any = None, **params: Any) -> dict[str, Any]:
    run = SimpleNamespace(data_interval_start=start, run_id="scheduled__2026-03-02T02:30:00+00:00")
    return {
        "params": {"day": None} | params,
        "dag_run": run,
        "triggering_asset_events": events,
        "ti": SimpleNamespace(try_number=2, id="01a230da-683e-7f80-bfc9-be15fd41811d"),
    }


def test_a_scheduled_run_is_about_the_day_before(dags: SimpleNamespace):
    from airflow.timetables.base import TimeRestriction
    from airflow.timetables.interval import CronDataIntervalTimetable

    timetable = CronDataIntervalTimetable("30 2 * * *", timezone="UTC")
    restriction = TimeRestriction(earliest=datetime(2026, 3, 1, tzinfo=UTC), latest=None, catchup=True)
    found, interval = [], None
    for _ in range(3):  # as a scheduler makes them, one after the other; a backfill has the same intervals
        info = timetable.next_dagrun_info(last_automated_data_interval=interval, restriction=restriction)
        interval = info.data_interval
        found.append((f"{info.run_after:%Y-%m-%dT%H:%M}", dags.day_of(context(interval.start))))
    assert found == [
        ("2026-03-02T02:30", "2026-03-01"),
        ("2026-03-03T02:30", "2026-03-02"),
        ("2026-03-04T02:30", "2026-03-03"),
    ]
    by_hand = timetable.infer_manual_data_interval(run_after=datetime(2026, 3, 4, 15, tzinfo=UTC))
    assert dags.day_of(context(by_hand.start)) == "2026-03-03"


def test_the_parameter_wins_then_the_asset_then_the_interval(dags: SimpleNamespace):
    start = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)
    asset = SimpleNamespace(name=dags.EXACT_DAY.name, uri=dags.EXACT_DAY.uri)
    extras: list[dict[str, str]] = [{"day": "2026-02-06"}, {"day": "2026-02-07"}, {}]  # of nights that ended together
    events = TriggeringAssetEventsAccessor.build(
        SimpleNamespace(asset=asset, source_aliases=[], extra=extra) for extra in extras
    )
    assert dags.day_of(context(start, events, day="2026-01-05")) == "2026-01-05"
    assert dags.day_of(context(start, events)) == "2026-02-07"
    assert dags.day_of(context(None, events)) == "2026-02-07"
    assert dags.day_of(context(start, {})) == "2026-03-01"
    with pytest.raises(AirflowFailException, match="set the parameter day"):
        dags.day_of(context(None))
    with pytest.raises(AirflowFailException, match="'yesterday', not a day"):
        dags.day_of(context(start, day="yesterday"))


def test_each_try_of_a_run_has_a_name_of_its_own_that_can_name_a_folder(dags: SimpleNamespace):
    assert dags.run_id_of(context()) == "scheduled-2026-03-02T02-30-00-00-00.2.41811d"


def test_the_defaults_are_written_out(dags: SimpleNamespace):
    assert dags.DEFAULTS["retry_delay"] <= timedelta(minutes=5)
    assert dags.nightly_correction.timetable.expression == "30 2 * * *"


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command in the place of `daybreak`, to be written."""
    script = tmp_path / "daybreak"
    script.touch(mode=0o755)
    monkeypatch.setenv("AIRFLOW_VAR_DAYBREAK_BIN", str(script))
    return script


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        *((code, AirflowFailException) for code in (2, 3, 4, 7)),
        *((code, AirflowException) for code in (1, 5, 6, 8)),
    ],
)
def test_what_a_retry_does_not_mend_fails_at_once(
    dags: SimpleNamespace, command: Path, code: int, failure: type[Exception]
):
    command.write_text(f"#!/bin/sh\necho 'daybreak: said why' >&2\nexit {code}\n")
    with pytest.raises(
        AirflowException, match=f"daybreak run pin ended with exit {code}.*: daybreak: said why"
    ) as raised:
        dags.daybreak("run", "pin")
    assert raised.type is failure


@pytest.mark.parametrize(("code", "is_complete"), [(0, True), (3, False)])
def test_a_night_waits_while_input_is_missing(
    dags: SimpleNamespace, command: Path, monkeypatch: pytest.MonkeyPatch, code: int, is_complete: bool
):
    command.write_text(f'#!/bin/sh\n[ "$*" = "run complete --run-id complete --day 2026-03-01" ] && exit {code}\n')
    monkeypatch.setattr("nightly_correction.get_current_context", lambda: context(day="2026-03-01"))
    assert dags.nightly_correction.get_task("complete").python_callable() is is_complete


def test_a_task_that_is_killed_takes_its_step_along(dags: SimpleNamespace, command: Path):
    before = signal.getsignal(signal.SIGTERM)
    command.write_text("#!/bin/sh\nsleep 0.5\nkill -TERM $PPID\nexec sleep 60\n")
    assert dags.attempt("run", "derive")[0] == -signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before
