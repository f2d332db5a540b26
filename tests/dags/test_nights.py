"""Whole runs by `dag.test()` on a real lake and a real Redis, one after the other on one deployment."""

import os
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.dags.conftest import DAYBREAK, DAYS, Deployment, some_events, tasks_of, without_waiting

pytestmark = pytest.mark.usefixtures("database")
DIES_ONCE = """#!/bin/sh
# Dies in the middle of its first commit.
if [ "$1 $2" = "run commit" ] && [ ! -e "{marker}" ]; then
    touch "{marker}"
    DAYBREAK_CRASH_AT=night.committed.daily_counts exec "{command}" "$@"
fi
exec "{command}" "$@"
"""


def said_of_assets() -> list[tuple[str, dict[str, Any]]]:
    """What was said to those who wait for assets, in order: the asset's name, and what the event carries."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(AssetEvent).order_by(AssetEvent.id)
        return [(event.asset.name, dict(event.extra)) for event in found]


def test_a_night_by_hand_is_about_the_day_before_and_its_killed_commit_is_repeated(
    dags: SimpleNamespace, deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    script = tmp_path / "daybreak"
    script.write_text(DIES_ONCE.format(marker=tmp_path / "died", command=DAYBREAK))
    script.chmod(0o755)
    monkeypatch.setenv("AIRFLOW_VAR_DAYBREAK_BIN", str(script))
    run = without_waiting(dags.nightly_correction).test(logical_date=datetime(2026, 3, 2, 7, tzinfo=UTC))
    assert set(tasks_of(run).values()) == {"success"}, tasks_of(run)
    assert (tmp_path / "died").exists()
    tries = {each.task_id: each.try_number for each in run.get_task_instances()}
    assert [task for task, number in tries.items() if number != 1] == ["commit"]
    assert deployment.states()[str(DAYS[0])] == "exact"
    assert "player-4" in deployment.daybreak("board", "top", "points", "--period", str(DAYS[0]), "--format", "csv")
    assert [(name, extra["day"]) for name, extra in said_of_assets()] == [
        ("daybreak_exact_day", str(DAYS[0])),
        ("daybreak_ranked_day", str(DAYS[0])),
    ]


def test_a_check_that_fails_stops_the_night_before_anything_is_published(
    dags: SimpleNamespace, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
):
    """The breaker: the day has a twentieth of the rows of the one before. A check is not tried again."""
    monkeypatch.setenv("DAYBREAK_NIGHT__BREAKER_MIN_ROWS", "1")
    dag = without_waiting(dags.nightly_correction)
    run = dag.test(logical_date=datetime(2026, 3, 9, 7, tzinfo=UTC), run_conf={"day": str(DAYS[1])})
    states = tasks_of(run)
    assert (str(run.state), states["check"]) == ("failed", "failed")
    assert {states[task] for task in ("commit", "capture", "publish", "report", "optimize", "boards")} == {
        "upstream_failed"
    }
    assert {each.task_id: each.try_number for each in run.get_task_instances()}["check"] == 1
    assert deployment.states()[str(DAYS[1])] == "none"


def test_a_season_that_is_over_is_closed_and_closing_again_changes_nothing(
    dags: SimpleNamespace, deployment: Deployment
):
    for hour in (7, 8):
        run = without_waiting(dags.season_close).test(logical_date=datetime(2026, 3, 4, hour, tzinfo=UTC))
        assert tasks_of(run) == {"close": "success"}
    assert ",closed,1," in deployment.daybreak("board", "history", "points", "player-4", "--format", "csv")


def test_stale_days_are_corrected_anew(dags: SimpleNamespace, deployment: Deployment):
    deployment.ingest("late.jsonl", [some_events(DAYS[0], 1)[0] | {"event_id": "late"}])
    assert deployment.states()[str(DAYS[0])] == "stale"
    dag = without_waiting(dags.recorrect_stale)
    run = dag.test(logical_date=datetime(2026, 3, 4, 7, tzinfo=UTC))
    assert tasks_of(run) == {"recorrect": "success"}
    assert deployment.states()[str(DAYS[0])] == "exact"
    said = said_of_assets()
    carried = {"day": str(DAYS[0]), "ranges": [[str(DAYS[0]), str(DAYS[0])]]}
    of_one_task = sorted(said[-2:], key=str)  # in no order that Airflow promises
    assert of_one_task == [("daybreak_exact_day", carried), ("daybreak_ranked_day", carried)]
    run = dag.test(logical_date=datetime(2026, 3, 4, 8, tzinfo=UTC))
    assert tasks_of(run) == {"recorrect": "skipped"}
    assert said_of_assets() == said, "without a stale day nothing is triggered"


def test_a_command_that_makes_no_sense_is_not_tried_again(
    dags: SimpleNamespace, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
):
    dag = without_waiting(dags.season_close)
    run = dag.test(logical_date=datetime(2026, 3, 5, 7, tzinfo=UTC), run_conf={"board": "points", "period": "no-such"})
    assert str(run.state) == "failed"
    assert [each.try_number for each in run.get_task_instances()] == [1]
    assert os.environ["AIRFLOW_VAR_DAYBREAK_BIN"] == str(DAYBREAK)
