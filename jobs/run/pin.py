"""Fixes a run to one version of the events, and says what each day looks like there.

Reads   item_events, progress  newest versions; the log, and one column of the look-back slices
Stages  nothing; the pin is kept in the run's state
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from daybreak.clock import Clock
from daybreak.errors import CheckFailedError, FenceRefusedError, InputIncompleteError
from daybreak.settings import Settings
from daybreak.windows import EPOCH, ONE_DAY, day_before, days_between
from jobs.run.run import ATTEMPT_BITS, DayPin, Pin, RunState, parameters_hash
from lakehouse.progress import is_complete_in_all, open_days, require_complete
from lakehouse.stores.store import StoreReader
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

ROWS_MAX = 2**31 - 1
"""Rows of a day that keep every sum of weights (each at most 2^32) inside 63 bits."""

MAINTENANCE = ("OPTIMIZE", "VACUUM")
RECENT_COMMITS = 64
"""Looked through first: the whole history can be long."""

MICROSECONDS_PER_DAY = ONE_DAY // timedelta(microseconds=1)


def lookback_rows(
    store: StoreReader, version: int, first: date, last: date, lookback: timedelta, events: Table = tables.ITEM_EVENTS
) -> dict[date, int]:
    """Rows in the look-back slice at the end of each day from `first` to `last`."""
    files = store.files(events, version, first, last)
    counts: dict[date, int] = {}
    if not files:
        return counts
    threshold = MICROSECONDS_PER_DAY - lookback // timedelta(microseconds=1)
    occurred = pa.schema([tables.ITEM_EVENTS.schema.field("occurred_at")])
    for batch in ds.dataset(files, schema=occurred, format="parquet").to_batches(columns=["occurred_at"]):
        days, rest = np.divmod(batch.column(0).cast(pa.int64()).to_numpy(), MICROSECONDS_PER_DAY)
        for number, count in zip(*np.unique(days[rest >= threshold], return_counts=True), strict=True):
            day = (EPOCH + int(number) * ONE_DAY).date()
            counts[day] = counts.get(day, 0) + int(count)
    return counts


def content_version(store: StoreReader, version: int, events: Table = tables.ITEM_EVENTS) -> int:
    """The newest version of the events up to `version` that changed rows; compaction and vacuum change none.

    A night after an optimize is then about the same events as the night before it.
    """
    for reach in (RECENT_COMMITS, version + 1):
        for commit in reversed(store.commits_after(events, version - reach)):
            if commit.version <= version and not commit.operation.startswith(MAINTENANCE):
                return commit.version
    return version


def next_attempt(
    store: StoreReader, lake_version: int, days: tuple[date, date], fenced: Table = tables.HOURLY_COUNTS
) -> int:
    """The attempt number above every earlier run's of these days at this version of the events.

    Raises:
        FenceRefusedError: a run on a newer version has already committed one of the days.
    """
    attempt = 0
    app_ids = {f"{fenced.name}/{day}": day for day in days_between(*days)}
    for app_id, last in store.transaction_versions(fenced, app_ids).items():
        day = app_ids[app_id]
        if last >> ATTEMPT_BITS > lake_version:
            raise FenceRefusedError(
                f"{day} was already corrected from events at version {last >> ATTEMPT_BITS}, above {lake_version}; "
                "this run is given up, the newer result stays"
            )
        if last >> ATTEMPT_BITS == lake_version:
            attempt = max(attempt, last & ((1 << ATTEMPT_BITS) - 1))
    return attempt + 1


def pin(
    store: StoreReader,
    settings: Settings,
    clock: Clock,
    run_id: str,
    first: date,
    last: date,
    allow_incomplete: bool,
) -> RunState:
    """A new run, fixed to the newest version of the events.

    Raises:
        InputIncompleteError: a day is not complete and that was not allowed.
        CheckFailedError: a day too large to be summed exactly.
    """
    if not allow_incomplete:
        require_complete(store, settings, first, last)
    version = store.version(tables.ITEM_EVENTS)
    if version < 0:
        raise InputIncompleteError(f"no item_events at {settings.lake_root}; take events in with: daybreak ingest FILE")
    named = content_version(store, version)
    days = day_pins(store, settings, [(tables.ITEM_EVENTS, version)], first, last, ["items"])
    return RunState(
        pin=Pin(
            run_id=run_id,
            first=first,
            last=last,
            lake_version=named,
            read_version=version,
            attempt=next_attempt(store, named, (first, last)),
            days=days,
        ),
        started_at=clock(),
        parameters_hash=parameters_hash(settings),
    )


def pin_no_items(settings: Settings, clock: Clock, run_id: str, first: date, last: date) -> RunState:
    """The run of a night in a lake that has boards alone: it says which days it is about, and is over."""
    nothing = Pin(run_id=run_id, first=first, last=last, lake_version=-1, read_version=-1, attempt=0, days=[])
    return RunState(pin=nothing, step="done", started_at=clock(), parameters_hash=parameters_hash(settings))


def day_pins(
    store: StoreReader,
    settings: Settings,
    versions: Sequence[tuple[Table, int]],
    first: date,
    last: date,
    kinds: Sequence[str],
) -> list[DayPin]:
    """What each day looks like in the events at these versions; several tables are added up.

    A day is complete when it is in the events of all `kinds`.

    Raises:
        CheckFailedError: a day too large to be summed exactly.
    """
    before = day_before(first)
    rows: Counter[date] = Counter()
    slices: Counter[date] = Counter()
    for events, version in versions:
        rows.update(store.row_counts(events, version, before, last))
        slices.update(lookback_rows(store, version, before, last, settings.night.dedup_lookback, events))
    first_open = [open_days(store, settings, kind) for kind in kinds]
    days = [
        DayPin(
            day=day,
            rows=rows[day],
            lookback_rows=slices[day_before(day)],
            previous_rows=rows[day_before(day)],
            is_complete=is_complete_in_all(first_open, day),
        )
        for day in days_between(first, last)
    ]
    if largest := [day for day in days if day.rows > ROWS_MAX]:
        raise CheckFailedError(f"{largest[0].day} has {largest[0].rows} rows, above {ROWS_MAX}; split it by source")
    return days
