"""What rows must be to enter a table: its columns, its types, no nulls where none may be, the days they are for."""

from collections.abc import Iterable, Iterator
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from daybreak.errors import CheckFailedError
from lakehouse.engines.engine import first_line
from lakehouse.tables.registry import Table


class Conformed:
    """Batches in the table's exact schema. Keeps what they refuse: delta-rs wraps a reader's errors."""

    def __init__(
        self,
        table: Table,
        batches: pa.RecordBatchReader | pa.Table,
        days: tuple[date, date] | None = None,
    ) -> None:
        self.table = table
        self.schema = table.schema.remove_metadata()
        self.batches = batches.to_reader() if isinstance(batches, pa.Table) else batches
        self.days = days
        self.failure: CheckFailedError | None = None

    def reader(self) -> pa.RecordBatchReader:
        """The stream to write; `failure` says why it broke off."""
        return pa.RecordBatchReader.from_batches(self.schema, self._checked())

    def rows(self) -> pa.Table:
        """All of them, in memory."""
        return pa.Table.from_batches(list(map(self._conform, self.batches)), self.schema)

    def _checked(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            try:
                yield self._conform(batch)
            except CheckFailedError as error:
                self.failure = error
                raise

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        check_columns(self.table, batch.schema.names)
        columns = []
        for field in self.schema:
            try:
                column = batch.column(field.name).cast(field.type)
            except pa.ArrowInvalid as error:
                raise CheckFailedError(
                    f"{self.table.name}.{field.name} is no {field.type}: {first_line(error)}; "
                    "mend the job that staged it"
                ) from None
            if column.null_count and not field.nullable:
                raise nulls(self.table, field.name, f"{column.null_count} rows")
            columns.append(column)
        conformed = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        if self.days is not None and conformed.num_rows:
            check_days(self.table, conformed.column("day"), self.days)
        return conformed


def check_staged(table: Table, files: Iterable[str], days: tuple[date, date]) -> None:
    """Passes when staged files may enter `table`: their footers tell, or the columns where footers do not.

    Raises:
        CheckFailedError: rows of another day, nulls, columns or types that are not the table's.
    """
    for file in files:
        with pq.ParquetFile(file) as opened:
            check_columns(table, opened.schema_arrow.names)
            for field in table.schema:
                found = opened.schema_arrow.field(field.name).type
                if found != field.type:
                    raise CheckFailedError(
                        f"{table.name}.{field.name} is no {field.type}: it is {found} in {file}; "
                        "mend the job that staged it"
                    )
            _check_values(table, opened, days)


def check_columns(table: Table, names: list[str]) -> None:
    """Passes when these are the table's columns, in whatever order."""
    if set(names) != set(table.schema.names):
        raise CheckFailedError(
            f"{table.name}: rows have columns {names}, not {table.schema.names}; mend the job that staged them"
        )


def check_days(table: Table, column: pa.Array, days: tuple[date, date]) -> None:
    """Passes when all of a column of dates are between `days`, both included."""
    span = pc.min_max(column).as_py()
    if span["min"] < days[0] or span["max"] > days[1]:
        raise other_days(table, str(span["min"]), str(span["max"]), days)


def other_days(table: Table, first: str, last: str, days: tuple[date, date]) -> CheckFailedError:
    """The refusal of rows of days that are not to be replaced."""
    return CheckFailedError(
        f"{table.name}: rows of {first} to {last} were staged for {days[0]} to {days[1]}; mend the job that staged them"
    )


def nulls(table: Table, column: str, where: str) -> CheckFailedError:
    """The refusal of nulls in a column that has none."""
    return CheckFailedError(f"{table.name}.{column} is null in {where}; mend the job that staged it")


def _check_values(table: Table, opened: pq.ParquetFile, days: tuple[date, date]) -> None:
    for number in range(opened.num_row_groups):
        group = opened.metadata.row_group(number)
        leaves = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
        for field in table.schema:
            if field.nullable or pa.types.is_nested(field.type):
                continue
            statistics = leaves[field.name].statistics
            if statistics is not None and statistics.has_null_count and (statistics.has_min_max or field.name != "day"):
                null_count = statistics.null_count
                values = pa.array([statistics.min, statistics.max], pa.date32()) if field.name == "day" else None
            else:
                column = opened.read_row_group(number, [field.name]).column(0).combine_chunks()
                null_count, values = column.null_count, column if field.name == "day" else None
            if null_count:
                raise nulls(table, field.name, f"{null_count} rows")
            if values is not None and len(values):
                check_days(table, values, days)
