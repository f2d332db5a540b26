"""What the DAGs share: how a task runs the `daybreak` command, which day a run is about, and the tasks' defaults.

Two Airflow variables say where it is: `daybreak_bin`, the command, and `daybreak_dir`, the folder with `conf/`.
"""

import json
import logging
import re
import shlex
import signal
import subprocess
from datetime import UTC, date, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, Variable
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


def words_of(*words: str) -> list[str]:
    """The command line: the command that the variable names, and these words."""
    return [Variable.get("daybreak_bin", default="daybreak"), *words]


def attempt(*words: str) -> tuple[int, list[str]]:
    """Runs the command in the deployment's folder, its output in the task's log; the exit code and the lines."""
    command, lines = words_of(*words), [""]
    log.info("$ %s", shlex.join(command))
    folder = Variable.get("daybreak_dir", default=".")
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        before = signal.signal(signal.SIGTERM, lambda *_: running.terminate())  # a killed task ends its step too
        try:
            for line in running.stdout or ():
                lines.append(line.rstrip())
                log.info("%s", lines[-1])
            return running.wait(), lines
        finally:
            signal.signal(signal.SIGTERM, before)
            running.terminate()


def daybreak(*words: str) -> list[str]:
    """The lines that the command prints; fails as its exit code says: for good where a retry does not mend it."""
    code, lines = attempt(*words)
    if code == 0:
        return lines
    what = f"daybreak {shlex.join(words)} ended with exit {code}"
    if code in HOPELESS:
        raise AirflowFailException(f"{what}, {HOPELESS[code]}: {lines[-1]}")
    raise AirflowException(f"{what}: {lines[-1]}")


def summary_of(lines: list[str]) -> dict[str, Any]:
    """The summary with which a command ends: its last line of JSON; empty where there is none."""
    found: dict[str, Any] = json.loads(next((line for line in reversed(lines) if line.startswith("{")), "{}"))
    return found


def day_of(context: dict[str, Any]) -> str:
    """The day that a run is about: its parameter, the asset's that triggered it, or that of its data interval."""
    if given := context["params"].get("day"):
        try:
            return date.fromisoformat(given).isoformat()
        except ValueError:
            raise AirflowFailException(f"the parameter day is {given!r}, not a day; write it as 2026-03-01") from None
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
