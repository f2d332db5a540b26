"""The analysts' DuckDB: one view per table, all at the versions of the newest manifest.

The manifest is the newest committed row of `runs`; what a run has committed before its manifest row, and
what it never finished, is not visible. Derived tables show nothing before the first manifest that names them;
evidence and bookkeeping, each row of which is whole by itself, show their newest version. Of closed periods
only those versions are visible that have their row in `board_closes`, which a close writes last.
"""

from collections.abc import Iterator
from typing import Any

import duckdb

from daybreak.errors import UsageError
from lakehouse import tables
from lakehouse.store import Store
from lakehouse.tables import Table

ONLY_CLOSED = "semi join board_closes using (board, period, version)"


def manifest(store: Store, version: int | None = None) -> dict[str, int]:
    """Table versions of the newest committed run, as of a version of `runs`; empty before the first run."""
    rows = store.read(tables.RUNS, version)
    committed = [row for row in rows.to_pylist() if row["outcome"] == "committed"]
    if not committed:
        return {}
    newest = max(committed, key=lambda row: (row["committed_at"], row["run_id"]))
    return {name: int(at) for name, at in newest["table_versions"]}


def connect(store: Store, *, version: int | None = None) -> Any:
    """A DuckDB connection with one view per table; `version` is one of `runs`, to look back in time."""
    duck = duckdb.connect(":memory:")
    duck.execute("set TimeZone = 'UTC'")
    pinned = manifest(store, version)
    # closes before ranks: a close that lands in between is then not visible, instead of visible without ranks
    for table in sorted(tables.TABLES.values(), key=lambda table: table is not tables.BOARD_CLOSES):
        _view(duck, store, table, pinned, version)
    return duck


def query(connection: Any, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    """Column names and rows of a query.

    Raises:
        UsageError: DuckDB refuses it; its words say why.
    """
    try:
        found = connection.execute(sql)
        rows = found.fetchall()
    except duckdb.Error as error:
        raise UsageError(f"{sql!r} is not run: {error}") from None
    return [column[0] for column in found.description or []], iter(rows)


def _view(duck: Any, store: Store, table: Table, pinned: dict[str, int], version: int | None) -> None:
    at = pinned.get(table.name)
    if table is tables.RUNS:
        at = version
    if at is None and table in (*tables.DERIVED, *tables.BOARD_TABLES):
        rows = table.schema.remove_metadata().empty_table()
    else:
        rows = store.dataset(table, at)
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
