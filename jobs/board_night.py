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
from jobs.boards.derive import BoardNight
from jobs.boards.plan import Ranked, closed_periods, newest_ranked_day, pin_boards
from jobs.publishing import boards as board_publish
from jobs.run import commit
from jobs.run.context import Place
from jobs.run.run import ONE_DAY, RunState, saved_runs
from jobs.run.staleness import rules_of
from lakehouse import actions
from lakehouse.audit import board_recount, checks
from lakehouse.tables import registry as tables


def board_night(
    place: Place,
    run_id: str,
    first: date,
    last: date,
    *,
    allow_incomplete: bool = False,
    also: Iterable[Ranked] = (),
) -> BoardNight:
    """Correct the days on every board, and rank the periods that hold one of them, and `also` those named.

    The caller holds the lease. Incomplete days are committed; periods that hold one are not published. What an
    earlier run committed and could not publish is published with it.

    Raises:
        InputIncompleteError, CheckFailedError, FenceRefusedError, UnreachableError, LakeFailedError
    """
    commit.finish_others(place)  # before anything is derived from what they leave behind
    left = unpublished(place)
    run = pin_boards(
        place.store,
        place.settings,
        place.clock,
        place.boards,
        unused(place, f"{run_id}.boards"),
        first,
        last,
        allow_incomplete=allow_incomplete,
        also=[*also, *again(place, left, last)],
    )
    night = place.night(run.state)
    night.save()
    checks.start_import()
    boards = BoardNight(night, place.boards, run)
    boards.derive()
    crash_point("boards.derived")
    check(boards)
    commit.commit(night)
    board_publish.publish(boards, place.board_lists)
    crash_point("boards.published")
    for state in (*left, night.state):
        state.step = "done"
        place.night(state).save()
    return boards


def unpublished(place: Place) -> list[RunState]:
    """Runs of boards whose manifest landed and whose publication did not."""
    return [state for state in saved_runs(place.settings) if state.pin.kind == "boards" and state.step == "committed"]


def again(place: Place, left: Iterable[RunState], last: date) -> list[Ranked]:
    """What those runs ranked and boards.toml still does, as of now."""
    newest, closed = newest_ranked_day(place.store, last), closed_periods(place.store)
    found = []
    for name, period in sorted({key[1:] for state in left for key in state.ranked} - closed):
        with suppress(UsageError):  # it is ranked no more
            board = place.boards.board(name)
            span = place.boards.period(board, period)
            found.append(Ranked(board, span, min(span.days[1], newest)))
    return found


def unused(place: Place, run_id: str) -> str:
    """`run_id`, numbered where a run of that id is in a manifest already: a repeated step is a run of its own."""
    known = {str(row["run_id"]) for row in place.store.read(tables.RUNS).select(["run_id"]).to_pylist()}
    numbered = (f"{run_id}.{number}" for number in count(2))
    return run_id if run_id not in known else next(each for each in numbered if each not in known)


def check(boards: BoardNight) -> None:
    """Passes when all that was staged holds.

    Raises:
        CheckFailedError: naming each check that failed; the staging is kept for a look.
    """
    night = boards.night
    with night.engine.failing_as("the profile of the staged boards"):
        profiles = {table.name: checks.profile(night.engine, night.staged(table), table) for table in night.tables}
    rules = {"rules": rules_of(boards.boards, night.settings), "started_at": str(night.state.started_at)}
    night.state.profile = json.dumps(profiles | rules, default=str)
    results = checks.validate(profiles, staged_rows=night.state.staged_rows, event_total=0)
    night.state.checks = json.dumps([result.as_dict() for result in results])
    failures = [result.message for result in results if not result.passed]
    night.refuse(failures + recount_differences(boards))


def recount_differences(boards: BoardNight) -> list[str]:
    """What DuckDB counts and ranks differently, from the events and the partials themselves."""
    night, pin = boards.night, boards.night.pin
    first = pin.first - ONE_DAY if pin.first > date.min else pin.first
    return board_recount.differences(
        event_files={
            events.name: night.store.files(events, version, first, pin.last) if version >= 0 else []
            for events, version in map(boards.pinned, sorted({board.source for board in boards.boards}))
        },
        staged={table.name: night.staged_files(table) for table in night.tables},
        committed_days=boards.committed_days() if boards.run.ranked else [],
        calendar=boards.calendar(),
        boards=list(boards.boards),
        labels={board.name: boards.boards.labels(board) for board in boards.boards},
        first=pin.first,
        last=pin.last,
        lookback=night.settings.night.dedup_lookback,
        bans=actions.banned(night.store),
        voided=actions.voided(night.store),
        ranked={each.key for each in boards.run.ranked},
        limits=board_recount.Limits(spill=night.folder),
    )
