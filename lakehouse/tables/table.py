"""What a table of the lake is: its name, schema, grain and meaning, as data."""

from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from daybreak.errors import CheckFailedError
from daybreak.events import INSTANT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOTAL = pa.decimal128(28, 4)
"""Sums of points: any day's points (each decimal(18,4)) fit."""

SPARK_TYPES = {
    pa.string(): "string",
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.float64(): "double",
    INSTANT: "timestamp",
    TOTAL: "decimal(28,4)",
}


@dataclass(frozen=True)
class Table:
    """One table: its name, schema, grain and who writes it."""

    name: str
    comment: str
    schema: pa.Schema
    grain: tuple[str, ...]
    comments: dict[str, str] = field(default_factory=dict)
    at_least: dict[str, int] = field(default_factory=dict)
    """Smallest allowed value per numeric column; a check of the night."""

    @property
    def partition_by(self) -> tuple[str, ...]:
        return ("day",) if "day" in self.schema.names else ()

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.schema if not f.nullable)

    def conform(self, frame: "DataFrame", **constants: object) -> "DataFrame":
        """`frame` in schema order with the schema's types; `constants` fill columns that it lacks.

        Raises:
            CheckFailedError: a column is missing or unknown.
        """
        from pyspark.sql import functions as F

        have, want = {*frame.columns, *constants}, set(self.schema.names)
        if have != want:
            raise CheckFailedError(
                f"{self.name}: columns missing {sorted(want - have)}, unknown {sorted(have - want)}; "
                f"mend the job that stages {self.name}"
            )
        return frame.select(
            *(
                (F.lit(constants[f.name]) if f.name in constants else F.col(f.name))
                .cast(SPARK_TYPES[f.type])
                .alias(f.name)
                for f in self.schema
            )
        )


def column(name: str, kind: pa.DataType, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable)


DAY = column("day", pa.date32())


def partition_filter(first: date, last: date) -> str:
    """SQL predicate that prunes to the days from `first` to `last`, both included."""
    return f"day >= '{first.isoformat()}' AND day <= '{last.isoformat()}'"
