"""Generations: how often the content of a day's lists, or of a board in a period, has changed; allotted here alone.

Reads   publications
Writes  publications  a row for each content that is new, before Redis is touched
Rerun   equal content keeps its generation, and adds no row
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa

from jobs.run.run import Pin
from lakehouse.stores.store import Store, StoreReader, Transaction
from lakehouse.tables import registry as tables

NEVER = (0, "")


@dataclass(frozen=True)
class Subject:
    """What has generations of its own: the lists of items of a day, or a board in a period."""

    day: date | None = None
    """Of the lists of items; None for a board, whose day changes from night to night."""
    board: str | None = None
    period: str | None = None

    @property
    def fence(self) -> str:
        """The transaction id by which each generation is given once."""
        return f"publish/{self.day}" if self.board is None else f"publish/{self.board}/{self.period}"


@dataclass(frozen=True)
class Content:
    """What is to be served of a subject: its digest, and the day that it is of or as of."""

    subject: Subject
    day: date
    content_hash: str


def lists_of(day: date) -> Subject:
    """The lists of items of a day."""
    return Subject(day=day)


def board_in(board: str, period: str) -> Subject:
    """A board in a period."""
    return Subject(board=board, period=period)


def newest(store: StoreReader, days: Sequence[date] | None = None) -> dict[Subject, tuple[int, str]]:
    """(generation, content_hash) of everything ever published, or of what was published as of these days."""
    found: dict[Subject, tuple[int, str]] = {}
    for row in store.read(tables.PUBLICATIONS, days=days).to_pylist():
        subject = lists_of(row["day"]) if row["board"] is None else board_in(row["board"], row["period"])
        found[subject] = max(found.get(subject, NEVER), (row["generation"], row["content_hash"]))
    return found


def allot(store: Store, pin: Pin, contents: Collection[Content], now: datetime) -> dict[Subject, int]:
    """The generation of each content: kept while it is equal, else one above the last, recorded first."""
    is_of_items = all(content.subject.board is None for content in contents)
    known = newest(store, [content.day for content in contents] if is_of_items else None)
    changed = [content for content in contents if known.get(content.subject, NEVER)[1] != content.content_hash]
    generations = {content.subject: known.get(content.subject, NEVER)[0] for content in contents}
    generations |= {content.subject: generations[content.subject] + 1 for content in changed}
    record(store, pin, changed, generations, now)
    return generations


def record(
    store: Store, pin: Pin, contents: Iterable[Content], generations: Mapping[Subject, int], now: datetime
) -> None:
    """Append the rows of new contents; the fences give each generation to one run."""
    rows = [
        {
            "day": content.day,
            "generation": generations[content.subject],
            "content_hash": content.content_hash,
            "run_id": pin.run_id,
            "lake_version": pin.lake_version,
            "action": "publish",
            "published_at": now,
            "board": content.subject.board,
            "period": content.subject.period,
        }
        for content in contents
    ]
    if rows:
        fences = {content.subject.fence: generations[content.subject] for content in contents}
        table = pa.Table.from_pylist(rows, schema=tables.PUBLICATIONS.schema)
        store.append(tables.PUBLICATIONS, table, Transaction(fences, pin.run_id))
