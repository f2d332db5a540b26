"""A player's ranks on a board over time: each night's snapshot, and every version of closed periods.

Reads   board_snapshots  at the manifest; season_ranks, board_closes  newest
"""

from typing import Any

import pyarrow.compute as pc

from daybreak.errors import UsageError
from jobs.run.context import Context
from lakehouse.closes import versions
from lakehouse.runs import newest_manifest
from lakehouse.tables import registry as tables

SHOWN = ["day", "period", "position", "rank", "points", "reached_at", "event_count", "population"]
Row = dict[str, Any]


def history(context: Context, board: str, player: str, period: str | None = None) -> list[Row]:
    """One row per snapshot and per version that has the player, by period, day and version.

    `version` is 0 for what a night saw (`day`: as of its end), `state` is exact or closed. Snapshots hold the
    published depth only; a version holds everybody.

    Raises:
        UsageError: no such board.
    """
    closed = {(each.period, each.version) for each in versions(context.store) if each.board == board}
    if board not in context.boards.boards and not closed:
        raise UsageError(f"no board {board!r} in boards.toml, and none of that name was ever closed")
    wanted = (pc.field("board") == board) & (pc.field("player_id") == player)
    if period is not None:
        wanted = wanted & (pc.field("period") == period)
    at = newest_manifest(context.store).get(tables.BOARD_SNAPSHOTS.name)
    rows: list[Row] = []
    if at is not None:
        snapshots = context.store.dataset(tables.BOARD_SNAPSHOTS, at).to_table(columns=SHOWN, filter=wanted)
        rows += [row | {"version": 0, "state": "exact"} for row in snapshots.to_pylist()]
    finals = context.store.dataset(tables.SEASON_RANKS).to_table(
        columns=[*SHOWN, "version", "percentile"], filter=wanted
    )
    rows += [row | {"state": "closed"} for row in finals.to_pylist() if (row["period"], row["version"]) in closed]
    return sorted(rows, key=lambda row: (row["period"], row["day"], row["version"]))
