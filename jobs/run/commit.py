"""Commits what a run staged and writes the manifest, the switch that analysts' views follow.

Reads   staging of the run
Writes  hourly_counts, daily_counts, top_lists  one fenced commit each
        runs                                    the manifest, last
Rerun   the same rows again under a newer attempt
"""

from daybreak.crashpoints import crash_point
from daybreak.errors import CheckFailedError, FenceRefusedError
from daybreak.log import log
from daybreak.settings import Settings
from jobs.run.context import Context
from jobs.run.run import DayPin, Run, RunState, code_version, saved_runs
from lakehouse import runs
from lakehouse.engines.engine import StagedTable
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table


def commit(run: Run) -> None:
    """Replace the run's days in every derived table, then write the manifest.

    Raises:
        FenceRefusedError: a newer run has committed one of the days, or another was never finished.
        CheckFailedError: the staging is not what was checked.
    """
    refuse_foreign_commits(run)
    run.state.step = "committing"
    run.save()
    crash_point("night.committing")
    commit_tables(run)
    refuse_foreign_commits(run)
    finish(run)


def commit_tables(run: Run) -> None:
    """Replace the run's days in every derived table, where this run has not yet done so."""
    for table in run.tables:
        if not holds_our_commit(run, table):
            span = run.span(table)
            run.store.replace(table, *span, staged_rows(run, table), run.pin.transaction(table, span))
        crash_point(f"night.committed.{table.name}")


def finish(run: Run) -> None:
    """Write the manifest of a run whose tables are all committed."""
    write_manifest(run)
    crash_point(f"{'night' if run.pin.kind == 'items' else 'boards'}.manifest")
    run.state.step = "committed"
    run.save()


def holds_our_commit(run: Run, table: Table) -> bool:
    """Whether this very run has already replaced its days in `table` and nothing newer has.

    A claim fences the days off and changes no row, so it is no such commit: the replace takes it up.
    """
    due = run.pin.transaction(table, run.span(table)).versions
    return run.store.transaction_versions(table, due) == due and any(
        commit.run_id == run.pin.run_id for commit in run.store.commits_after(table, -1)
    )


def staged_rows(run: Run, table: Table) -> StagedTable:
    """What the run staged; the store checks that it has the registry's schema and the run's days.

    Raises:
        CheckFailedError: the staging is not what was checked.
    """
    files = run.staged_files(table)
    rows = run.staged_row_count(table)
    if rows != run.state.staged_rows.get(table.name):
        raise CheckFailedError(f"staging of {table.name} in {run.folder} is not what was checked; run the night again")
    return StagedTable(table, run.folder / table.name, rows, tuple(files))


def write_manifest(run: Run) -> None:
    """Append the run to `runs`, unless it is there already."""
    pin, state = run.pin, run.state
    finished = runs.FinishedRun(
        run_id=pin.run_id,
        kind=pin.kind,
        first_day=pin.first,
        last_day=pin.last,
        lake_version=pin.lake_version,
        attempt=pin.attempt,
        table_versions=manifest_versions(run),
        days=tuple(counted_day(day, state.distinct.get(day.day, 0)) for day in pin.days),
        profile=state.profile,
        checks=state.checks,
        code_version=code_version(),
        parameters_hash=state.parameters_hash,
        committed_at=run.clock(),
        started_at=state.started_at,
        rules=state.rules,
    )
    runs.append(run.store, finished)


def counted_day(day: DayPin, distinct: int) -> runs.RunDay:
    """A pinned day with what was counted of it; a run of boards counts no distinct events."""
    return runs.RunDay(**day.model_dump(), distinct=distinct, duplicate=day.rows - distinct)


def manifest_versions(run: Run) -> dict[str, int]:
    """The manifest after this run: its tables as they are now, everything else as the manifest before had it."""
    pin = run.pin
    events = tables.ITEM_EVENTS if pin.kind == "items" else tables.SCORE_EVENTS
    read = {events.name: pin.read_version} if pin.read_version >= 0 else {}
    return runs.newest_manifest(run.store) | {table.name: run.store.version(table) for table in run.tables} | read


def refuse_foreign_commits(run: Run) -> None:
    """Keep a half-committed night of somebody else out of the manifest.

    Raises:
        FenceRefusedError: another run has committed since the last manifest and is not finished.
    """
    known = runs.known_ids(run.store)
    versions = runs.newest_manifest(run.store)
    for table in run.tables:
        ours = run.span(table)
        for found in run.store.commits_after(table, versions.get(table.name, -1)):
            if found.run_id is None or found.run_id in known or found.run_id == run.pin.run_id:
                continue
            if found.days and ours[0] <= found.days[0] and found.days[1] <= ours[1]:
                continue  # ours replaces them
            first, last = found.days or ("unknown days", "unknown days")
            raise FenceRefusedError(
                f"run {found.run_id} has committed {table.name} of {first} to {last} and was never finished; "
                f"correct those days first: daybreak nightly --from {first} --to {last}"
            )


def unfinished(settings: Settings, but: str | None) -> list[RunState]:
    """Runs that died between their first commit and their manifest, oldest first; `but` is left out."""
    return [state for state in saved_runs(settings) if state.step == "committing" and state.pin.run_id != but]


def finish_others(context: Context, but: str | None = None) -> list[str]:
    """Roll dead runs forward from their checked staging, all of them save the run `but`, and say so.

    One that a newer run has overtaken, or whose staging has changed, is abandoned; if it left a table half
    committed, `refuse_foreign_commits` names its days.

    Returns the run ids that were finished.
    """
    whole = []
    for state in unfinished(context.settings, but):
        other = context.run(state)
        try:
            commit_tables(other)
            whole.append(other)
        except (FenceRefusedError, CheckFailedError) as error:
            state.step = "abandoned"
            other.save()
            log.warning(f"gave up a run that had died while it committed: {error}", **named(state))
    for other in whole:  # only now: a manifest must not name another's half-committed tables
        finish(other)
        log.info("finished a run that had died while it committed", **named(other.state))
    return [other.pin.run_id for other in whole]


def named(state: RunState) -> dict[str, str]:
    """What names a run in a line of the log."""
    return {"run_id": state.pin.run_id, "days": days_of(state)}


def days_of(state: RunState) -> str:
    """The run's days, for messages."""
    first, last = state.pin.first, state.pin.last
    return str(first) if first == last else f"{first} to {last}"
