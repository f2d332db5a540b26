"""What every night and every command about boards works on."""

from dataclasses import dataclass, field
from typing import Self

from daybreak import clock
from daybreak.clock import Clock
from daybreak.rules import boards
from daybreak.rules.boards import Boards
from daybreak.serving.boards import BoardLists
from daybreak.serving.connection import connect
from daybreak.serving.lease import Lease
from daybreak.serving.lists import Lists
from daybreak.settings import Settings
from jobs.run.lake import Lake
from jobs.run.run import Run, RunState
from lakehouse.engines.engine import Engine
from lakehouse.opening import open_engine, open_store
from lakehouse.stores.store import Store


@dataclass(frozen=True)
class Context:
    """Settings, lake, Redis, clock, engine, boards. Ends its engine, which starts on first use, when it is left."""

    settings: Settings
    store: Store
    lists: Lists
    clock: Clock
    engine: Engine
    boards: Boards = field(default_factory=lambda: Boards({}, {}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.stop()

    @property
    def board_lists(self) -> BoardLists:
        """The boards in Redis."""
        return BoardLists(self.lists.client, self.settings.redis)

    @property
    def lake(self) -> Lake:
        """What a night is planned on."""
        return Lake(self.settings, self.store, self.clock, self.boards)

    def run(self, state: RunState) -> Run:
        """A run from its state."""
        return Run(self.settings, self.store, self.clock, state, self.engine)

    def lease(self, run_id: str) -> Lease:
        """The lease that lets one night run at a time; renewed while it is held."""
        return Lease(self.lists.client, "night", run_id, self.settings.night.lease)


def open_context(settings: Settings) -> Context:
    """The context that the settings name; starts no engine, and the embedded Redis where they want one."""
    engine = open_engine(settings)
    store, lists = open_store(settings, engine), Lists(connect(settings), settings.redis)
    return Context(settings, store, lists, clock.now, engine, boards.load(settings.boards_folder))
