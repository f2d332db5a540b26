"""Takes files of events into the lake: every row is accepted or refused with its reason.

Reads   files                       JSON lines, CSV, Parquet
Writes  item_events | score_events  one commit per file, recognised by the file's content
        refusals                    one commit per file that has any
        progress                    with --complete-through
Rerun   a file taken in before is skipped
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pyarrow as pa

from daybreak.clock import Clock
from daybreak.crashpoints import crash_point
from daybreak.errors import DaybreakError
from daybreak.events import Kind
from daybreak.intake.contract import Intake
from daybreak.intake.files import content_hash, read_file
from daybreak.settings import Settings
from daybreak.windows import day_bounds
from lakehouse.stores.store import Store, Transaction
from lakehouse.tables import registry as tables


@dataclass
class Ingested:
    """What became of one file: `accepted + refused == read`."""

    file: str
    read: int = 0
    accepted: int = 0
    refused: int = 0
    skipped: bool = False
    refused_by_code: dict[str, int] = field(default_factory=dict)


def ingest_file(
    store: Store,
    settings: Settings,
    clock: Clock,
    path: Path,
    *,
    kind: Kind,
    mapping: Mapping[str, str],
    default_timezone: str | None,
    heard: Callable[[int], None] = lambda _: None,
) -> Ingested:
    """Take one file in: its events in one commit, its refusals in another; a crash between is mended by a rerun.

    `heard` is told the number of rows of each batch that was read.

    Raises:
        UnreadableInputError: the file is not what it says; nothing of it is taken in.
    """
    digest = content_hash(path)
    app_id = f"ingest/{digest}"
    done = Ingested(str(path))
    events = tables.EVENTS[kind]
    has_events = store.transaction_version(events, app_id) is not None
    refusals_id = app_id if kind is Kind.ITEMS else f"ingest/{kind.value}/{digest}"  # both kinds are refused there
    has_refusals = store.transaction_version(tables.REFUSALS, refusals_id) is not None
    if has_events and has_refusals:
        done.skipped = True
        return done
    intake = Intake(
        kind,
        source=f"file:{path.name}#{digest[:12]}",
        received_at=clock(),
        default_timezone=default_timezone,
        future_tolerance=settings.intake.future_tolerance,
    )
    refused: list[pa.Table] = []
    unreadable: list[DaybreakError] = []

    def accepted() -> Iterator[pa.RecordBatch]:
        try:
            yield from taken_batches()
        except DaybreakError as error:
            unreadable.append(error)
            raise

    def taken_batches() -> Iterator[pa.RecordBatch]:
        for batch in read_file(path, mapping=mapping):
            taken = intake.take(batch)
            done.read += taken.read
            heard(taken.read)
            done.accepted += taken.accepted.num_rows
            done.refused += taken.refused.num_rows
            if taken.refused.num_rows:
                refused.append(taken.refused)
                for code in taken.refused["code"].to_pylist():
                    done.refused_by_code[code] = done.refused_by_code.get(code, 0) + 1
            yield from taken.accepted.to_batches()

    if has_events:
        for _ in accepted():
            pass
    else:
        reader = pa.RecordBatchReader.from_batches(events.schema, accepted())
        try:
            store.append(events, reader, Transaction({app_id: 1}))
        except DaybreakError as error:
            # the store only sees that its rows ended in an error; say which, nothing was committed
            raise (unreadable[0] if unreadable else error) from None
    crash_point("ingest.events")
    rows = pa.concat_tables(refused) if refused else tables.REFUSALS.schema.empty_table()
    store.append(tables.REFUSALS, rows, Transaction({refusals_id: 1}))
    crash_point("ingest.refusals")
    return done


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
