"""Lakes of made-up days: one large day with UUIDs, small days around it. Made once in a run's folder."""

import ctypes
import os
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.data import day_of_events
from daybreak.events import ITEM_EVENT
from daybreak.windows import days_between
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables import registry as tables

DAY = date(2026, 3, 1)
ROWS = 2_500_000
ROWS_BEFORE = 300_000
"""Of the day before: not so few that the night's breaker takes the large day for a doubled feed."""
SMALL_ROWS = 50_000

IN_OPEN, IN_ISDIR = 0x20, 0x40000000
"""From `inotify(7)`."""


def few_days(folder: Path) -> Path:
    """A home whose lake holds 8 days; the large one is the last but one."""
    home = folder / "8-days"
    if not home.exists():
        append_days(home, DAY - timedelta(days=6), DAY + timedelta(days=1))
    return home


def many_days(folder: Path) -> Path:
    """A home whose lake holds the same 8 days, file for file, and 56 before them."""
    home = folder / "64-days"
    if not home.exists():
        shutil.copytree(few_days(folder) / "lake", home / "lake")
        append_days(home, DAY - timedelta(days=62), DAY - timedelta(days=7))
    return home


def append_days(home: Path, first: date, last: date) -> None:
    """Append each day in a commit of its own, as ingesting a file does."""
    store = DeltaRsStore(home / "lake")
    rows = {DAY: ROWS, DAY - timedelta(days=1): ROWS_BEFORE}
    for day in days_between(first, last):
        made = day_of_events(day, rows.get(day, SMALL_ROWS))
        batches = (batch for table in made for batch in table.to_batches())
        store.append(tables.ITEM_EVENTS, pa.RecordBatchReader.from_batches(ITEM_EVENT, batches))


def large_day_file(folder: Path) -> Path:
    """The large day as one Parquet file in the order of its time, for the stream."""
    file = folder / "day.parquet"
    if not file.exists():
        columns = ["event_id", "item_id", "occurred_at", "weight"]
        rows = pa.concat_tables(table.select(columns) for table in day_of_events(DAY, ROWS))
        pq.write_table(rows.sort_by("occurred_at"), file)
    return file


@contextmanager
def opened_files(root: Path) -> Iterator[set[str]]:
    """Data files below `root`, relative to it, that any process opens meanwhile; filled at the end.

    Linux's inotify tells. The Delta log is left out: what is asked is which data a night reads.
    """
    library = ctypes.CDLL(None, use_errno=True)
    handle = library.inotify_init1(os.O_NONBLOCK)
    if handle < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    folders = {}
    for folder in root.rglob("day=*"):
        folders[library.inotify_add_watch(handle, os.fsencode(folder), IN_OPEN)] = folder.relative_to(root)
    seen: set[str] = set()
    try:
        yield seen
        while events := _read(handle):
            seen |= {str(folders[watch] / name) for watch, mask, name in _parsed(events) if not mask & IN_ISDIR}
    finally:
        os.close(handle)


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 1 << 16)
    except BlockingIOError:
        return b""


def _parsed(events: bytes) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(events):
        watch, mask, _, size = struct.unpack_from("iIII", events, at)
        yield watch, mask, os.fsdecode(events[at + 16 : at + 16 + size].rstrip(b"\0"))
        at += 16 + size
