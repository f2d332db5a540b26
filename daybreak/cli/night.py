"""The commands of a night: correct days, run one step, say what is known of days, say how wrong the lists were."""

import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from datetime import date, timedelta
from typing import Annotated

import typer

from daybreak import clock, settings
from daybreak.cli.options import DayOption, Format, From, To, lake, lists, night_context, parse_day, parse_span
from daybreak.cli.output import say, show, steps, summarise, working
from daybreak.errors import InputIncompleteError, UsageError
from daybreak.windows import ranges
from jobs.steps import BY_NAME

NightFormat = Annotated[str, typer.Option("--format", help="Of --dry-run: table, json or csv.")]


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `app`."""
    app.command(epilog="Example: daybreak nightly --day 2011-12-05")(nightly)
    app.command(epilog="Example: daybreak run pin --run-id scheduled-1 --day 2011-12-05")(run)
    app.command(epilog="Example: daybreak status --from 2011-12-01 --to 2011-12-09")(status)
    app.command(epilog="Example: daybreak report --day 2011-12-05")(report)


def nightly(
    day: DayOption = None,
    first: From = None,
    last: To = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Recorrect exactly the days whose events have changed.")
    ] = False,
    allow_incomplete: Annotated[
        bool, typer.Option("--allow-incomplete", help="Count what is there; Redis is left alone.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show which days, what would be replaced and published.")
    ] = False,
    format_: NightFormat = "table",
) -> None:
    """Correct days exactly: check, commit, publish and report. Without a day: yesterday (UTC)."""
    spans = night_spans(day, first, last, stale)
    if dry_run:
        show_plans(spans, allow_incomplete, format_)
        return
    from jobs.night import nightly as run_night
    from jobs.night import steps_of

    with night_context() as context:
        for start, end in spans:
            about = f"{start} to {end}" if start != end else str(start)
            with steps(about, len(steps_of(context))) as step:
                done = run_night(context, start, end, allow_incomplete=allow_incomplete, progress=step)
            if done.lake_version >= 0:
                say(f"{done.distinct} distinct + {done.duplicate} duplicate = {done.rows} rows of {about}")
                if not done.rows:
                    say(f"warning: no event at all in {about}; explicitly empty lists are published")
            if done.boards:
                say(f"{done.boards} boards of a period ranked for {about}")
            summarise("nightly", done.as_dict())
    if not spans:
        summarise("nightly", {"days": 0})


def night_spans(day: str | None, first: str | None, last: str | None, stale: bool) -> list[tuple[date, date]]:
    """The spans of days that the options mean; yesterday without any."""
    if not stale:
        return [parse_span(day, first, last) if day or first or last else (clock.now().date() - timedelta(days=1),) * 2]
    if day:
        raise UsageError("--stale finds its days itself; leave --day out, or bound it with --from and --to")
    from jobs.run.staleness import stale_days

    bounds = (parse_day(first) if first else date.min, parse_day(last) if last else date.max)
    with working("looking for stale days"):
        found = stale_days(lake(settings.load()), *bounds)
    if not found:
        say("no day is stale")
    return list(ranges(found))


def show_plans(spans: Iterable[tuple[date, date]], allow_incomplete: bool, format_: str) -> None:
    """What nights over these days would do, as rows; nothing is written.

    Raises:
        InputIncompleteError: what the first night would refuse.
    """
    from jobs.night_plan import DayPlan, plan

    read = lake(settings.load())
    with working("looking at the days"):
        plans = [plan(read, *span) for span in spans]
    show([field.name for field in fields(DayPlan)], (asdict(day) for each in plans for day in each.days), format_)
    for dead in plans[0].dead if plans else ():
        say(f"run {dead} died while it committed; it would be finished first")
    open_days = [] if allow_incomplete else [day for each in plans for day in each.open_days]
    if open_days:
        raise InputIncompleteError(
            f"{', '.join(map(str, open_days))} not complete, so the night would end here; ingest the rest with "
            f"--complete-through {open_days[-1]}, or count what is there with --allow-incomplete"
        )


def run(
    step: Annotated[str, typer.Argument(help=", ".join(BY_NAME), autocompletion=lambda: list(BY_NAME))],
    run_id: Annotated[str, typer.Option("--run-id", help="The run that the step belongs to.")],
    day: DayOption = None,
    first: From = None,
    last: To = None,
    allow_incomplete: Annotated[bool, typer.Option("--allow-incomplete")] = False,
) -> None:
    """Run one step of a night; a scheduler retries steps, not nights."""
    from jobs.night import run_step

    days = parse_span(day, first, last) if (day or first or last) else None
    with night_context() as context:
        did = run_step(context, step, run_id, days, allow_incomplete)
    if not did:
        say(f"nothing to do for {step}: this lake has nothing that it is about")
    summarise("run", {"step": step, "run_id": run_id, "did": did})


def status(first: From = None, last: To = None, format_: Format = "table") -> None:
    """Say of each day: rows, complete, provisional or exact or stale, generation, lake version."""
    from daybreak.queries.days import status as day_states

    conf = settings.load()
    bounds = [parse_day(bound) if bound else None for bound in (first, last)]
    with working("looking at the days"):
        found = day_states(lake(conf), lists(conf), *bounds)
    names = ["day", "rows", "is_complete", "state", "generation", "lake_version"]
    show(names, (asdict(each) for each in found), format_)


def report(day: Annotated[str, typer.Option("--day", help="The corrected day.")], format_: Format = "table") -> None:
    """Say how wrong the provisional lists of a corrected day were."""
    from jobs.items import report as job

    conf = settings.load()
    found = job.report(lake(conf).store, conf, parse_day(day))
    if format_ == "json":
        print(json.dumps(found, default=str))
    elif format_ == "csv":
        show(list(found["lists"][0]) if found["lists"] else [], found["lists"], "csv")
    else:
        for line in job.in_words(found):
            print(line)
