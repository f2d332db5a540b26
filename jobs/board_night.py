"""The boards' part of a night: pin, derive, check, commit, publish; one step, which is repeated as a whole.

What came too late for a closed period is noted by whoever runs it (`jobs.closing.exceptions`).
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from itertools import count

from daybreak.crashpoints import crash_point
from daybreak.errors import UsageError
from daybreak.windows import day_before
from jobs.boards.derive import BoardRun
from jobs.boards.plan import Ranked, newest_ranked_day, pin_boards
from jobs.publishing import boards as board_publish
from jobs.run import commit
from jobs.run.context import Context
from jobs.run.run import RunState, saved_runs
from lakehouse import actions, runs
from lakehouse.audit import board_recount, checks
from lakehouse.audit.board_rules import Rules
from lakehouse.audit.duck import Limits
from lakehouse.audit.first_copies import CountedDays
from lakehouse.closes import closed_periods


def board_night(
    context: Context,
    run_id: str,
    first: date,
    last: date,
    *,
    allow_incomplete: bool = False,
    also: Iterable[Ranked] = (),
) -> BoardRun:
    """Correct the days on every board, and rank the periods that hold one of them, and `also` those named.

    The caller holds the lease. Incomplete days are committed; periods that hold one are not published. What an
    earlier run committed and could not publish is published with it.

    Raises:
        InputIncompleteError, CheckFailedError, FenceRefusedError, UnreachableError, LakeFailedError
    """
    commit.finish_others(context)  # before anything is derived from what they leave behind
    left = unpublished(context)
    plan = pin_boards(
        context.lake,
        unused(context, f"{run_id}.boards"),
        first,
        last,
        allow_incomplete=allow_incomplete,
        also=[*also, *again(context, left, last)],
    )
    run = context.run(plan.state)
    run.save()
    checks.start_import()
    boards = BoardRun(run, context.boards, plan)
    boards.derive()
    crash_point("boards.derived")
    check(boards)
    commit.commit(run)
    board_publish.publish(boards, context.board_lists)
    crash_point("boards.published")
    for state in (*left, run.state):
        state.step = "done"
        context.run(state).save()
    return boards


def unpublished(context: Context) -> list[RunState]:
    """Runs of boards whose manifest landed and whose publication did not."""
    return [state for state in saved_runs(context.settings) if state.pin.kind == "boards" and state.step == "committed"]


def again(context: Context, left: Iterable[RunState], last: date) -> list[Ranked]:
    """What those runs ranked and boards.toml still does, as of now."""
    newest, closed = newest_ranked_day(context.store, last), closed_periods(context.store)
    found = []
    for name, period in sorted({key[1:] for state in left for key in state.ranked} - closed):
        with suppress(UsageError):  # it is ranked no more
            board = context.boards.board(name)
            span = context.boards.period(board, period)
            found.append(Ranked(board, span, min(span.days[1], newest)))
    return found


def unused(context: Context, run_id: str) -> str:
    """`run_id`, numbered where a run of that id is in a manifest already: a repeated step is a run of its own."""
    known = runs.known_ids(context.store)
    numbered = (f"{run_id}.{number}" for number in count(2))
    return run_id if run_id not in known else next(each for each in numbered if each not in known)


def check(boards: BoardRun) -> None:
    """Passes when all that was staged holds.

    Raises:
        CheckFailedError: naming each check that failed; the staging is kept for a look.
    """
    run = boards.run
    with run.engine.failing_as("the profile of the staged boards"):
        profiles = {table.name: checks.profile(run.engine, run.staged(table), table) for table in run.tables}
    run.state.profile = json.dumps(profiles, default=str)
    results = checks.validate(profiles, staged_rows=run.state.staged_rows, event_total=0)
    run.state.checks = json.dumps([result.as_dict() for result in results])
    failures = [result.message for result in results if not result.passed]
    run.refuse(failures + recount_differences(boards))


def recount_differences(boards: BoardRun) -> list[str]:
    """What DuckDB counts and ranks differently, from the events and the partials themselves."""
    run, pin = boards.run, boards.run.pin
    first = day_before(pin.first)
    return board_recount.differences(
        event_files={
            events.name: run.store.files(events, version, first, pin.last) if version >= 0 else []
            for events, version in map(boards.pinned, sorted({board.source for board in boards.boards}))
        },
        staged={table.name: run.staged_files(table) for table in run.tables},
        rules=Rules(
            list(boards.boards),
            labels={board.name: boards.boards.labels(board) for board in boards.boards},
            bans=actions.banned(run.store),
            voided=actions.voided(run.store),
        ),
        days=CountedDays(pin.first, pin.last, run.settings.night.dedup_lookback),
        ranking=board_recount.Ranking(
            boards.calendar(),
            boards.committed_days() if boards.plan.ranked else [],
            {each.key for each in boards.plan.ranked},
        ),
        limits=Limits(spill=run.folder),
    )
