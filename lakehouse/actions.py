"""Bans, voids and decisions about exceptions: the append-only list of actions, and what holds by it now.

Reads   board_actions  newest
Writes  board_actions  one row per action; nothing is ever removed
"""

from datetime import datetime
from uuid import uuid4

import pyarrow as pa

from daybreak.clock import Clock
from lakehouse.stores.store import Store, StoreReader
from lakehouse.tables import registry as tables


def actions(store: StoreReader) -> list[dict[str, object]]:
    """Every action, in the order in which they were taken."""
    return sorted(store.read(tables.BOARD_ACTIONS).to_pylist(), key=lambda row: (row["at"], row["action_id"]))


def record(store: Store, clock: Clock, action: str, *, reason: str, actor: str, **about: object) -> None:
    """Append one action; `about` are the columns of what it is about."""
    row = {"action_id": uuid4().hex, "at": clock(), "action": action, "reason": reason, "actor": actor} | about
    store.append(tables.BOARD_ACTIONS, pa.Table.from_pylist([row], schema=tables.BOARD_ACTIONS.schema))


def banned(store: StoreReader) -> dict[str, datetime]:
    """Players who are banned now, with the instant since when: they are out of every period that ends later."""
    since: dict[str, datetime] = {}
    for row in actions(store):
        player = str(row["player_id"])
        if row["action"] == "ban" and isinstance(row["since"], datetime):
            since[player] = row["since"]
        elif row["action"] == "unban":
            since.pop(player, None)
    return since


def voided(store: StoreReader) -> set[str]:
    """Event ids that count nowhere."""
    return {str(row["event_id"]) for row in actions(store) if row["action"] == "void"}


def decisions(store: StoreReader) -> dict[tuple[str, str, str], str]:
    """(board, period, event id) -> accepted or rejected; the last decision holds."""
    decided = {"accept": "accepted", "reject": "rejected"}
    return {
        (str(row["board"]), str(row["period"]), str(row["event_id"])): decided[str(row["action"])]
        for row in actions(store)
        if row["action"] in decided
    }
