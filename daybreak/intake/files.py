"""Files as rows: JSON lines, CSV and Parquet, before the contract has looked at them.

A row that cannot even be parsed becomes a `broken` row with its reason; a file that is not what its name
says raises.
"""

import csv
import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from daybreak.intake.jsonlines import JsonLines
from daybreak.intake.rows import RAW_CUT, Indices, RawBatch, broken_rows, renamed, unreadable

__all__ = ["RawBatch", "content_hash", "read_file"]

NO_MAPPING: Mapping[str, str] = MappingProxyType({})


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
            raise unreadable(path, "is empty", "leave it out, or fetch it again")
        match kind:
            case [".jsonl" | ".ndjson" | ".json"]:
                with _open(path, zipped) as file:
                    yield from JsonLines(path, mapping, batch_rows).read(file)
            case [".csv"]:
                with _open(path, zipped) as file:
                    yield from _read_csv(path, file, mapping)
            case [".parquet"] if not zipped:
                yield from _read_parquet(path, mapping, batch_rows)
            case _:
                known = ".jsonl, .ndjson, .json, .csv (each also .gz) or .parquet"
                raise unreadable(path, f"has an unknown suffix {path.suffix!r}", f"name it {known}")
    except FileNotFoundError:
        raise unreadable(path, "is not there", "check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise unreadable(path, f"is not whole gzip data ({error})", "fetch it again") from None
    except (IsADirectoryError, PermissionError) as error:
        raise unreadable(path, f"cannot be read ({error.strerror})", "name a file you may read") from None


def content_hash(path: Path) -> str:
    """SHA-256 of the file's bytes, in hex.

    Raises:
        UnreadableInputError: the file cannot be opened.
    """
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(Path(path), f"cannot be read ({error.strerror})", "check the path") from None


def _open(path: Path, zipped: bool) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if zipped else path.open("rb")  # a GzipFile reads as a file does


def _read_parquet(path: Path, mapping: Mapping[str, str], batch_rows: int) -> Iterator[RawBatch]:
    first = 0
    try:
        with pq.ParquetFile(path) as file:
            renamed(path, file.schema_arrow.empty_table(), mapping)
            for batch in file.iter_batches(batch_size=batch_rows):
                table = renamed(path, pa.Table.from_batches([batch]), mapping)
                yield _columnar(table, np.arange(first, first + len(table)), ())
                first += len(table)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise unreadable(path, f"is not a whole Parquet file ({_first_line(error)})", "fetch it again") from None


def _read_csv(path: Path, file: IO[bytes], mapping: Mapping[str, str]) -> Iterator[RawBatch]:
    broken: list[tuple[int, str, str]] = []

    def keep(row: Any) -> str:
        reason = f"{row.actual_columns} columns where the header has {row.expected_columns}"
        broken.append((row.number - 2, row.text[:RAW_CUT], reason))
        return "skip"

    next_offset = 0
    try:
        for batch in _csv_reader(file, keep):
            table = renamed(path, pa.Table.from_batches([batch]), mapping)
            offsets, next_offset = _around(len(table), next_offset, {row[0] for row in broken})
            ready = [row for row in broken if row[0] < next_offset]
            broken[:] = broken[len(ready) :]
            yield _columnar(table, offsets, ready)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise unreadable(path, f"is not UTF-8 CSV with a header ({_first_line(error)})", "save it so") from None
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
