"""The whole of Daybreak on one real day: provisional list, night, exact list, the error in words.

Reads   the flights of `daybreak.cli.setup.flights`
Writes  its own home, HOME/demo, made anew by each run: events.jsonl, lake, embedded Redis
Rerun   the same lists and the same error; every step is a command that a user could type
"""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from daybreak.cli.output import command_line, typed, working
from daybreak.cli.setup import flights
from daybreak.errors import DaybreakError, UsageError
from daybreak.settings import Settings
from lakehouse.engines.scratch import writing

RELATIVE_ERROR = "0.01"
K = "10"
MARKER = ".made-by-daybreak-demo"
QUERY = """\
SELECT item_id AS aircraft, count AS departures, strftime(first_occurred_at, '%H:%M') AS first,
       strftime(last_occurred_at, '%H:%M') AS last
FROM daily_counts
WHERE day = DATE '{day}'
ORDER BY count DESC, last_occurred_at - first_occurred_at, item_id DESC
LIMIT 5"""

NEXT_QUERY = "SELECT code, count(*) AS refused FROM refusals GROUP BY code ORDER BY refused DESC"


@dataclass(frozen=True)
class Shell:
    """Runs `daybreak` commands in the demo's home and shows each as a user would type it."""

    settings: Settings
    home: Path
    console: Console

    def run(self, *arguments: str, with_rows: bool = False) -> str:
        """The rows that the command printed; what it said about them is shown, the rows when asked for.

        Raises:
            DaybreakError: it failed; carries its own message and exit code.
        """
        self.console.print(f"[bold]$ daybreak {escape(typed(arguments))}[/bold]", soft_wrap=True)
        with working(f"daybreak {arguments[0]}"):
            done = subprocess.run(
                [sys.executable, "-m", "daybreak.cli", *arguments],
                env=demo_environment(self.settings, self.home),
                cwd=self.home,
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=False,
            )
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            failure = DaybreakError(f"the demo's step `daybreak {arguments[0]}` failed: {last}")
            failure.exit_code = done.returncode if done.returncode > 0 else 1
            raise failure
        for text in (done.stderr, done.stdout if with_rows else ""):
            if text.strip():
                self.console.print(text.rstrip(), markup=False, highlight=False, soft_wrap=True)
        return done.stdout


def demo_environment(settings: Settings, home: Path) -> dict[str, str]:
    """The environment of the commands: the user's engine, but nothing of the user's own lake or Redis.

    With it they run in `home`, where no conf lies: what the user's conf says of engines is passed on in variables.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DAYBREAK_")}
    spark = settings.spark
    engine = {
        "DAYBREAK_ENGINE": settings.engine,
        "DAYBREAK_NIGHT__MEMORY_POOL": str(settings.night.memory_pool),
        "DAYBREAK_SPARK__MASTER": spark.master or "",
        "DAYBREAK_SPARK__REMOTE": spark.remote or "",
        "DAYBREAK_SPARK__DRIVER_MEMORY": spark.driver_memory,
        "DAYBREAK_SPARK__SHUFFLE_PARTITIONS": str(spark.shuffle_partitions or ""),
        "DAYBREAK_SPARK__CONF": json.dumps(spark.conf),
    }
    own = {
        "DAYBREAK_HOME": str(home),
        "DAYBREAK_LAKE__ROOT": str(home / "lake"),
        "DAYBREAK_LAKE__STAGING": str(home / "staging"),
        "DAYBREAK_BOARDS_FOLDER": str(home / "conf"),
    }
    return kept | {name: value for name, value in engine.items() if value} | own | {"PYTHONIOENCODING": "utf-8"}


def next_commands(home: Path, day: str) -> list[str]:
    """Lines of a shell that look at what the demo left; right when copied, whatever conf and variables are set."""
    theirs = sorted(name for name in os.environ if name.startswith("DAYBREAK_") and name != "DAYBREAK_HOME")
    return [
        command_line("cd", str(home)),
        *([f"unset {' '.join(theirs)}"] if theirs else []),
        command_line("export", f"DAYBREAK_HOME={home}"),
        command_line("daybreak", "status", "--from", day, "--to", day),
        command_line("daybreak", "top", "--window", "hour", "--at", f"{day}T21:00", "-k", "5"),
        command_line("daybreak", "sql", NEXT_QUERY),
        command_line("daybreak", "down"),
    ]


def fresh_home(settings: Settings, console: Console) -> Path:
    """HOME/demo, empty; what an earlier demo left there is stopped and removed.

    Raises:
        UsageError: a folder of that name that no demo made.
        LakeFailedError: it cannot be made.
    """
    home = settings.home / "demo"
    if home.exists():
        if not (home / MARKER).exists():
            raise UsageError(f"{home} was not made by a demo and stays as it is; move it or set DAYBREAK_HOME")
        if (home / "redis").exists():
            Shell(settings, home, console).run("down")
        shutil.rmtree(home)
    with writing(home):
        home.mkdir(parents=True)
        (home / MARKER).touch()
    return home


def top_rows(text: str) -> list[dict[str, str]]:
    """The rows of `daybreak top --format csv`."""
    return list(csv.DictReader(io.StringIO(text)))


def provisional_list(rows: list[dict[str, str]]) -> Table:
    """The list as served before the night."""
    table = Table("position", "aircraft", "estimate", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row["position"], row["item_id"], row["count"])
    return table


def side_by_side(provisional: list[dict[str, str]], exact: list[dict[str, str]]) -> Table:
    """Both lists, position by position; an item that is right within the shown ten is marked."""
    right = {row["item_id"] for row in exact}
    table = Table("position", "provisional", "estimate", "", "exact", "count", box=None, pad_edge=False)
    for ours, theirs in zip(provisional, exact, strict=False):
        mark = "✓" if ours["item_id"] in right else "✗"
        table.add_row(ours["position"], ours["item_id"], ours["count"], mark, theirs["item_id"], theirs["count"])
    return table


def run(settings: Settings, console: Console) -> None:
    """Show the whole way of one day.

    Raises:
        UsageError: no flights installed, or a foreign folder where the demo's home should be.
        DaybreakError: a step failed; with that step's exit code.
    """
    archive = flights.flights_archive()
    home = fresh_home(settings, console)
    shell = Shell(settings, home, console)
    day, events = flights.DAY.isoformat(), home / "events.jsonl"

    _heading(console, "1  Events: every flight out of New York on two days, aircraft by aircraft")
    replay = flights.write_replay(events, archive)
    console.print(
        f"{replay.lines} lines: {replay.flights} flights (of them {replay.cancelled} cancelled: no departure "
        f"time, to be refused), {replay.repeated} sent twice, {replay.late} held back until their day was "
        f"over, {replay.broken} broken."
    )
    try:
        _show_day(shell, day, events)
        _heading(console, "6  Where the files are")
        console.print(f"events  {events}\nlake    {home / 'lake'}  (Delta tables)", markup=False, soft_wrap=True)
        console.print(f"redis   {home / 'redis'}  (append-only file of the embedded server)", soft_wrap=True)
        _heading(console, "7  Where to look next (to be copied line by line)")
        for line in next_commands(home, day):
            console.print(f"    {line}", markup=False, highlight=False, soft_wrap=True)
        console.print()
    finally:
        shell.run("down")


def _show_day(shell: Shell, day: str, events: Path) -> None:
    console, file = shell.console, str(events)
    _heading(console, "2  While the day runs: approximate lists")
    console.print(
        f"The sketch is forced down to a relative error of {RELATIVE_ERROR} (272 x 5 cells) and used from "
        "the first event. Lists this small would otherwise be exact from the start, with no error to show."
    )
    shell.run("stream", file, "--until-idle", "--relative-error", RELATIVE_ERROR, "--force-cells")
    top = ("top", "--window", "day", "--at", day, "-k", K, "--format", "csv")
    provisional = top_rows(shell.run(*top))
    console.print(provisional_list(provisional))

    _heading(console, "3  After the day: take the events into the lake and correct the day")
    shell.run("ingest", file, "--complete-through", day)
    shell.run("nightly", "--day", day)
    exact = top_rows(shell.run(*top))
    console.print(side_by_side(provisional, exact))
    console.print(
        f"✓ stands in the exact first {K} too. Many aircraft flew equally often, and a cut list must end somewhere: "
        "ties go by id. The report below counts any of those tied at the cut as right."
    )

    _heading(console, "4  How wrong the provisional lists were")
    shell.run("report", "--day", day, with_rows=True)

    _heading(console, "5  An analyst asks")
    shell.run("sql", QUERY.format(day=day), with_rows=True)


def _heading(console: Console, text: str) -> None:
    console.print(f"\n[bold cyan]{text}[/bold cyan]")
