"""Closes a period of a board: final ranks of all players, prizes, one digest; version 1, once and for all.

Reads   player_days, board_actions, progress, runs  newest; the events' source, partition and offset
Writes  season_ranks, season_prizes, board_closes, publications, Redis  (jobs.closing.versions)
Rerun   a closed period gives the same answer; one that was interrupted is completed from what is committed
"""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds

from daybreak.errors import InputIncompleteError, UsageError
from daybreak.rules.boards import Board
from daybreak.rules.seasons import Period
from daybreak.windows import day_before, ranges
from jobs.boards.plan import Ranked
from jobs.closing import amend, season_ranks, versions
from jobs.run.context import Context
from jobs.run.pin import content_version
from jobs.run.run import Run
from jobs.run.staleness import stale_board_days
from lakehouse import actions, closes
from lakehouse.audit import board_recount
from lakehouse.audit.duck import Limits
from lakehouse.closes import Version
from lakehouse.engines.engine import StagedTable
from lakehouse.progress import require_complete
from lakehouse.runs import newest_days, newest_manifest
from lakehouse.stores.store import Store
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

Closed = Version
SHOWN = 3


def close(context: Context, board: str, period: str) -> Closed:
    """The newest version of the closed period; version 1 is made now if there is none.

    Raises:
        UsageError: no such board or period, or one without an end.
        InputIncompleteError: it is not over, or nights have to correct days first.
        CheckFailedError: DuckDB ranks differently; nothing is committed.
        FenceRefusedError: a night or another close is at work; run it again.
    """
    rules = context.boards.board(board)
    span = context.boards.period(rules, period)
    run_id = f"close-{board}-{period}-{uuid4().hex[:8]}"
    with context.lease(run_id) as held:
        store = context.store
        if found := closes.newest_versions(store).get((board, period)):
            versions.publish(context, found)
            return found
        draft = new_draft(rules, span, run_id, context)
        is_resumed = versions.ranked_version(store, board, period) > 0
        if is_resumed:
            draft = replace(draft, lake_version=versions.events_version(store, board, period, 1))
        else:
            draft = rank(context, rules, span, draft)
            held.check()
        made = replace(draft, counted=largest_offsets(store, tables.TABLES[rules.source], draft.lake_version, span))
        made = versions.finish(context, made)
        if is_resumed:  # bans and voids taken since its ranks were made did not know of this period
            made = amend.amend(context, made, run_id, "what came while the close was interrupted")
        return made


def due(context: Context) -> list[tuple[str, str]]:
    """(board, season) of every season that is over, its board's grace too, and that is not closed."""
    closed, now = closes.newest_versions(context.store), context.clock()
    found = []
    for board in context.boards:
        for season in board.seasons:
            end = context.boards.period(board, season).end
            if end is not None and end + board.grace <= now and (board.name, season) not in closed:
                found.append((board.name, season))
    return found


def new_draft(board: Board, period: Period, run_id: str, context: Context) -> Version:
    """Version 1, as far as it is known before anything is ranked.

    Raises:
        UsageError: the period has no end.
    """
    if period.last is None:
        raise UsageError(f"{period.name} has no end, so it cannot be closed; close a day, week, year or season")
    return Version(
        board=board.name,
        period=period.name,
        version=1,
        kind="close",
        content_hash="",
        population=0,
        lake_version=-1,
        counted={},
        accepted=(),
        policy=closes.policy_of(board, period, context.settings.night.dedup_lookback),
        reason="",
        run_id=run_id,
        closed_at=context.clock(),
        day=period.last,
    )


def preview(context: Context, board: str, period: str) -> tuple[Version, pa.Table, pa.Table]:
    """What a close would make, by position and by prize; ranked and checked as there, and nothing is kept of it.

    A period that is closed already gives its newest version.

    Raises:
        UsageError, InputIncompleteError, CheckFailedError: as `close`.
    """
    rules = context.boards.board(board)
    span = context.boards.period(rules, period)
    if found := closes.newest_versions(context.store).get((board, period)):
        ranks = versions.final(context.store, found.key, found.day, found.version)
        return found, ranks, season_ranks.season_prizes(ranks, found.rules)
    draft = new_draft(rules, span, f"preview-{board}-{period}-{uuid4().hex[:8]}", context)
    made, run, staged = stage(context, rules, span, draft)
    ranks = season_ranks.staged_standings(staged)
    shutil.rmtree(run.folder)
    prizes = season_ranks.season_prizes(ranks, rules)
    digest = season_ranks.content_hash(ranks, prizes)
    return replace(made, content_hash=digest, population=ranks.num_rows), ranks, prizes


def rank(context: Context, board: Board, period: Period, draft: Version) -> Version:
    """Rank everybody, check and commit the ranks; the draft with the version of the events.

    Raises:
        InputIncompleteError, CheckFailedError, FenceRefusedError
    """
    made, run, staged = stage(context, board, period, draft)
    versions.append_ranks(context.store, staged, made)
    shutil.rmtree(run.folder)
    return made


def stage(context: Context, board: Board, period: Period, draft: Version) -> tuple[Version, Run, StagedTable]:
    """The final ranks, staged and checked.

    Raises:
        InputIncompleteError, CheckFailedError
    """
    require_over(context, board, period)
    lake_version = require_corrected(context, board, period)
    store = context.store
    version = newest_manifest(store).get(tables.PLAYER_DAYS.name, -1)
    files = store.files(tables.PLAYER_DAYS, version, *period.days) if version >= 0 else []
    days = sorted(store.row_counts(tables.PLAYER_DAYS, version, *period.days)) if version >= 0 else []
    run = versions.closing_run(context, draft.run_id, period, lake_version)
    bans = actions.banned(store)
    ranked = [Ranked(board, period, draft.day)]
    staged = season_ranks.stage_ranks(run, board, ranked, files, days, bans, draft.version)
    found = board_recount.ranks_differences(
        staged.files,
        board_recount.Partials(committed=files),
        board_recount.FinalRanks(board, period, draft.day, draft.version, lake_version),
        bans=bans,
        limits=Limits(spill=run.folder),
    )
    versions.refuse(run, draft, found)
    return replace(draft, lake_version=lake_version), run, staged


def require_over(context: Context, board: Board, period: Period) -> None:
    """Passes once the period's end and the board's grace have passed.

    Raises:
        InputIncompleteError: says from when on it can be closed.
    """
    now = context.clock()
    if period.end is not None and now - board.grace < period.end:
        raise InputIncompleteError(
            f"{board.name} {period.name} ends at {period.end:%Y-%m-%d %H:%M} UTC and can be closed {board.grace} "
            f"later; now it is {now:%Y-%m-%d %H:%M}: run it again then"
        )


def require_corrected(context: Context, board: Board, period: Period) -> int:
    """The version of the board's events from which nights have corrected every day of the period.

    Raises:
        InputIncompleteError: its events have not all arrived, or days are stale or not corrected.
    """
    store = context.store
    own = tables.TABLES[board.source]
    version = store.version(own)
    if version < 0:
        raise InputIncompleteError(f"no {own.name} at {context.settings.lake_root}; take events in first")
    last = period.days[1]
    require_complete(store, context.settings, last, last, tables.KINDS[own.name])
    if due := days_due(context, board, period):
        first, last = due[0]
        shown = ", ".join(f"{one} to {other}" for one, other in due[:SHOWN])
        raise InputIncompleteError(
            f"{board.name} {period.name} cannot be closed: {shown}{' and more' if len(due) > SHOWN else ''} must be "
            f"corrected first: daybreak nightly --from {first} --to {due[-1][1]}"
        )
    return content_version(store, version, own)


def days_due(context: Context, board: Board, period: Period) -> list[tuple[date, date]]:
    """Ranges of days of the period that no night has ranked yet, or that are stale."""
    store, first, last = context.store, *period.days
    with_events = {
        day for table, version in context.lake.board_sources for day in store.row_counts(table, version, first, last)
    }
    stale = stale_board_days(context.lake, first, last, [board])
    return list(ranges(with_events - {*newest_days(store, "boards")} | stale))


def largest_offsets(store: Store, table: Table, version: int, period: Period) -> Mapping[str, int]:
    """`source[partition]` -> largest offset of the period's events, and of the day before, which takes copies away."""
    files = store.files(table, version, day_before(period.days[0]), period.days[1]) if version >= 0 else []
    names = ["source", "partition", "offset"]
    if not files:
        return {}
    read = ds.dataset(files, schema=pa.schema([table.schema.field(name) for name in names]), format="parquet")
    found: dict[str, int] = {}
    for batch in read.to_batches(columns=names):
        groups = pa.Table.from_batches([batch]).group_by(names[:2]).aggregate([("offset", "max")])
        for row in groups.to_pylist():
            key = f"{row['source']}[{row['partition']}]"
            found[key] = max(found.get(key, -1), row["offset_max"])
    return dict(sorted(found.items()))
