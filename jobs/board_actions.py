"""Bans, voids and decisions about exceptions: read from the append-only list of actions.

Reads   board_actions  newest
"""

from datetime import datetime

from lakehouse import tables
from lakehouse.store import Store


def actions(store: Store) -> list[dict[str, object]]:
    """Every action, in the order in which they were taken."""
    return sorted(store.read(tables.BOARD_ACTIONS).to_pylist(), key=lambda row: (row["at"], row["action_id"]))


def banned(store: Store) -> dict[str, datetime]:
    """Players who are banned now, with the instant since when: they are out of every period that ends later."""
    since: dict[str, datetime] = {}
    for row in actions(store):
        player = str(row["player_id"])
        if row["action"] == "ban" and isinstance(row["since"], datetime):
            since[player] = row["since"]
        elif row["action"] == "unban":
            since.pop(player, None)
    return since


def voided(store: Store) -> set[str]:
    """Event ids that count nowhere."""
    return {str(row["event_id"]) for row in actions(store) if row["action"] == "void"}
