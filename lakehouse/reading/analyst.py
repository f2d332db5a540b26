"""The analysts' DuckDB: one view per table, all at the versions of the newest manifest.

The manifest is the newest committed row of `runs`; what a run has committed before its manifest row, and
what it never finished, is not visible. Derived tables show nothing before the first manifest that names them;
evidence and bookkeeping, each row of which is whole by itself, show their newest version. Of closed periods
only those versions are visible that have their row in `board_closes`, which a close writes last.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from daybreak.errors import UsageError
from lakehouse.runs import newest_manifest
from lakehouse.stores.store import StoreReader
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

MACROS = files("lakehouse.reading") / "macros.sql"
ONLY_CLOSED = "semi join board_closes using (board, period, version)"


def connect(store: StoreReader, *, as_of: datetime | None = None, version: int | None = None) -> Any:
    """A DuckDB connection with one view per table, and the macros of macros.sql.

    To look back, say `as_of` (an instant with its zone: everything as it was then) or `version` (one of `runs`: the
    derived tables as that manifest has them). What is older than `lake.retention` may be gone.

    Raises:
        UsageError: both are given, or `as_of` has no zone.
        LakeFailedError: a version that is kept no more.
    """
    if as_of is not None and (version is not None or as_of.tzinfo is None):
        raise UsageError(f"as_of = {as_of} goes without a version, and needs its zone, as in 2026-03-02T08:00+00:00")
    duck = duckdb.connect(":memory:")
    duck.execute("set TimeZone = 'UTC'")
    # closes before ranks: a close that lands in between is then not visible, instead of visible without ranks
    ordered = sorted(tables.TABLES.values(), key=lambda table: table is not tables.BOARD_CLOSES)
    versions: dict[str, int | None] = dict.fromkeys(tables.TABLES)
    if as_of is not None:
        versions = {table.name: store.version_at(table, as_of) for table in ordered}
        version = versions[tables.RUNS.name]
    versions |= {tables.RUNS.name: version}
    pinned = newest_manifest(store, version)
    hidden = {table.name: -1 for table in (*tables.DERIVED, *tables.BOARD_TABLES)}
    for table in ordered:
        _view(duck, store, table, (versions | hidden | pinned)[table.name])
    duck.execute(MACROS.read_text())
    return duck


def frame(connection: Any, sql: str) -> Any:
    """The rows of a query as a pandas frame whose integers stay integers: DuckDB's own makes floats of large sums.

    Integers are Int64, which has nulls; a column with one beyond 63 bits holds decimals.

    Raises:
        UsageError: DuckDB refuses it.
    """
    with _refusing(sql):
        rows = connection.sql(sql).to_arrow_table()
    for place, field in enumerate(rows.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            with suppress(pa.ArrowInvalid):
                rows = rows.set_column(place, field.name, rows[field.name].cast(pa.int64()))
    return rows.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)


def export(connection: Any, sql: str, file: Path) -> int:
    """Write the rows of a query to a .csv or .parquet file, all or nothing; returns how many there were.

    Raises:
        UsageError: another ending, or DuckDB refuses the query or the file.
    """
    if file.suffix not in (".csv", ".parquet"):
        raise UsageError(f"{file} is neither .csv nor .parquet; end its name in one of them")
    staged = file.with_name(f".{file.name}.new")
    with _refusing(sql):
        if file.suffix == ".csv":
            copy = f"copy ({sql.strip().rstrip(';')}) to {_quoted(str(staged))} (header)"
            rows = int(connection.execute(copy).fetchone()[0])
        else:  # by Arrow: DuckDB's own writer makes floats of sums
            reader = connection.sql(sql).to_arrow_reader()
            rows = 0
            with pq.ParquetWriter(staged, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
                    rows += batch.num_rows
    staged.replace(file)
    return rows


def query(connection: Any, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Column names and rows of a query.

    Raises:
        UsageError: DuckDB refuses it; its words say why.
    """
    with _refusing(sql):
        found = connection.execute(sql)
        rows = found.fetchall()
    return [column[0] for column in found.description or []], iter(rows)


@contextmanager
def _refusing(sql: str) -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, OSError) as error:
        gone = "; that version is kept no more, see lake.retention" if "No such file" in str(error) else ""
        raise UsageError(f"{sql!r} is not run: {error}{gone}") from None


def _view(duck: Any, store: StoreReader, table: Table, at: int | None) -> None:
    """The view at a version; None is the newest, -1 shows nothing."""
    rows = table.schema.remove_metadata().empty_table() if at == -1 else store.dataset(table, at)
    base = f"_{table.name}"
    duck.register(base, rows)
    columns = ", ".join(f'"{name}"' for name in table.schema.names)
    only = ONLY_CLOSED if table in tables.CLOSED_TABLES else ""
    duck.execute(f'create temp view "{table.name}" as select {columns} from "{base}" {only}')  # noqa: S608 - names are ours, values none
    duck.execute(f'comment on view "{table.name}" is {_quoted(table.comment)}')
    for name, comment in table.comments.items():
        duck.execute(f'comment on column "{table.name}"."{name}" is {_quoted(comment)}')


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
