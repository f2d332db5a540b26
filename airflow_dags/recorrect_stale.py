"""### Recorrects days whose events have changed since

`daybreak nightly --stale`: late files, other rules of a board. Finds its days itself; `first` and `last` bound them.
What it corrected is an event of the assets `daybreak_exact_day` and `daybreak_ranked_day`, whose extra holds `ranges`
(pairs of the first and the last day) and `day`, the newest. Without a stale day the task is skipped, and triggers
nothing.

**Red.** As a night: exit 3 input is missing, exit 4 a check failed and nothing of that range was committed.

**Again.** Clear the task: ranges that are done are stale no more. The assets' events name what the last try corrected.
"""

import json
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException
from daybreak_command import DEFAULTS, EXACT_DAY, RANKED_DAY, SINCE, daybreak

BOUNDS = {"first": "--from", "last": "--to"}

with DAG(
    dag_id="recorrect_stale",
    schedule=CronDataIntervalTimetable("30 5 * * *", timezone="UTC"),
    start_date=SINCE,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    params={
        "first": Param(None, type=["null", "string"], format="date", description="No day before this one."),
        "last": Param(None, type=["null", "string"], format="date", description="No day after this one."),
    },
    tags=["daybreak"],
    doc_md=__doc__,
) as recorrect_stale:

    @task(outlets=[EXACT_DAY, RANKED_DAY])
    def recorrect(*, outlet_events: Any = None) -> None:
        """Corrects the stale days anew; skipped when there are none, so that nothing is triggered."""
        params = get_current_context()["params"]
        bounds = [word for name in ("first", "last") if params[name] for word in (BOUNDS[name], params[name])]
        nights = [json.loads(line) for line in daybreak("nightly", "--stale", *bounds) if line.startswith("{")]
        ranges = [[night["first"], night["last"]] for night in nights if night.get("run_id")]
        if not ranges:
            raise AirflowSkipException("no day is stale")
        for asset in (EXACT_DAY, RANKED_DAY):
            outlet_events[asset].extra = {"day": ranges[-1][1], "ranges": ranges}

    recorrect()
