"""Publishes the boards that a run ranked: each (board, period) by one atomic swap.

Reads   board_snapshots, board_histograms  as staged and committed by this run
Writes  publications  a row when a board's content changes, before Redis is touched
        Redis         boards that are open, recent, or served already; what is ranked no more is taken away
Rerun   equal content keeps its generation
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from daybreak.crashpoints import crash_point
from daybreak.errors import UsageError
from daybreak.serving.boards import BoardLists, BoardMeta, Place, content_hash
from jobs.boards.derive import BoardRun
from jobs.boards.plan import Ranked
from jobs.publishing.generations import Content, allot, board_in
from jobs.run.run import Pin
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

RECENT = timedelta(days=35)
"""A period that ended longer ago than this, before the newest corrected day, is read from the lake."""


@dataclass(frozen=True)
class BoardContent:
    """One board in one period, as it is to be served."""

    ranked: Ranked
    places: Sequence[Place]
    histogram: Sequence[tuple[Decimal, int]]
    content_hash: str

    @property
    def population(self) -> int:
        """Players on the board."""
        return sum(players for _, players in self.histogram)

    @property
    def content(self) -> Content:
        """What its generation goes by."""
        return Content(board_in(self.ranked.board.name, self.ranked.period.name), self.ranked.as_of, self.content_hash)


def publish(boards: BoardRun, lists: BoardLists) -> int:
    """Publish what the run ranked, and return how many boards that were.

    Raises:
        FenceRefusedError: Redis holds a newer one.
    """
    run = boards.run
    chosen = to_publish(boards, lists)
    contents = list(board_contents(boards, chosen))
    generations = allot(run.store, run.pin, [each.content for each in contents], run.clock())
    crash_point("boards.publications")
    for content in contents:
        meta = meta_of(content, run.pin, generations[content.content.subject])
        lists.publish(meta.board, meta.period, content.places, content.histogram, meta)
    retire(boards, lists)
    return len(contents)


def to_publish(boards: BoardRun, lists: BoardLists) -> list[Ranked]:
    """The open and recent periods of the run, and those that Redis serves already; none with an incomplete day."""
    open_days = [day.day for day in boards.run.pin.days if not day.is_complete]
    served = {(board.name, period) for board in boards.boards for period in lists.periods(board.name)}
    newest = max((each.as_of for each in boards.plan.ranked), default=date.min)
    oldest = newest - RECENT if newest - date.min > RECENT else date.min
    return [
        each
        for each in boards.plan.ranked
        if (each.as_of >= oldest or (each.board.name, each.period.name) in served)
        and not any(each.period.holds(day) and day <= each.as_of for day in open_days)
    ]


def retire(boards: BoardRun, lists: BoardLists) -> list[tuple[str, str]]:
    """Take away what Redis serves and boards.toml ranks no more; closed periods stay. Returns what was taken."""
    gone = []
    for name in lists.names():
        for period in lists.periods(name):
            try:
                boards.boards.period(boards.boards.board(name), period)
            except UsageError:
                if (name, period) not in boards.plan.closed:
                    lists.remove(name, period)
                    gone.append((name, period))
    return gone


def board_contents(boards: BoardRun, chosen: Sequence[Ranked]) -> Iterator[BoardContent]:
    """Places and histogram of each of the chosen, from the staged rows that this run committed."""
    places: dict[tuple[date, str, str], list[Place]] = defaultdict(list)
    for row in staged_rows(boards, tables.BOARD_SNAPSHOTS, chosen).to_pylist():
        places[row["day"], row["board"], row["period"]].append(
            Place(
                position=row["position"],
                rank=row["rank"],
                player_id=row["player_id"],
                points=row["points"],
                reached_at=row["reached_at"],
                event_count=row["event_count"],
            )
        )
    histograms: dict[tuple[date, str, str], list[tuple[Decimal, int]]] = defaultdict(list)
    for row in staged_rows(boards, tables.BOARD_HISTOGRAMS, chosen).to_pylist():
        histograms[row["day"], row["board"], row["period"]].append((row["points"], row["players"]))
    for each in chosen:
        ordered = sorted(places[each.key], key=lambda place: place.position)
        histogram = histograms[each.key]
        yield BoardContent(each, ordered, histogram, content_hash(ordered, histogram))


def staged_rows(boards: BoardRun, table: Table, chosen: Sequence[Ranked]) -> pa.Table:
    """The staged rows of the chosen."""
    days = sorted({each.as_of for each in chosen})
    rows = boards.run.staged_rows(table, days)
    periods = pa.array(sorted({each.period.name for each in chosen}), pa.string())
    return rows.filter(pc.is_in(rows["period"], periods))


def meta_of(content: BoardContent, pin: Pin, generation: int) -> BoardMeta:
    """What Redis says of an open board."""
    board = content.ranked.board
    return BoardMeta(
        board=board.name,
        period=content.ranked.period.name,
        state="exact",
        generation=generation,
        version=0,
        as_of=content.ranked.as_of,
        run_id=pin.run_id,
        lake_version=pin.lake_version,
        population=content.population,
        depth=board.depth,
        content_hash=content.content_hash,
        order=board.order,
        decimals=board.decimals,
        rank_style=board.rank_style,
    )
