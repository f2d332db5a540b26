"""What boards go by, as DuckDB needs it: the boards and their labels, banned players, void events."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from daybreak.rules.boards import Board
from daybreak.windows import to_micros
from lakehouse.audit.duck import create_table

FILTERED = ("region", "match_type", "category", "season")
BOARDS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("board", "source", "semantics", "reached_by", "rank_style")),
        *(pa.field(name, pa.int64()) for name in ("sign", "depth")),
        *(pa.field(f"break_{n}", pa.string()) for n in (1, 2, 3)),
        *(pa.field(name, pa.list_(pa.string())) for name in FILTERED),
    ]
)
LABELS = pa.schema([("board", pa.string()), ("label", pa.string())])
BANS = pa.schema([("player_id", pa.string()), ("since_us", pa.int64())])
VOIDS = pa.schema([("event_id", pa.string())])


@dataclass(frozen=True)
class Rules:
    """By which rules events count and players are ranked."""

    boards: Sequence[Board]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By board, the season labels of its partials; without them no event counts for it."""
    bans: Mapping[str, datetime] = field(default_factory=dict)
    """By player, since when: out of every period that ends later."""
    voided: Collection[str] = ()
    """Event ids that count nowhere."""

    def create(self, duck: Any) -> None:
        """Make the tables `boards`, `labels`, `bans` and `voids`."""
        create_table(duck, "boards", BOARDS, list(map(_row, self.boards)))
        create_table(duck, "labels", LABELS, list(self._labels()))
        create_table(duck, "bans", BANS, [(player, to_micros(since)) for player, since in self.bans.items()])
        create_table(duck, "voids", VOIDS, [(event,) for event in self.voided])

    def _labels(self) -> Iterator[tuple[str, str]]:
        for board, labels in self.labels.items():
            for label in labels:
                yield board, label


def _row(board: Board) -> tuple[object, ...]:
    breaks = [*board.order_within_equals[:-1], None, None, None][:3]
    chosen = board.filter.columns()
    row = (board.name, board.source, board.semantics, board.reached_by, board.rank_style, board.sign, board.depth)
    return (*row, *breaks, *(list(chosen.get(name, ())) for name in FILTERED))
