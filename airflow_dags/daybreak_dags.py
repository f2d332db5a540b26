"""Daybreak's nights, closes and recorrections: when they run and in what order. The work is the `daybreak` command's.

Two Airflow variables say where it is: `daybreak_bin`, the command, and `daybreak_dir`, the folder with `conf/`.
"""

import logging
import os
import re
import shlex
import signal
import subprocess
from datetime import UTC, date, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, Param, Variable, get_current_context, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

EXACT_DAY = Asset(name="daybreak_exact_day", uri="daybreak://exact_day")
"""A day whose exact lists are published; an event's extra holds `day`, `run_id`."""

RANKED_DAY = Asset(name="daybreak_ranked_day", uri="daybreak://ranked_day")
"""A day that is on every board; an event's extra holds `day`, `run_id`. What closes seasons waits for it."""

POOL = "daybreak_lake"
"""What reads or writes the lake takes a slot; one slot keeps nights, closes and recorrections apart."""

INCOMPLETE = 3
HOPELESS = {
    2: "the command or a setting makes no sense",
    INCOMPLETE: "input is missing",
    4: "a check failed",
    7: "unreadable input",
}
"""Exit codes that a retry does not mend. Exit 5 may be a lease that somebody holds for some minutes; 6 and 8 are Redis
and the lake; a negative one is a step that was killed."""

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
"""No run is scheduled for a day before this one; a backfill may begin earlier."""
BOUNDS = {"first": "--from", "last": "--to"}
log = logging.getLogger(__name__)

DEFAULTS = {
    "owner": "data-platform",
    "pool": POOL,
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(minutes=30),
    "execution_timeout": timedelta(hours=6),
}

NIGHTLY = """
### Exact correction of a day

Counts one UTC day exactly, checks it twice, commits it and replaces the approximate lists that readers see.

Reads the lake's events. Writes the lake's derived tables and Redis. Says so to what waits for the assets
`daybreak_exact_day` (lists are published) and `daybreak_ranked_day` (boards are ranked).

| task | does | red means |
|---|---|---|
| complete | waits until every source has passed the day's end | eight hours were not enough: `daybreak status`, `daybreak ingest` |
| pin | fixes the version of the events | input is missing, or the lake is away |
| derive | counts into staging | engine or disk: look into the log that the message names |
| check | profile, Great Expectations, DuckDB's recount | **nothing was committed**; the message names the check |
| commit | replaces the day in the lake | exit 5: a newer run was there first, its result stays |
| capture | keeps what Redis served, for the report | Redis is away: clear it when it is back |
| publish | swaps the exact lists in | Redis is away, or a list differs when it is read back |
| report | sketch against exact | the lists are published; only the comparison is missing |
| optimize | compacts, clears staging | the day is exact; only files are many |
| boards | ranks players; last, so that nothing of the items waits for it | scores are missing, or its check failed |

**Which day.** The parameter `day` wins. Else it is the day of the asset that triggered the run. Else the day in which the
data interval starts: the run of 02:30 corrects yesterday, a manual run the last day that was due, a backfilled run its own.

**Again.** Clear a red task: its step is repeated, and those behind it. To correct a day anew, clear the run from `pin`
on, or trigger one with `day`. Every try of `pin` is a run of its own for the lake, so nothing old is taken up.

**Backfill.** 1 to 3 March: `airflow backfill create --dag-id nightly_correction --from-date 2026-03-01 --to-date 2026-03-04
--max-active-runs 1`. A day whose run exists is left out without a word, and so is the last day when `--to-date` is its
midnight. What is missing afterwards: `daybreak status --from 2026-03-01 --to 2026-03-03`.
"""

CLOSE = """
### Closes seasons that are over

Runs after each ranked day (asset `daybreak_ranked_day`), and closes every season of every board whose end and grace have
passed (`daybreak board close --due`). Closing twice changes nothing. With the parameters `board` and `period` it closes
that one alone. Reads the lake, writes `season_ranks`, `season_prizes`, `board_closes` and Redis.

**Red** with exit 3: days of the season must be corrected first; the message holds the command. With exit 4: DuckDB ranks
differently, and nothing was closed.

**Again.** Clear the task: what is closed stays as it is, what is not is tried anew.
"""

STALE = """
### Recorrects days whose events have changed since

`daybreak nightly --stale`: late files, other rules of a board. Finds its days itself; `first` and `last` bound them. Each
range of days that it corrected is an event of the assets `daybreak_exact_day` and `daybreak_ranked_day`, whose extra holds
`first`, `last`, and `day`, which is the last one.

**Red.** As a night: exit 3 input is missing, exit 4 a check failed and nothing of that range was committed.

**Again.** Clear the task: ranges that are done are stale no more.
"""


def words_of(*words: str) -> list[str]:
    """The command line: the command that the variable names, and these words."""
    return [Variable.get("daybreak_bin", default="daybreak"), *words]


def attempt(*words: str) -> tuple[int, str]:
    """Runs the command in the deployment's folder, its output in the task's log; the exit code and its last line."""
    command = words_of(*words)
    log.info("$ %s", shlex.join(command))
    folder, last = Variable.get("daybreak_dir", default=os.getcwd()), ""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        before = signal.signal(signal.SIGTERM, lambda *_: running.terminate())  # a killed task takes its step along
        try:
            for line in running.stdout or ():
                last = line.rstrip()
                log.info("%s", last)
            return running.wait(), last
        finally:
            signal.signal(signal.SIGTERM, before)
            running.terminate()


def daybreak(*words: str) -> str:
    """The command's last line; fails as its exit code says: for good where a retry does not mend it."""
    code, last = attempt(*words)
    about = " ".join(word for word in words[:2] if not word.startswith("-"))
    if code in HOPELESS:
        raise AirflowFailException(f"daybreak {about} ended with exit {code}, {HOPELESS[code]}: {last}")
    if code:
        raise AirflowException(f"daybreak {about} ended with exit {code}: {last}")
    return last


def day_of(context: dict[str, Any]) -> str:
    """The day that a run is about: its parameter, the asset's that triggered it, or that of its data interval."""
    if given := context["params"].get("day"):
        return date.fromisoformat(given).isoformat()
    days = [event.extra["day"] for events in asset_events(context) for event in events if "day" in event.extra]
    if days:
        return max(days)
    if start := context["dag_run"].data_interval_start:
        return start.strftime("%Y-%m-%d")
    raise AirflowFailException("this run has no data interval, so it needs its day: set the parameter day")


def asset_events(context: dict[str, Any]) -> list[Any]:
    """The asset events that triggered the run."""
    found = context.get("triggering_asset_events") or {}
    return [found[asset] for asset in found]


def run_id_of(context: dict[str, Any]) -> str:
    """What the lake calls this try of the run: one that is cleared, or deleted and made again, is a run of its own."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", context["dag_run"].run_id)
    return f"{name}.{context['ti'].try_number}.{str(context['ti'].id)[-6:]}"


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
    doc_md=NIGHTLY,
) as nightly_correction:

    @task.sensor(poke_interval=300, timeout=8 * 3600, mode="reschedule", pool="default_pool")
    def complete() -> bool:
        """Whether every source has passed the day's end."""
        day = day_of(get_current_context())
        code, last = attempt("run", "complete", "--run-id", "complete", "--day", day)
        if code in (0, INCOMPLETE):
            return code == 0
        failure = AirflowFailException if code in HOPELESS else AirflowException
        raise failure(f"daybreak run complete ended with exit {code}: {last}")

    @task
    def pin() -> dict[str, str]:
        """Fixes the version of the events; says which run this is and of which day."""
        context = get_current_context()
        day, run_id = day_of(context), run_id_of(context)
        daybreak("run", "pin", "--run-id", run_id, "--day", day)
        return {"day": day, "run_id": run_id}

    def step(name: str, **more: Any) -> Any:
        """A task that runs one step of the pinned run."""

        @task(task_id=name, **more)
        def run(pinned: dict[str, str]) -> None:
            daybreak("run", name, "--run-id", pinned["run_id"])

        return run

    @task(outlets=[EXACT_DAY])
    def publish(pinned: dict[str, str], *, outlet_events: Any = None) -> None:
        """Swaps the day's exact lists in, and says so to what waits for an exact day."""
        daybreak("run", "publish", "--run-id", pinned["run_id"])
        outlet_events[EXACT_DAY].extra = dict(pinned)

    pinned = pin()
    complete() >> pinned
    derived, checked, committed, captured = (step(name)(pinned) for name in ("derive", "check", "commit", "capture"))
    published, reported = publish(pinned), step("report")(pinned)
    ranked, optimized = step("boards")(pinned), step("optimize")(pinned)
    pinned >> derived >> checked >> committed >> captured >> published >> reported >> optimized >> ranked


with DAG(
    dag_id="season_close",
    schedule=[EXACT_DAY],
    start_date=SINCE,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    params={
        "board": Param(None, type=["null", "string"], description="Only this board; needs a period."),
        "period": Param(None, type=["null", "string"], description="A day, week, year or season."),
    },
    tags=["daybreak"],
    doc_md=CLOSE,
) as season_close:

    @task
    def close() -> None:
        """Closes what is due, or the period that is named."""
        params = get_current_context()["params"]
        board, period = params["board"], params["period"]
        if bool(board) != bool(period):
            raise AirflowFailException("board and period go together; set both, or neither to close what is due")
        daybreak("board", "close", *([board, period] if board else ["--due"]))

    close()


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
    doc_md=STALE,
) as recorrect_stale:

    @task
    def recorrect() -> None:
        """Corrects the stale days anew."""
        params = get_current_context()["params"]
        bounds = [word for name in ("first", "last") if params[name] for word in (BOUNDS[name], params[name])]
        daybreak("nightly", "--stale", *bounds)

    recorrect()
