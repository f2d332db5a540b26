"""The lake as a night is planned on it, before anything is started: the settings, the tables, the clock, the boards."""

from dataclasses import dataclass

from daybreak.clock import Clock
from daybreak.rules.boards import Boards
from daybreak.settings import Settings
from lakehouse.runs import RunKind
from lakehouse.stores.store import StoreReader
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table


@dataclass(frozen=True)
class Lake:
    """What planning needs and no more: no engine, no Redis."""

    settings: Settings
    store: StoreReader
    clock: Clock
    boards: Boards

    @property
    def board_sources(self) -> list[tuple[Table, int]]:
        """The event tables that any board reads and that exist, with their newest versions."""
        used = {board.source for board in self.boards}
        versions = [(table, self.store.version(table)) for table in tables.EVENTS.values() if table.name in used]
        return [(table, version) for table, version in versions if version >= 0]

    @property
    def kinds(self) -> tuple[RunKind, ...]:
        """What a night here derives: items where there ever was an event of one, boards where one has events.

        Where there is neither it is about items, and says that they are missing.
        """
        has_boards = bool(self.board_sources)
        has_items = self.store.version(tables.ITEM_EVENTS) >= 0
        items: tuple[RunKind, ...] = ("items",) if has_items or not has_boards else ()
        return (*items, "boards") if has_boards else items
