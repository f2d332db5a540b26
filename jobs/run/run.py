"""What a night knows: its run, its pins, its engine, its staging. Jobs see no more than this.

A run's state lies beside its staging in `run.json`, so that each step can be run alone with `--run-id`.
"""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pydantic import BaseModel

from daybreak.clock import Clock
from daybreak.errors import CheckFailedError, UsageError
from daybreak.settings import Settings
from daybreak.windows import day_before, days_between
from lakehouse.engines.scratch import STAGING_HINT, writing
from lakehouse.runs import RunKind
from lakehouse.stores.store import Store, Transaction
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.engines.engine import Engine, StagedTable

ATTEMPT_BITS = 16
FILES_AT_ONCE = 4000


Stage = Literal["pinned", "derived", "checked", "committing", "committed", "abandoned", "done"]
"""How far a run has come."""


class DayPin(BaseModel):
    """The input of one day as this run saw it; what staleness is judged by."""

    day: date
    rows: int
    lookback_rows: int
    previous_rows: int
    is_complete: bool


class Pin(BaseModel):
    """What a run is fixed to before it reads anything."""

    run_id: str
    kind: RunKind = "items"
    first: date
    last: date
    lake_version: int
    """The newest version of the events that changed rows: what names this run's input."""
    read_version: int
    """The version that is read: the same rows, compacted since or not. Of boards: of the score events."""
    item_version: int = -1
    """Of boards: the version of the item events that is read."""
    attempt: int
    days: list[DayPin]

    @property
    def fence(self) -> int:
        """Transaction version of the run's commits: newer events win, then newer attempts."""
        return (self.lake_version << ATTEMPT_BITS) + self.attempt

    def transaction(self, table: Table, span: tuple[date, date] | None = None) -> Transaction:
        """The fence of a commit of the run's days, or those of `span`, to `table`: one id per day."""
        first, last = span or (self.first, self.last)
        days = days_between(first, last)
        return Transaction({f"{table.name}/{day}": self.fence for day in days}, self.run_id, (first, last))


class RunState(BaseModel):
    """Everything a later step needs; saved after each step."""

    pin: Pin
    step: Stage = "pinned"
    staged_rows: dict[str, int] = {}
    spans: dict[str, tuple[date, date]] = {}
    """First and last day that a table is replaced for, where these are not the run's own."""
    ranked: list[tuple[date, str, str]] = []
    """(as of, board, period) that a run of boards ranks."""
    distinct: dict[date, int] = {}
    rules: dict[str, str] = {}
    """Board -> digest of the rules that shape its partials."""
    profile: str = "{}"
    checks: str = "[]"
    started_at: datetime
    parameters_hash: str


@dataclass
class Run:
    """One run over the days `pin.first` to `pin.last`. Jobs read and stage through it; none commits."""

    settings: Settings
    store: Store
    clock: Clock
    state: RunState
    engine: "Engine"

    @property
    def pin(self) -> Pin:
        return self.state.pin

    @property
    def has_items(self) -> bool:
        """Whether the run is about items; the run of a lake that has boards alone pins none."""
        return self.pin.kind == "items" and self.pin.read_version >= 0

    @property
    def tables(self) -> tuple[Table, ...]:
        """What the run derives and commits, in this order."""
        return tables.DERIVED if self.pin.kind == "items" else tables.BOARD_TABLES

    def span(self, table: Table) -> tuple[date, date]:
        """The first and the last day that the run replaces in `table`."""
        return self.state.spans.get(table.name, (self.pin.first, self.pin.last))

    @property
    def folder(self) -> Path:
        return run_folder(self.settings, self.pin.run_id)

    def pinned_events(self) -> "DataFrame":
        """Item events of the days and of the day before the first, from the pinned version's own files."""
        return self.events_at(tables.ITEM_EVENTS, self.pin.read_version)

    def events_at(self, events: Table, version: int) -> "DataFrame":
        """Events of the days and of the day before the first, from the files of that version."""
        files = self.store.files(events, version, day_before(self.pin.first), self.pin.last) if version >= 0 else []
        return self.gathered(files, events)

    def gathered(self, files: Sequence[str], table: Table) -> "DataFrame":
        """The rows of these files, columns as in `table`.

        More than FILES_AT_ONCE of them are first copied into few: Sail opens every file of a scan at once.
        """
        if len(files) <= FILES_AT_ONCE:
            return self.engine.read(files, table.schema)
        folder = self.folder / f"gathered.{table.name}"
        shutil.rmtree(folder, ignore_errors=True)
        copies: list[str] = []
        for start in range(0, len(files), FILES_AT_ONCE):
            rows = self.engine.read(files[start : start + FILES_AT_ONCE], table.schema)
            copies += self.engine.stage(rows, table, folder / str(start)).files
        return self.engine.read(copies, table.schema)

    def staged_files(self, table: Table) -> list[str]:
        """The Parquet files that this run staged for `table`; none when it staged no row."""
        return sorted(str(file) for file in (self.folder / table.name).glob("*.parquet"))

    def staged(self, table: Table) -> "DataFrame":
        """`table` as staged by this run."""
        return self.engine.read(self.staged_files(table), table.schema)

    def stage(self, table: Table, frame: "DataFrame") -> "StagedTable":
        """Write `frame` to this run's staging of `table`, replacing an earlier try."""
        staged = self.engine.stage(frame, table, self.folder / table.name)
        self.state.staged_rows[table.name] = staged.rows
        return staged

    def save(self) -> None:
        """Write the state atomically."""
        draft = self.folder / "run.json.new"
        with writing(draft, STAGING_HINT):
            self.folder.mkdir(parents=True, exist_ok=True)
            draft.write_text(self.state.model_dump_json(indent=1))
            draft.replace(self.folder / "run.json")

    def staged_rows(self, table: Table, days: Sequence[date], columns: list[str] | None = None) -> pa.Table:
        """The staged rows of `days`, in memory."""
        files = self.staged_files(table)
        if not files:
            return table.schema.empty_table().select(columns or table.schema.names)
        wanted = pc.field("day").isin(pa.array(days, pa.date32()))
        return ds.dataset(files, schema=table.schema, format="parquet").to_table(columns=columns, filter=wanted)

    def refuse(self, failures: Sequence[str]) -> None:
        """Passes a run without failures on as checked.

        Raises:
            CheckFailedError: there are failures; the staging is kept for a look.
        """
        self.save()
        if failures:
            shown = "; ".join(failures[:5]) + (f"; and {len(failures) - 5} more" if len(failures) > 5 else "")
            raise CheckFailedError(
                f"run {self.pin.run_id} ({self.pin.first} to {self.pin.last}) is not committed: {shown}. "
                f"Staging is kept in {self.folder}"
            )
        self.state.step = "checked"
        self.save()

    def staged_row_count(self, table: Table) -> int:
        """Rows in the staged files, from their footers."""
        return sum(pq.ParquetFile(file).metadata.num_rows for file in self.staged_files(table))


def run_folder(settings: Settings, run_id: str) -> Path:
    """Where a run stages.

    Raises:
        UsageError: a run id that is no plain file name.
    """
    if not run_id or len(run_id) > 200 or run_id[0] == "." or not run_id.isprintable() or "/" in run_id:
        raise UsageError(f"run id {run_id!r} cannot name a folder; use letters, digits, '-', ':' and '.'")
    return settings.staging_root / run_id


def load_state(settings: Settings, run_id: str) -> RunState:
    """The saved state of a run.

    Raises:
        UsageError: no such run; its first step is `pin`.
    """
    file = run_folder(settings, run_id) / "run.json"
    if not file.exists():
        raise UsageError(f"no run {run_id!r} under {settings.staging_root}; start it with: run pin --run-id {run_id}")
    return RunState.model_validate_json(file.read_text())


def saved_runs(settings: Settings) -> Iterator[RunState]:
    """The state of every run that still has staging, oldest first."""
    states = [RunState.model_validate_json(file.read_text()) for file in settings.staging_root.glob("*/run.json")]
    yield from sorted(states, key=lambda state: state.started_at)


def parameters_hash(settings: Settings) -> str:
    """Digest of the settings that change what a night computes."""
    shaping = settings.night.model_dump_json(include={"dedup_lookback"}) + str(settings.stream.list_depth)
    return hashlib.sha256(shaping.encode()).hexdigest()[:16]


def code_version() -> str:
    """The version of the code that computes."""
    return version("daybreak")
