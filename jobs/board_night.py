"""The boards' part of a night: pin, derive, check, commit, publish; one step, which is repeated as a whole.

Events of its days that came too late for a closed period are noted at the end.
"""

import json
from collections.abc import Iterable
from datetime import date
from itertools import count

from daybreak.crashpoints import crash_point
from jobs import board_actions, board_exceptions, board_publish, commit
from jobs.board_run import Ranked, pin_boards, rules_of
from jobs.boards import BoardNight
from jobs.check import refuse
from jobs.place import Place
from jobs.runtime import ONE_DAY
from lakehouse import board_recount, checks, tables


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

    The caller holds the lease. Incomplete days are committed and leave Redis alone.

    Raises:
        InputIncompleteError, CheckFailedError, FenceRefusedError, UnreachableError, LakeFailedError
    """
    commit.finish_others(place)  # before anything is derived from what they leave behind
    run = pin_boards(
        place.store,
        place.settings,
        place.clock,
        place.boards,
        unused(place, f"{run_id}.boards"),
        first,
        last,
        allow_incomplete=allow_incomplete,
        also=also,
    )
    night = place.night(run.state)
    night.save()
    checks.start_import()
    boards = BoardNight(night, place.boards, run)
    boards.derive()
    crash_point("boards.derived")
    check(boards)
    commit.commit(night)
    if all(day.is_complete for day in night.pin.days):
        board_publish.publish(boards, place.board_lists)
        crash_point("boards.published")
    board_exceptions.find(place.store, place.clock, first, last)
    night.state.step = "done"
    night.save()
    return boards


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
    rules = {"rules": rules_of(boards.boards, night.settings)}
    night.state.profile = json.dumps(profiles | rules, default=str)
    results = checks.validate(profiles, staged_rows=night.state.staged_rows, event_total=0)
    night.state.checks = json.dumps([result.as_dict() for result in results])
    failures = [result.message for result in results if not result.passed]
    refuse(night, failures + recount_differences(boards))


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
        bans=board_actions.banned(night.store),
        voided=board_actions.voided(night.store),
        ranked={each.key for each in boards.run.ranked},
        limits=board_recount.Limits(spill=night.folder),
    )
