"""JSON lines as rows.

Blocks go through Arrow's reader; in a block that it refuses, only the rows at fault and a few neighbours go
through Python one by one.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from daybreak.errors import UnreadableInputError
from daybreak.intake.rows import CONTRACT, RAW_CUT, Indices, RawBatch, as_text, broken_rows, renamed, unreadable

BOM = b"\xef\xbb\xbf"
LINE_LIMIT = 64 * 2**20
NUMBER = pa.decimal128(38, 9)
PIECE = 64
MEND = 4096
MEND_TRIES = 16
ARROW_ROW = re.compile(r"in row (\d+)")


class _Text(str):
    """A JSON number as it was written."""


@dataclass(frozen=True)
class _Piece:
    """Part of a block: its parsed rows, their line numbers in the block, and (line, reason) of the others."""

    table: pa.Table
    lines: Indices
    broken: list[tuple[int, str]]


class JsonLines:
    """Reads one file of one JSON object a line; see `daybreak.intake.files.read_file`."""

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
            if first == 0:
                block = block.removeprefix(BOM)
            if block and not block.isspace():
                batch, count = self._block(block, first)
                yield batch
                first += count
            if last:
                break
        if first == 0:
            raise self._not_json("holds no row")

    def _not_json(self, what: str) -> UnreadableInputError:
        return unreadable(self.path, f"is not JSON lines: it {what}", "give one JSON object a line, UTF-8")

    def _block(self, block: bytes, first: int) -> tuple[RawBatch, int]:
        lines = _Lines(block)
        if first == 0:
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
            renamed(self.path, table, self.mapping)
            return
        try:
            is_text = b"{" in lines.block and bool(lines.block.decode())
        except UnicodeDecodeError:
            is_text = False
        if lines.block.lstrip().startswith(b"[") or lines.all()[0].strip() == b"{":
            raise self._not_json("holds one document over many lines, or a list")
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
