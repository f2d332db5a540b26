"""### Closes seasons that are over

Runs after each ranked day (asset `daybreak_ranked_day`), and closes every season of every board whose end and grace
have passed (`daybreak board close --due`). Closing twice changes nothing. With the parameters `board` and `period` it
closes that one alone. Reads the lake, writes `season_ranks`, `season_prizes`, `board_closes` and Redis.

**Red** with exit 3: days of the season must be corrected first; the message holds the command. With exit 4: DuckDB
ranks differently, and nothing was closed.

**Again.** Clear the task: what is closed stays as it is, what is not is tried anew.
"""

from airflow.sdk import DAG, Param, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException
from daybreak_command import DEFAULTS, RANKED_DAY, SINCE, daybreak

with DAG(
    dag_id="season_close",
    schedule=[RANKED_DAY],
    start_date=SINCE,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULTS,
    params={
        "board": Param(None, type=["null", "string"], description="Only this board; needs a period."),
        "period": Param(None, type=["null", "string"], description="A day, week, year or season."),
    },
    tags=["daybreak"],
    doc_md=__doc__,
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
