"""The DuckDB of a recount: bounded, its statements in SQL files beside it, and what it finds to differ in words."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from importlib.resources import files as package_files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

from daybreak.errors import LakeFailedError
from daybreak.windows import from_micros
from lakehouse.tables.registry import Table

SHOWN = 3
"""Rows of a difference that are named, of each side."""
PART_ROWS = 50_000_000
"""Events of a part. Each part reads the files anew; one of this size passes the limit below and spills some GB."""
MEMORY_LIMIT = 4 * 2**30
"""Bytes that DuckDB may hold before it spills."""


@dataclass(frozen=True)
class Limits:
    """What a recount may use."""

    part_rows: int = PART_ROWS
    memory: int = MEMORY_LIMIT
    spill: Path | None = None
    """Where it spills, into a folder of its own; else where the system keeps its temporary files."""


DEFAULT_LIMITS = Limits()


class Statements:
    """The statements of one SQL file of this package, each below a line `-- name: NAME`."""

    def __init__(self, file: str) -> None:
        self.file = file

    @cached_property
    def texts(self) -> dict[str, str]:
        """Every statement by its name."""
        text = (package_files("lakehouse.audit") / self.file).read_text()
        return dict(statement.split("\n", 1) for statement in text.split("-- name: ")[1:])

    def run(self, duck: Any, *names: str) -> Any:
        """Run these in turn; the result of the last."""
        found = None
        for name in names:
            found = duck.execute(self.texts[name])
        return found


@contextmanager
def connection(limits: Limits = DEFAULT_LIMITS) -> Iterator[Any]:
    """A DuckDB of its own, bounded; what it spills goes with it.

    Raises:
        LakeFailedError: what is asked of it inside fails, as when a file cannot be read.
    """
    with TemporaryDirectory(prefix="recount-", dir=limits.spill) as folder:
        config = {
            "preserve_insertion_order": False,
            "memory_limit": f"{limits.memory}B",
            "temp_directory": folder,
        }
        with duckdb.connect(":memory:", config=config) as duck:
            try:
                yield duck
            except duckdb.Error as error:
                why = str(error).splitlines()[0]
                raise LakeFailedError(f"DuckDB's recount failed: {why}; run the step again") from error


def relation(duck: Any, name: str, files: Sequence[str], table: Table, columns: Sequence[str] = ()) -> None:
    """A view of the files' rows, of none when there is no file; only `columns` of them, if any are named."""
    if files:
        found = duck.read_parquet(list(files), hive_partitioning=False)
    else:
        found = duck.from_arrow(table.schema.remove_metadata().empty_table())
    if columns:
        found = found.project(_quoted(columns))
    found.create_view(name, replace=True)


def create_table(duck: Any, name: str, schema: pa.Schema, rows: Sequence[Sequence[object]]) -> None:
    """A table of these rows, in place of one of that name."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    duck.execute(f"drop table if exists {name}")
    duck.from_arrow(pa.Table.from_arrays(arrays, schema=schema)).create(name)


def set_variables(duck: Any, **variables: int) -> None:
    """Set what the statements ask for by `getvariable`."""
    for name, value in variables.items():
        duck.execute(f"set variable {name} = {int(value)}")


def differences_of(duck: Any, table: Table, what: str, chosen: str = "") -> list[str]:
    """In words: the first rows of `staged_{what}` that `recounted_{what}` lacks, and the other way round."""
    columns = duck.sql(f"select * from recounted_{what} limit 0").columns  # noqa: S608 - names are ours, values none
    names = _quoted(columns)
    staged = f"select {names}, 1 as surplus from staged_{what}{chosen}"  # noqa: S608 - names are ours, values none
    counted = f"select {names}, -1 as surplus from recounted_{what}{chosen}"  # noqa: S608 - names are ours, values none
    duck.execute(
        f"create or replace temp table differing as select {names}, sum(surplus) as surplus "  # noqa: S608 - names are ours, values none
        f"from ({staged} union all {counted}) group by all having sum(surplus) <> 0"
    )
    found = []
    for finding, side in (("is staged", "surplus > 0"), ("is due", "surplus < 0")):
        query = f"select {names} from differing where {side} order by all limit {SHOWN}"  # noqa: S608 - names are ours, values none
        for row in duck.execute(query).fetchall():
            shown = in_words(dict(zip(columns, row, strict=True)))
            found.append(f"{table.name}: {shown} {finding}, by DuckDB's recount")
    return found


def in_words(row: Mapping[str, Any]) -> str:
    """A row of a recount as its table has it: instants for microseconds, points for their ten-thousandths.

    >>> in_words({"player_id": "ana", "points": 125000, "first_us": 0})
    'player_id=ana, points=12.5000, first_at=1970-01-01T00:00:00+00:00'
    """
    words = []
    for name, value in row.items():
        if value is not None and name.endswith("_us"):
            words.append(f"{name.removesuffix('_us')}_at={from_micros(value).isoformat()}")
        elif name == "points":
            words.append(f"points={Decimal(value).scaleb(-4)}")
        else:
            words.append(f"{name}={value}")
    return ", ".join(words)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
