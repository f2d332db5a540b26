"""Files as rows: JSON lines, CSV and Parquet, before the contract has looked at them.

A row that cannot even be parsed becomes a `broken` row with its reason; a file that is not what its name
says raises. Blocks of JSON go through Arrow's reader; in a block that it refuses, only the rows at
fault and a few neighbours go through Python one by one.
"""

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pj
import pyarrow.parquet as pq

from daybreak.errors import UnreadableInputError
from daybreak.events import ITEM_EVENT, SCORE_EVENT

RAW_CUT = 4096
LINE_LIMIT = 64 * 2**20
RESERVED = frozenset({"extra", "source", "partition", "offset", "day"})
CONTRACT = tuple(dict.fromkeys(n for n in (*ITEM_EVENT.names, *SCORE_EVENT.names) if n not in RESERVED))
BROKEN = pa.schema([("offset", pa.int64()), ("raw", pa.string()), ("reason", pa.string())])
NUMBER = pa.decimal128(38, 9)
NO_MAPPING: Mapping[str, str] = MappingProxyType({})
PIECE = 64
MEND = 4096
MEND_TRIES = 16

ARROW_ROW = re.compile(r"in row (\d+)")

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RawBatch:
    """Rows as read. `columns` are named as in the contract where `mapping` says so; unknown extras stay.

    `offsets` is each row's number in its source, from 0, counting broken rows and not counting blank lines.
    `raw` gives the text of the rows at those indices of `columns`, made only when asked for.
    """

    columns: pa.Table
    offsets: pa.Array
    broken: pa.Table
    raw: Callable[[Indices], list[str]]


def read_file(path: Path, *, mapping: Mapping[str, str] = NO_MAPPING, batch_rows: int = 262_144) -> Iterator[RawBatch]:
    """The rows of one file in batches of about `batch_rows`, in file order.

    Args:
        path: `.jsonl`, `.ndjson`, `.json` (one object a line), `.csv`, each also with `.gz`; or `.parquet`.
        mapping: {name in the file: name in the contract}

    Raises:
        UnreadableInputError: missing, empty, cut off, not what its suffix says, or no known column in it.
    """
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    kind = (suffixes[:-1] if zipped else suffixes)[-1:]
    try:
        if path.stat().st_size == 0:
            raise _unreadable(path, "is empty", "leave it out, or fetch it again")
        match kind:
            case [".jsonl" | ".ndjson" | ".json"]:
                with _open(path, zipped) as file:
                    yield from _JsonLines(path, mapping, batch_rows).read(file)
            case [".csv"]:
                with _open(path, zipped) as file:
                    yield from _read_csv(path, file, mapping)
            case [".parquet"] if not zipped:
                yield from _read_parquet(path, mapping, batch_rows)
            case _:
                known = ".jsonl, .ndjson, .json, .csv (each also .gz) or .parquet"
                raise _unreadable(path, f"has an unknown suffix {path.suffix!r}", f"name it {known}")
    except FileNotFoundError:
        raise _unreadable(path, "is not there", "check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _unreadable(path, f"is not whole gzip data ({error})", "fetch it again") from None
    except (IsADirectoryError, PermissionError) as error:
        raise _unreadable(path, f"cannot be read ({error.strerror})", "name a file you may read") from None


def content_hash(path: Path) -> str:
    """SHA-256 of the file's bytes, in hex.

    Raises:
        UnreadableInputError: the file cannot be opened.
    """
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(Path(path), f"cannot be read ({error.strerror})", "check the path") from None


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Any column as text: strings as they are, nested values as JSON."""
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        return as_text(column.cast(column.type.value_type))
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        texts = [None if v is None else json.dumps(v, default=str) for v in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    if pa.types.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), pa.string())])
    return column.cast(pa.string())


def broken_rows(rows: Sequence[tuple[int, str, str]] = ()) -> pa.Table:
    """A `broken` table from (offset, raw, reason)."""
    names = BROKEN.names
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=BROKEN)


def _unreadable(path: Path, what: str, todo: str) -> UnreadableInputError:
    return UnreadableInputError(f"{path} {what}; {todo}")


def _open(path: Path, zipped: bool) -> IO[bytes]:
    return gzip.open(path, "rb") if zipped else path.open("rb")  # type: ignore[return-value]


def _renamed(path: Path, table: pa.Table, mapping: Mapping[str, str]) -> pa.Table:
    """The table under contract names; a column that a mapped one displaces keeps its values as `NAME_`."""
    known = [name for name in table.column_names if mapping.get(name, name) in CONTRACT]
    if missing := [source for source in mapping if source not in table.column_names]:
        raise _unreadable(
            path,
            f"has no column {missing[0]!r} (it has {_listed(table)})",
            "correct --map, as in ts=occurred_at",
        )
    if not known:
        raise _unreadable(path, f"has no column of an event (it has {_listed(table)})", "name them with --map")
    taken = set(mapping.values())
    return table.rename_columns(
        [mapping.get(name, f"{name}_" if name in taken else name) for name in table.column_names]
    )


def _listed(table: pa.Table) -> str:
    return ", ".join(table.column_names[:12]) or "none"


# --- Parquet and CSV ---


def _read_parquet(path: Path, mapping: Mapping[str, str], batch_rows: int) -> Iterator[RawBatch]:
    first = 0
    try:
        with pq.ParquetFile(path) as file:
            _renamed(path, file.schema_arrow.empty_table(), mapping)
            for batch in file.iter_batches(batch_size=batch_rows):
                table = _renamed(path, pa.Table.from_batches([batch]), mapping)
                yield _columnar(table, np.arange(first, first + len(table)), ())
                first += len(table)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise _unreadable(path, f"is not a whole Parquet file ({_first_line(error)})", "fetch it again") from None


def _read_csv(path: Path, file: IO[bytes], mapping: Mapping[str, str]) -> Iterator[RawBatch]:
    broken: list[tuple[int, str, str]] = []

    def keep(row: Any) -> str:
        reason = f"{row.actual_columns} columns where the header has {row.expected_columns}"
        broken.append((row.number - 2, row.text[:RAW_CUT], reason))
        return "skip"

    next_offset = 0
    try:
        for batch in _csv_reader(file, keep):
            table = _renamed(path, pa.Table.from_batches([batch]), mapping)
            offsets, next_offset = _around(len(table), next_offset, {row[0] for row in broken})
            ready = [row for row in broken if row[0] < next_offset]
            broken[:] = broken[len(ready) :]
            yield _columnar(table, offsets, ready)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _unreadable(path, f"is not UTF-8 CSV with a header ({_first_line(error)})", "save it so") from None
    if broken:
        yield _columnar(pa.table({}), np.arange(0), broken)


def _csv_reader(file: IO[bytes], keep: Callable[[Any], str]) -> Any:
    start = file.read(2**20)
    header = start.split(b"\n", 1)[0].decode("utf-8-sig")
    file.seek(0)
    names = next(iter(_csv_names(header)), [])
    return pcsv.open_csv(
        file,
        read_options=pcsv.ReadOptions(use_threads=False, block_size=32 * 2**20),
        parse_options=pcsv.ParseOptions(newlines_in_values=True, invalid_row_handler=keep),
        convert_options=pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            null_values=[""],
        ),
    )


def _csv_names(header: str) -> Iterator[list[str]]:
    import csv

    yield from csv.reader([header])


def _around(rows: int, start: int, broken: set[int]) -> tuple[Indices, int]:
    """Offsets of `rows` good rows from `start` on, stepping over the broken ones; and the next offset."""
    inside = sorted(offset for offset in broken if offset >= start)
    end = start + rows
    for offset in inside:
        if offset > end:
            break
        end += 1
    offsets = np.setdiff1d(np.arange(start, end), np.array(inside, np.int64), assume_unique=True)
    return offsets, end


def _columnar(table: pa.Table, offsets: Indices, broken: Sequence[tuple[int, str, str]]) -> RawBatch:
    def raw(indices: Indices) -> list[str]:
        rows = table.take(pa.array(indices, pa.int64())).to_pylist()
        return [json.dumps(row, default=str, ensure_ascii=False)[:RAW_CUT] for row in rows]

    return RawBatch(table, pa.array(offsets, pa.int64()), broken_rows(broken), raw)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:160] if str(error) else type(error).__name__


# --- JSON lines ---


class _Text(str):
    """A JSON number as it was written."""


@dataclass(frozen=True)
class _Piece:
    """Part of a block: its parsed rows, their line numbers in the block, and (line, reason) of the others."""

    table: pa.Table
    lines: Indices
    broken: list[tuple[int, str]]


class _JsonLines:
    def __init__(self, path: Path, mapping: Mapping[str, str], batch_rows: int) -> None:
        self.path, self.mapping = path, dict(mapping)
        self.block_bytes = min(max(batch_rows * 160, 512), LINE_LIMIT)
        self.contract = {source: name for source, name in self.mapping.items() if name in CONTRACT}
        taken = set(self.mapping.values())
        self.contract |= {name: name for name in CONTRACT if name not in taken and name not in self.mapping}
        self.types: dict[str, pa.DataType] = {}

    def read(self, file: IO[bytes]) -> Iterator[RawBatch]:
        first, carry = 0, b""
        while True:
            chunk = file.read(self.block_bytes)
            last = len(chunk) < self.block_bytes
            cut = len(chunk) if last else chunk.rfind(b"\n") + 1
            if not last and not cut:
                carry += chunk
                if len(carry) > LINE_LIMIT:
                    raise self._not_json("has a line above 64 MiB")
                continue
            block, carry = carry + chunk[:cut], chunk[cut:]
            if block and not block.isspace():
                batch, count = self._block(block, first)
                yield batch
                first += count
            if last:
                break
        if first == 0:
            raise self._not_json("holds no row")

    def _not_json(self, what: str) -> UnreadableInputError:
        return _unreadable(self.path, f"is not JSON lines: it {what}", "give one JSON object a line, UTF-8")

    def _block(self, block: bytes, first: int) -> tuple[RawBatch, int]:
        lines = _Lines(block)
        if first == 0:
            block = lines.block = block.removeprefix(b"\xef\xbb\xbf")
            self._peek(lines)
        table, _ = self._arrow(block)
        if table is not None and len(table) != lines.quick_count() and len(table) != len(lines.all()):
            table = None
        if table is not None:
            pieces, count = [_Piece(table, np.arange(len(table)), [])], len(table)
        else:
            count = len(lines.all())
            pieces = [
                piece for low in range(0, count, MEND) for piece in self._mend(lines.all(), low, min(low + MEND, count))
            ]
        joined = _join(pieces)
        if first == 0:
            self._check_first(joined, lines)
        broken = [(first + line, lines.text(line), reason) for piece in pieces for line, reason in piece.broken]
        at = np.concatenate([piece.lines for piece in pieces])

        def raw(indices: Indices) -> list[str]:
            return [lines.text(int(at[index])) for index in indices]

        columns = self._named(joined)
        return RawBatch(columns, pa.array(at + first, pa.int64()), broken_rows(broken), raw), count

    def _peek(self, lines: "_Lines") -> None:
        """Guess from the first rows which fields are written as numbers."""
        for line in lines.block.split(b"\n", 33)[:32]:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            for name, value in row.items() if isinstance(row, dict) else ():
                if isinstance(value, str) and self.contract.get(name) != "points":
                    self.types.setdefault(name, pa.string())
                elif name in self.contract and isinstance(value, str | int | float):
                    self.types.setdefault(name, self._number_type(name, value))

    def _number_type(self, source: str, value: Any) -> pa.DataType:
        """The type that reads a field first seen as a number; only integers keep their text as int64."""
        name = self.contract[source]
        if name == "points" or (name == "weight" and type(value) is not int):
            return NUMBER
        return pa.int64() if type(value) is int else pa.string()

    def _check_first(self, table: pa.Table, lines: "_Lines") -> None:
        if table.num_columns:
            _renamed(self.path, table, self.mapping)
            return
        try:
            is_text = b"{" in lines.block and bool(lines.block.decode())
        except UnicodeDecodeError:
            is_text = False
        if not is_text:
            raise self._not_json("has no JSON object in its first lines")

    def _named(self, table: pa.Table) -> pa.Table:
        taken = set(self.mapping.values())
        return table.rename_columns(
            [self.mapping.get(name, f"{name}_" if name in taken else name) for name in table.column_names]
        )

    def _arrow(self, block: bytes) -> tuple[pa.Table | None, int | None]:
        """The block by Arrow's reader; or None and, if known, the first row that is not plain."""
        try:
            if not block.isascii():
                block.decode()
            table = self._parse(block)
            if guessed := [name for name in table.column_names if self._is_misread(name, table[name].type)]:
                points = [name for name in guessed if self.contract.get(name) in ("points", "weight")]
                self.types |= dict.fromkeys(guessed, pa.string()) | dict.fromkeys(points, NUMBER)
                table = self._parse(block)
        except UnicodeDecodeError as error:
            return None, block.count(b"\n", 0, error.start)
        except pa.ArrowInvalid as error:
            found = ARROW_ROW.search(str(error))
            return None, int(found[1]) if found else None
        return self._plain(table, block), None

    def _is_misread(self, name: str, kind: pa.DataType) -> bool:
        """True if Arrow's guess at a field first seen in this block loses how it was written."""
        if name in self.types:
            return False
        plain = pa.types.is_string(kind) or pa.types.is_null(kind) or pa.types.is_integer(kind)
        return bool(pa.types.is_temporal(kind)) or (name in self.contract and not plain)

    def _parse(self, block: bytes) -> pa.Table:
        schema = pa.schema(list(self.types.items()))
        return pj.read_json(
            pa.BufferReader(block),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer"),
        )

    def _plain(self, table: pa.Table, block: bytes) -> pa.Table | None:
        columns = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            if column.null_count == len(column):
                continue
            if name in self.contract:
                keep = self.contract[name] in ("weight", "points", "schema_version")
                columns[name] = column if keep else as_text(column)
            elif pa.types.is_nested(column.type):
                lines = _Lines(block).all()
                texts = [_extra_text(json.loads(line).get(name)) for line in lines]
                if len(texts) != len(column):
                    return None
                columns[name] = pa.chunked_array([pa.array(texts, pa.string())])
            else:
                columns[name] = as_text(column)
        return pa.table(columns) if columns else pa.table({"": pa.nulls(len(table), pa.string())})

    def _mend(self, lines: list[bytes], low: int, high: int) -> Iterator[_Piece]:
        """The pieces of a refused stretch, cut at the rows that Arrow's errors name."""
        for _ in range(MEND_TRIES):
            if high - low <= PIECE:
                break
            table, bad = self._arrow(b"\n".join(lines[low:high]))
            if table is not None and len(table) == high - low:
                yield _Piece(table, np.arange(low, high), [])
                return
            if bad is None or bad >= high - low:
                yield from self._halves(lines, low, high)
                return
            if bad:
                yield from self._halves(lines, low, low + bad)
            yield self._one_by_one(lines, low + bad, low + bad + 1)
            low += bad + 1
        if low < high:
            yield self._one_by_one(lines, low, high)

    def _halves(self, lines: list[bytes], low: int, high: int) -> Iterator[_Piece]:
        """A stretch whole where Arrow takes it, else halved down to rows that go one by one."""
        if high - low <= PIECE:
            yield self._one_by_one(lines, low, high)
            return
        table, _ = self._arrow(b"\n".join(lines[low:high]))
        if table is not None and len(table) == high - low:
            yield _Piece(table, np.arange(low, high), [])
            return
        middle = (low + high) // 2
        yield from self._halves(lines, low, middle)
        yield from self._halves(lines, middle, high)

    def _one_by_one(self, lines: list[bytes], low: int, high: int) -> _Piece:
        rows: list[dict[str, str | None]] = []
        good: list[int] = []
        broken: list[tuple[int, str]] = []
        for number in range(low, high):
            try:
                rows.append(self._row(lines[number]))
                good.append(number)
            except (ValueError, RecursionError) as error:
                broken.append((number, _reason(error)))
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in names}
        table = pa.table(columns) if columns else pa.table({"": pa.nulls(len(rows), pa.string())})
        return _Piece(table, np.array(good, np.int64), broken)

    def _row(self, line: bytes) -> dict[str, str | None]:
        parsed = json.loads(line.decode(), parse_int=_Text, parse_float=_Text, parse_constant=_no_constant)
        if not isinstance(parsed, dict):
            raise ValueError(f"a JSON {type(parsed).__name__}, not an object")
        row: dict[str, str | None] = {}
        for name, value in parsed.items():
            if name in self.contract and not isinstance(value, str | None):
                raise ValueError(f"{name} is a JSON {type(value).__name__}, not text or a number")
            row[name] = _extra_text(value)
            f"{name}{row[name]}".encode()
        return row


class _Lines:
    """The non-blank lines of a block, split only when asked for."""

    def __init__(self, block: bytes) -> None:
        self.block = block
        self._all: list[bytes] | None = None

    def quick_count(self) -> int:
        """The number of lines if none is blank."""
        return self.block.count(b"\n") + (not self.block.endswith(b"\n"))

    def all(self) -> list[bytes]:
        if self._all is None:
            self._all = [line for line in self.block.split(b"\n") if line and not line.isspace()]
        return self._all

    def text(self, number: int) -> str:
        return self.all()[number][: 4 * RAW_CUT].decode(errors="replace").rstrip("\r")[:RAW_CUT]


def _join(pieces: Sequence[_Piece]) -> pa.Table:
    """All pieces as one table; a column whose type differs between them becomes text."""
    tables = [piece.table for piece in pieces if len(piece.table)]
    if not tables:
        return pa.table({})
    types: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for name in table.column_names:
            types.setdefault(name, set()).add(table[name].type)
    mixed = {name for name, kinds in types.items() if len(kinds) > 1}
    tables = [pa.table({n: as_text(t[n]) if n in mixed else t[n] for n in t.column_names}) for t in tables]
    joined = pa.concat_tables(tables, promote_options="default")
    return joined.drop_columns([""]) if "" in joined.column_names and joined.num_columns > 1 else joined


def _extra_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _reason(error: Exception) -> str:
    match error:
        case UnicodeDecodeError() | UnicodeEncodeError():
            return f"not valid UTF-8: {error.reason}"
        case json.JSONDecodeError():
            return f"not JSON: {error.msg} at character {error.pos}"
        case RecursionError():
            return "not JSON: nested too deeply"
        case _:
            return str(error)
