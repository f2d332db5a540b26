"""Constants in a query that mean the same on every engine, for every day from year 1 to 9999.

Not `F.lit(value)`: classic Spark takes instants through `java.sql.Timestamp` and days through `java.sql.Date`,
whose calendar before 1582-10-15 is the Julian one: year 1 is two days off, and its days fail as malformed.
"""

from datetime import date, datetime
from typing import TYPE_CHECKING

from daybreak.windows import to_micros

if TYPE_CHECKING:
    from pyspark.sql import Column


def instant_literal(instant: datetime) -> "Column":
    """The instant as a constant; it is folded before the files are read, so it prunes them."""
    from pyspark.sql import functions as F

    return F.timestamp_micros(F.lit(to_micros(instant)))


def day_literal(day: date) -> "Column":
    """The day as a constant, folded like an instant's."""
    from pyspark.sql import functions as F

    return F.lit(day.isoformat()).cast("date")
