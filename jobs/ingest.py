"""Takes files of events into the lake: every row is accepted or refused with its reason.

Reads   files                       JSON lines, CSV, Parquet
Writes  item_events | score_events  one commit per file, recognised by the file's content
        refusals                    one commit per file that has any
        progress                    with --complete-through
Rerun   a file taken in before is skipped
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pyarrow as pa

from daybreak.clock import Clock
from daybreak.crashpoints import crash_point
from daybreak.errors import DaybreakError
from daybreak.events import Kind
from daybreak.intake.contract import Intake, Taken
from daybreak.intake.files import content_hash, read_file
from daybreak.intake.rows import RawBatch
from daybreak.settings import Settings
from daybreak.windows import day_bounds
from lakehouse.stores.store import Store, Transaction
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table


@dataclass
class Ingested:
    """What became of one file: `accepted + refused == read`."""

    file: str
    read: int = 0
    accepted: int = 0
    refused: int = 0
    skipped: bool = False
    refused_by_code: dict[str, int] = field(default_factory=dict)

    def add(self, taken: Taken) -> None:
        """Count a batch."""
        self.read += taken.read
        self.accepted += taken.accepted.num_rows
        self.refused += taken.refused.num_rows
        for code in taken.refused["code"].to_pylist():
            self.refused_by_code[code] = self.refused_by_code.get(code, 0) + 1


@dataclass
class FileRows:
    """The rows of one file: accepted ones are streamed, refused ones kept for afterwards, all of them counted."""

    batches: Iterator[RawBatch]
    intake: Intake
    done: Ingested
    progress: Callable[[int], None]
    refused: list[pa.Table] = field(default_factory=list)
    failure: DaybreakError | None = None
    """Why `accepted` broke off: a store that is fed from it only sees that its rows ended in an error."""

    def accepted(self) -> Iterator[pa.RecordBatch]:
        """What enters the lake, while the file is read.

        Raises:
            UnreadableInputError: the file is not what its name says.
        """
        try:
            for batch in self.batches:
                taken = self.intake.take(batch)
                self.done.add(taken)
                self.progress(taken.read)
                self.refused.append(taken.refused)
                yield from taken.accepted.to_batches()
        except DaybreakError as error:
            self.failure = error
            raise


def ingest_file(
    store: Store,
    settings: Settings,
    clock: Clock,
    path: Path,
    *,
    kind: Kind,
    mapping: Mapping[str, str],
    default_timezone: str | None,
    progress: Callable[[int], None] = lambda _: None,
) -> Ingested:
    """Take one file in: its events in one commit, its refusals in another; a crash between is mended by a rerun.

    `progress` is called with the number of rows of each batch that was read.

    Raises:
        UnreadableInputError: the file is not what its name says; nothing of it is taken in.
    """
    digest = content_hash(path)
    events_id = f"ingest/{digest}"
    refusals_id = events_id if kind is Kind.ITEMS else f"ingest/{kind.value}/{digest}"  # both kinds are refused there
    has_events = store.transaction_version(tables.EVENTS[kind], events_id) is not None
    has_refusals = store.transaction_version(tables.REFUSALS, refusals_id) is not None
    if has_events and has_refusals:
        return Ingested(str(path), skipped=True)
    intake = Intake(
        kind,
        source=f"file:{path.name}#{digest[:12]}",
        received_at=clock(),
        default_timezone=default_timezone,
        future_tolerance=settings.intake.future_tolerance,
    )
    rows = FileRows(read_file(path, mapping=mapping), intake, Ingested(str(path)), progress)
    if has_events:
        deque(rows.accepted(), maxlen=0)  # only to find what is refused
    else:
        append_events(store, tables.EVENTS[kind], rows, Transaction({events_id: 1}))
    crash_point("ingest.events")
    refused = [tables.REFUSALS.schema.empty_table(), *rows.refused]
    store.append(tables.REFUSALS, pa.concat_tables(refused), Transaction({refusals_id: 1}))
    crash_point("ingest.refusals")
    return rows.done


def append_events(store: Store, events: Table, rows: FileRows, transaction: Transaction) -> None:
    """Commit the accepted rows, or nothing.

    Raises:
        UnreadableInputError: the file is not what its name says.
    """
    try:
        store.append(events, pa.RecordBatchReader.from_batches(events.schema, rows.accepted()), transaction)
    except DaybreakError as error:
        raise (rows.failure or error) from None


def declare_complete(store: Store, clock: Clock, kind: Kind, through: date) -> None:
    """Record that every event of `kind` up to the end of `through` has been taken in."""
    row = {
        "source": f"files/{kind.value}",
        "partition": 0,
        "complete_through": day_bounds(through)[1],
        "basis": "declared",
        "recorded_at": clock(),
    }
    store.append(tables.PROGRESS, pa.Table.from_pylist([row], schema=tables.PROGRESS.schema))
