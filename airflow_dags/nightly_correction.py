"""### Exact correction of a day

Counts one UTC day exactly, checks it twice, commits it and replaces the approximate lists that readers see.

Reads the lake's events. Writes the lake's derived tables and Redis. Says so to what waits for the assets
`daybreak_exact_day` (lists are published) and `daybreak_ranked_day` (boards are ranked).

| task | does | red means |
|---|---|---|
| complete | waits until every source has passed the day's end | eight hours were not enough: `daybreak status` |
| pin | fixes the version of the events | input is missing, or the lake is away |
| derive | counts into staging | engine or disk: look into the log that the message names |
| check | profile, Great Expectations, DuckDB's recount | **nothing was committed**; the message names the check |
| commit | replaces the day in the lake | exit 5: a newer run was there first, its result stays |
| capture | keeps what Redis served, for the report | Redis is away: clear it when it is back |
| publish | swaps the exact lists in | Redis is away, or a list differs when it is read back |
| report | sketch against exact | the lists are published; only the comparison is missing |
| optimize | compacts, clears staging | the day is exact; only files are many |
| boards | ranks players; last, so that nothing of the items waits for it | scores are missing, or its check failed |

A lake of scores alone has nothing for the steps from `derive` to `optimize`: they are skipped, and `complete` waits for
the scores. Without boards `boards` is skipped.

**Which day.** The parameter `day` wins. Else it is the day of the asset that triggered the run. Else the day in which
the data interval starts: the run of 02:30 corrects yesterday, a manual run the last day that was due, a backfilled run
its own.

**Again.** Clear a red task: its step is repeated, and those behind it. To correct a day anew, clear the run from `pin`
on, or trigger one with `day`. Every try of `pin` is a run of its own for the lake, so nothing old is taken up.

**Backfill.** `airflow backfill create --dag-id nightly_correction --from-date 2026-03-01 --to-date 2026-03-04
--max-active-runs 1` is 1 to 3 March. A day whose run exists is left out without a word, and so is the last day when
`--to-date` is its midnight. What is missing afterwards: `daybreak status --from 2026-03-01 --to 2026-03-03`.
"""

import json
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, CronDataIntervalTimetable, Param, chain, get_current_context, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from daybreak_command import (
    DEFAULTS,
    EXACT_DAY,
    HOPELESS,
    INCOMPLETE,
    RANKED_DAY,
    SINCE,
    attempt,
    day_of,
    daybreak,
    run_id_of,
    summary_of,
)

STEPS = json.loads(Path(__file__).with_name("steps.json").read_text(encoding="utf-8"))
"""The steps of a night, in order, as `daybreak run` knows them; the first two have tasks of their own kind."""
OUTLETS = {"publish": EXACT_DAY, "boards": RANKED_DAY}

with DAG(
    dag_id="nightly_correction",
    schedule=CronDataIntervalTimetable("30 2 * * *", timezone="UTC"),
    start_date=SINCE,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    params={
        "day": Param(None, type=["null", "string"], format="date", description="UTC day; default: the interval's.")
    },
    tags=["daybreak"],
    doc_md=__doc__,
) as nightly_correction:

    @task.sensor(poke_interval=300, timeout=8 * 3600, mode="reschedule", pool="default_pool")
    def complete() -> bool:
        """Whether every source has passed the day's end."""
        day = day_of(get_current_context())
        code, lines = attempt("run", "complete", "--run-id", "complete", "--day", day)
        if code in (0, INCOMPLETE):
            return code == 0
        failure = AirflowFailException if code in HOPELESS else AirflowException
        raise failure(f"daybreak run complete ended with exit {code}: {lines[-1]}")

    @task
    def pin() -> dict[str, str]:
        """Fixes the version of the events; says which run this is and of which day."""
        context = get_current_context()
        day, run_id = day_of(context), run_id_of(context)
        daybreak("run", "pin", "--run-id", run_id, "--day", day)
        return {"day": day, "run_id": run_id}

    def task_of(name: str, about: str) -> Any:
        """A task that runs one step of the pinned run, and says so to what waits for its outlet.

        A step that this lake has nothing for (no items, or no boards) is skipped, and those behind it go on.
        """
        outlet = OUTLETS.get(name)

        @task(task_id=name, doc=about, outlets=[outlet] if outlet else None, trigger_rule="none_failed")
        def run(pinned: dict[str, str], *, outlet_events: Any = None) -> None:
            if not summary_of(daybreak("run", name, "--run-id", pinned["run_id"])).get("did", True):
                raise AirflowSkipException(f"this lake has nothing that {name} is about")
            if outlet:
                outlet_events[outlet].extra = dict(pinned)

        return run

    run = pin()
    chain(complete(), run, *(task_of(step["name"], step["about"])(run) for step in STEPS[2:]))
