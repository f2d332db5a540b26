"""What a ban would change, before anybody is banned: nothing is recorded, committed or published.

Reads   player_days  at the manifest, events of closed periods, season_ranks
Stages  season_ranks  with and without the player; removed at the end
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from daybreak.rules.boards import Board
from jobs.boards.plan import Ranked
from jobs.closing import season_ranks, versions
from jobs.closing.amend import rank_events
from jobs.closing.bans import closed_with, open_periods, played_days, require_player, require_zone
from jobs.run.context import Context
from jobs.run.pin import content_version
from lakehouse import actions
from lakehouse.closes import Version, newest_versions
from lakehouse.runs import newest_days, newest_manifest
from lakehouse.tables import registry as tables


@dataclass(frozen=True)
class WouldChange:
    """What would change in one period of a board."""

    board: str
    period: str
    version: int
    """The version of the closed period; 0 while it is open."""
    changes: pa.Table
    """As in amended_ranks: every player whose rank, points or prizes would change. Prizes of an open period are
    those of a close on this day."""


def what_if_ban(context: Context, player: str, since: datetime) -> list[WouldChange]:
    """What banning the player would change, by board and period; periods that stay as they are are left out.

    Raises:
        UsageError: nobody has that id, or `since` has no time zone.
    """
    require_zone(since)
    require_player(context, player)
    played = played_days(context, player)
    closed = newest_versions(context.store)
    bans = actions.banned(context.store)
    more = bans | {player: since.astimezone(UTC)}
    starts = [each for each in (since, bans.get(player)) if each]
    open_now = open_periods(context.boards, played, min(starts), newest_days(context.store, "boards"))
    found: list[WouldChange] = []
    for name in sorted({each.board.name for each in open_now}):
        ranked = [each for each in open_now if each.board.name == name and each.key[1:] not in closed]
        if ranked:
            found += open_changes(context, ranked[0].board, ranked, bans, more)
    for each in closed_with(context, player, played, min(starts)):
        found.append(closed_changes(context, each, more))
    return sorted((each for each in found if each.changes.num_rows), key=lambda each: (each.board, each.period))


def open_changes(
    context: Context, board: Board, ranked: Sequence[Ranked], bans: Mapping[str, datetime], more: Mapping[str, datetime]
) -> list[WouldChange]:
    """What would change in open periods of a board, all ranked at once."""
    store = context.store
    version = newest_manifest(store)[tables.PLAYER_DAYS.name]
    days = min(each.period.days[0] for each in ranked), max(each.as_of for each in ranked)
    files = store.files(tables.PLAYER_DAYS, version, *days)
    known: list[date] = sorted(store.row_counts(tables.PLAYER_DAYS, version, *days))
    sides = []
    for out in (bans, more):
        run_id = f"what-if-{uuid4().hex[:8]}"
        run = versions.closing_run(context, run_id, ranked[0].period, 0)
        staged = season_ranks.stage_ranks(run, board, ranked, files, known, out, 0)
        sides.append(season_ranks.staged_standings(staged, also=["period"]))
        shutil.rmtree(run.folder)
    found = []
    for each in ranked:
        name = each.period.name
        old, new = (side.filter(pc.equal(side["period"], name)) for side in sides)
        prizes = [season_ranks.season_prizes(side, board) for side in (old, new)]
        found.append(WouldChange(board.name, name, 0, season_ranks.changes(old, prizes[0], new, prizes[1])))
    return found


def closed_changes(context: Context, closed: Version, bans: Mapping[str, datetime]) -> WouldChange:
    """What would change in a closed period."""
    store, events = context.store, tables.TABLES[closed.rules.source]
    old = versions.final(store, closed.key, closed.day, closed.version)
    read_version = store.version(events)
    lake_version = content_version(store, read_version, events)
    draft = replace(closed, version=closed.version + 1, lake_version=lake_version)
    run = versions.closing_run(context, f"what-if-{uuid4().hex[:8]}", closed.span, lake_version)
    new = season_ranks.staged_standings(rank_events(context, run, draft, read_version, bans))
    shutil.rmtree(run.folder)
    prizes = [season_ranks.season_prizes(side, closed.rules) for side in (old, new)]
    changed = season_ranks.changes(old, prizes[0], new, prizes[1])
    return WouldChange(closed.board, closed.period, closed.version, changed)
