"""What every reader of files shares: rows as read, under the contract's names, and texts of any column."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from daybreak.errors import UnreadableInputError
from daybreak.events import ITEM_EVENT, SCORE_EVENT

RAW_CUT = 4096
RESERVED = frozenset({"extra", "source", "partition", "offset", "day"})
CONTRACT = tuple(dict.fromkeys(n for n in (*ITEM_EVENT.names, *SCORE_EVENT.names) if n not in RESERVED))
BROKEN = pa.schema([("offset", pa.int64()), ("raw", pa.string()), ("reason", pa.string())])

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


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Any column as text: strings as they are, nested values as JSON, bytes as UTF-8 or, where not, null."""
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        return as_text(column.cast(column.type.value_type))
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return pa.chunked_array([pa.array([_utf8(value) for value in column.to_pylist()], pa.string())])
    if pa.types.is_nested(column.type):
        texts = [None if v is None else json.dumps(v, default=str) for v in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    if pa.types.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), pa.string())])
    return column.cast(pa.string())


def _utf8(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def broken_rows(rows: Sequence[tuple[int, str, str]] = ()) -> pa.Table:
    """A `broken` table from (offset, raw, reason)."""
    names = BROKEN.names
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=BROKEN)


def unreadable(path: Path, what: str, todo: str) -> UnreadableInputError:
    return UnreadableInputError(f"{path} {what}; {todo}")


def renamed(path: Path, table: pa.Table, mapping: Mapping[str, str]) -> pa.Table:
    """The table under contract names; a column that a mapped one displaces keeps its values as `NAME_`."""
    known = [name for name in table.column_names if mapping.get(name, name) in CONTRACT]
    if missing := [source for source in mapping if source not in table.column_names]:
        raise unreadable(
            path,
            f"has no column {missing[0]!r} (it has {_listed(table)})",
            "correct --map, as in ts=occurred_at",
        )
    if not known:
        raise unreadable(path, f"has no column of an event (it has {_listed(table)})", "name them with --map")
    taken = set(mapping.values())
    names = [mapping.get(name, f"{name}_" if name in taken else name) for name in table.column_names]
    if twice := [name for name in names if names.count(name) > 1]:
        raise unreadable(path, f"has column {twice[0]!r} twice", "rename one, or correct --map")
    return table.rename_columns(names)


def _listed(table: pa.Table) -> str:
    return ", ".join(table.column_names[:12]) or "none"
