"""The one intake: rows as read become accepted events and refusals, and every row becomes one of the two.

Worker, archiver and ingest all take their events from here, so both paths see the same ones.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from daybreak.errors import UsageError
from daybreak.events import EVENT_ID_BYTES, INSTANT, ITEM_ID_BYTES, REFUSAL, WEIGHT_MAX, Kind, RefusalCode
from daybreak.intake.instants import Clockface, Instants, Mask, Micros
from daybreak.intake.numbers import integers, points_of
from daybreak.intake.rows import RAW_CUT, RawBatch, as_text
from daybreak.windows import to_micros

MICROS_PER_DAY = 86_400_000_000
REQUIRED = {
    Kind.ITEMS: {"event_id": EVENT_ID_BYTES, "item_id": ITEM_ID_BYTES},
    Kind.SCORES: {"event_id": EVENT_ID_BYTES, "match_id": ITEM_ID_BYTES, "player_id": ITEM_ID_BYTES},
}
OPTIONAL = {
    Kind.ITEMS: ("user_id", "region", "category"),
    Kind.SCORES: ("match_type", "region", "season"),
}
SCHEMA_VERSION_MAX = 2**31 - 1


@dataclass(frozen=True)
class Taken:
    """What became of a batch: `accepted` has the kind's schema, `refused` that of refusals.

    Guarantee: accepted + refused == read, for any input (tests/laws/test_intake.py).
    """

    accepted: pa.Table
    refused: pa.Table
    read: int


@dataclass
class _Verdict:
    """The first code that applies to each row; 0 while none does."""

    rows: int
    reasons: dict[int, tuple[RefusalCode, str]] = field(default_factory=dict)

    def refuse(self, where: Mask, code: RefusalCode, reason: Callable[[int], str]) -> None:
        for row in np.flatnonzero(where).tolist():
            if row not in self.reasons:
                self.reasons[row] = (code, reason(row))

    @property
    def bad(self) -> npt.NDArray[np.int64]:
        return np.array(sorted(self.reasons), np.int64)


class Intake:
    """Judges rows of one source partition.

    Args:
        received_at: when this source was received; a `received_at` in the rows themselves wins.
        default_timezone: IANA name for instants written without a zone; None refuses them.
        future_tolerance: how much later than received_at an event may say it occurred.

    Raises:
        UsageError: the zone is not known, or received_at has none.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        source: str,
        partition: int = 0,
        received_at: datetime,
        default_timezone: str | None,
        future_tolerance: timedelta,
    ) -> None:
        if received_at.tzinfo is None:
            raise UsageError(f"received_at {received_at} has no zone; give an aware datetime")
        self.kind, self.source, self.partition = kind, source, partition
        self.received_at = to_micros(received_at)
        self.tolerance = future_tolerance // timedelta(microseconds=1)
        self.clockface = Clockface(default_timezone)

    def take(self, batch: RawBatch) -> Taken:
        """Every row of the batch, accepted or refused with the first code that applies."""
        rows = len(batch.offsets)
        verdict = _Verdict(rows)
        columns = {
            name: _one_chunk(batch.columns[name])
            for name in batch.columns.column_names
            if name in self.kind.schema.names
        }
        taken = self._judge(columns, rows, verdict)
        received = taken.pop("received_at")
        accepted = self._accepted(batch, taken, received, verdict.bad)
        refused = self._refused(batch, received, verdict)
        return Taken(accepted, refused, rows + len(batch.broken))

    def _judge(self, columns: dict[str, pa.Array], rows: int, verdict: _Verdict) -> dict[str, Any]:
        absent = pa.nulls(rows, pa.string())
        taken: dict[str, Any] = {}
        version = integers(columns.get("schema_version"), rows, 1, SCHEMA_VERSION_MAX)
        verdict.refuse(version.bad, RefusalCode.MALFORMED, lambda r: f"schema_version {version.shown(r)}")
        taken["schema_version"] = pa.array(version.values.astype(np.int32))
        for name in REQUIRED[self.kind]:
            taken[name] = _text(columns.get(name, absent))
            verdict.refuse(_blank(taken[name]), RefusalCode.MISSING_FIELD, _constant(f"{name} is missing or empty"))
        required = ["occurred_at", *(["points"] if self.kind is Kind.SCORES else [])]
        for name in required:
            column = columns.get(name, absent)
            verdict.refuse(_blank(column), RefusalCode.MISSING_FIELD, _constant(f"{name} is missing or empty"))
        for name, limit in REQUIRED[self.kind].items():
            self._check_length(name, taken[name], limit, verdict)
        occurred = self._instants("occurred_at", columns.get("occurred_at", absent), verdict)
        received = self._received(columns.get("received_at"), rows, verdict)
        name = "weight" if self.kind is Kind.ITEMS else "points"
        taken[name] = self._measure(columns.get(name), rows, verdict)
        late = occurred > received + self.tolerance
        if late.any():
            verdict.refuse(
                late,
                RefusalCode.FAR_FUTURE,
                lambda r: f"occurred_at lies {(occurred[r] - received[r]) // 10**6} s after received_at",
            )
        taken |= {name: _text(columns[name]) for name in OPTIONAL[self.kind] if name in columns}
        return taken | {"occurred_at": occurred, "received_at": received}

    def _measure(self, column: pa.Array | None, rows: int, verdict: _Verdict) -> pa.Array:
        """An item event's weight, a score event's points."""
        if self.kind is Kind.ITEMS:
            weight = integers(column, rows, 1, WEIGHT_MAX)
            verdict.refuse(
                weight.bad,
                RefusalCode.BAD_WEIGHT,
                lambda r: f"weight {weight.shown(r)}; give an integer from 1 to 2^32",
            )
            return pa.array(weight.values)
        written = pa.nulls(rows, pa.string()) if column is None else column
        points, bad = points_of(written)
        verdict.refuse(
            bad,
            RefusalCode.BAD_POINTS,
            lambda r: f"points {written[r]} is not a number that decimal(18,4) holds exactly",
        )
        return points

    def _check_length(self, name: str, ids: pa.Array, limit: int, verdict: _Verdict) -> None:
        lengths = np.asarray(pc.binary_length(ids).fill_null(0))
        if len(lengths) and lengths.max() > limit:
            verdict.refuse(
                lengths > limit,
                RefusalCode.TOO_LONG,
                lambda row: f"{name} has {lengths[row]} bytes, at most {limit} fit",
            )

    def _instants(self, name: str, column: pa.Array, verdict: _Verdict) -> Micros:
        instants: Instants = self.clockface.read(column)
        for where, code in (
            (instants.bad, RefusalCode.BAD_TIMESTAMP),
            (instants.zoneless, RefusalCode.NO_TIMEZONE),
        ):
            verdict.refuse(where, code, lambda row: f"{name} {instants.reason(row)}")
        return instants.micros

    def _received(self, column: pa.Array | None, rows: int, verdict: _Verdict) -> Micros:
        if column is None:
            return np.full(rows, self.received_at, np.int64)
        micros = self._instants("received_at", column, verdict)
        unknown = np.asarray(column.is_null())
        refused = np.isin(np.arange(rows), verdict.bad) if verdict.reasons else np.zeros(rows, bool)
        return np.where(unknown | (refused & (micros == 0)), self.received_at, micros)

    def _accepted(
        self, batch: RawBatch, taken: dict[str, Any], received: Micros, bad: npt.NDArray[np.int64]
    ) -> pa.Table:
        rows = len(batch.offsets)
        occurred = taken.pop("occurred_at")
        columns = taken | {
            "occurred_at": _instant_array(occurred),
            "received_at": _instant_array(received),
            "source": pa.repeat(pa.scalar(self.source), rows),
            "partition": pa.repeat(pa.scalar(self.partition, pa.int32()), rows),
            "offset": batch.offsets,
            "day": _days(occurred),
            "extra": _extras(batch.columns, self.kind, rows),
        }
        schema = self.kind.schema
        arrays = [columns.get(name, pa.nulls(rows, schema.field(name).type)) for name in schema.names]
        if not len(bad):
            return pa.table(arrays, schema=schema)
        keep = np.ones(rows, bool)
        keep[bad] = False
        loose = pa.schema([pa.field(f.name, f.type) for f in schema])
        return pa.table(arrays, schema=loose).filter(pa.array(keep)).cast(schema)

    def _refused(self, batch: RawBatch, received: Micros, verdict: _Verdict) -> pa.Table:
        bad = verdict.bad
        texts = batch.raw(bad) if len(bad) else []
        offsets = batch.offsets.take(pa.array(bad)).to_pylist() if len(bad) else []
        found = [
            (offset, verdict.reasons[row], text[:RAW_CUT], int(received[row]))
            for row, offset, text in zip(bad.tolist(), offsets, texts, strict=True)
        ]
        found += [
            (row["offset"], (RefusalCode.MALFORMED, row["reason"]), row["raw"][:RAW_CUT], self.received_at)
            for row in batch.broken.to_pylist()
        ]
        found.sort(key=lambda row: row[0])
        micros = np.array([row[3] for row in found], np.int64)
        count = len(found)
        return pa.table(
            {
                "kind": pa.array([self.kind.value] * count, pa.string()),
                "code": pa.array([row[1][0].value for row in found], pa.string()),
                "reason": pa.array([row[1][1] for row in found], pa.string()),
                "raw": pa.array([row[2] for row in found], pa.string()),
                "received_at": _instant_array(micros),
                "source": pa.array([self.source] * count, pa.string()),
                "partition": pa.array([self.partition] * count, pa.int32()),
                "offset": pa.array([row[0] for row in found], pa.int64()),
                "day": _days(micros),
            },
            schema=REFUSAL,
        )


def _extras(columns: pa.Table, kind: Kind, rows: int) -> pa.Array:
    """Fields outside the contract as a map from name to text, null where a row has none."""
    settled = set(kind.schema.names) - {"extra", "source", "partition", "offset", "day"}
    names = [name for name in columns.column_names if name and name not in settled]
    if not names or not rows:
        return pa.nulls(rows, pa.map_(pa.string(), pa.string()))
    values = pa.chunked_array([chunk for n in names for chunk in as_text(columns[n]).chunks], pa.string())
    width = len(names)
    by_row = np.arange(width * rows).reshape(width, rows).T.ravel()
    present = np.asarray(values.is_valid().combine_chunks())[by_row]
    counts = present.reshape(rows, width).sum(axis=1)
    cells = by_row[present]
    keys = pa.array(names, pa.string()).take(pa.array(cells // rows))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    offsets = pa.array(ends, pa.int32(), mask=np.append(counts == 0, False))
    items = values.combine_chunks().take(pa.array(cells))
    return pa.MapArray.from_arrays(offsets, keys, items)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _text(column: pa.Array) -> pa.Array:
    return column if column.type == pa.string() else _one_chunk(as_text(pa.chunked_array([column])))


def _blank(column: pa.Array) -> Mask:
    if pa.types.is_string(column.type):
        lengths = np.asarray(pc.binary_length(column).fill_null(0))
        return np.asarray(lengths == 0)
    return np.asarray(column.is_null())


def _constant(text: str) -> Callable[[int], str]:
    return lambda _row: text


def _instant_array(micros: Micros) -> pa.Array:
    return pa.array(micros, pa.int64()).cast(INSTANT)


def _days(micros: Micros) -> pa.Array:
    return pa.array(np.floor_divide(micros, MICROS_PER_DAY).astype(np.int32)).cast(pa.date32())
