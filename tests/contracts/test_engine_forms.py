"""The forms that jobs are built from give equal rows on Sail, Apache Spark and DuckDB.

Each form is one DataFrame expression, run on both engines, and one DuckDB query over the same Parquet files.
A job that needs a form that is not here brings it along. The second half shows what the forms avoid.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from daybreak.errors import LakeFailedError
from lakehouse.engines.engine import Engine
from lakehouse.engines.literals import day_literal, instant_literal

pytestmark = pytest.mark.slow

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("item", pa.string()),
        ("region", pa.string()),
        ("moment", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("weight", pa.int64()),
        ("points", pa.decimal128(18, 4)),
        ("season", pa.decimal128(28, 4)),
        ("part", pa.int32()),
    ]
)
DDL = (
    "id string, item string, region string, moment timestamp, day date, weight bigint, points decimal(18,4), "
    "season decimal(28,4), part int"
)
ITEMS = ["a", "A", "é", "e\u0301", "🚀", "ש", "0", "00", "", None, "\uffff", "ﬀ", "a "]
INSTANTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 10, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2026, 3, 8, 9, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 3, 8, 10, tzinfo=UTC),
    datetime(2026, 11, 1, 7, 0, 0, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    None,
]
WEIGHTS = [1, 1, 2, 2**32, 0, None]
POINTS = [Decimal("0.0001"), Decimal("-0.0001"), Decimal("99999999999999.9999"), Decimal(0), None]
SEASON = Decimal("999999999999999999999999.9999")


def rows_of(part: int) -> list[dict[str, Any]]:
    """One file's rows: some columns constant or null throughout, all combinations reached by different strides."""
    rows = []
    for n in range(78):
        at = INSTANTS[(n * 5 + part) % len(INSTANTS)]
        rows.append(
            {
                "id": f"e{n % 20:02}" if part else None,
                "item": ITEMS[(n * 3 + n // 13) % len(ITEMS)] if part != 1 else "é",
                "region": None if part == 2 else ("eu", "", None)[n % 3],
                "moment": at,
                "day": at.date() if at else None,
                "weight": WEIGHTS[n % len(WEIGHTS)] if part != 1 else 2**32,
                "points": POINTS[(n // 3) % len(POINTS)] if part != 2 else Decimal("1.5"),
                "season": (SEASON, -SEASON, Decimal("0.0001"), None)[n % 4],
                "part": part,
            }
        )
    return rows


FILES = 4
"""The last has no rows."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("forms")
    for part in range(FILES):
        rows = rows_of(part) if part < FILES - 1 else []
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / f"{part}.parquet")
    return sorted(str(file) for file in folder.glob("*.parquet"))


@dataclass(frozen=True)
class Form:
    """A DataFrame expression and the query that says the same in DuckDB, over the view `t`."""

    frame: Callable[[DataFrame], DataFrame]
    sql: str


def micros(name: str) -> Any:
    return F.unix_micros(name)


def one() -> Any:
    return F.lit(1).cast("bigint")


def shard(times: int) -> Any:
    return F.pmod(F.crc32(F.col("id").cast("binary")), F.lit(times))


def wide(frame: DataFrame) -> DataFrame:
    return frame.withColumn("wide", F.col("weight").cast("decimal(38,0)"))


def ranked(frame: DataFrame) -> DataFrame:
    """The four rank functions in one total order."""
    order = Window.partitionBy("part").orderBy(
        F.col("weight").desc_nulls_last(), F.col("item").desc_nulls_last(), F.col("moment").asc_nulls_first(), "id"
    )
    among = Window.partitionBy("part").orderBy(F.col("weight").desc_nulls_last())
    return frame.select(
        "part",
        "item",
        "weight",
        "moment",
        "id",
        F.row_number().over(order).alias("row_number"),
        F.rank().over(among).alias("rank"),
        F.dense_rank().over(among).alias("dense_rank"),
    )


def ties(frame: DataFrame) -> DataFrame:
    down = Window.partitionBy("part").orderBy(F.col("item").desc_nulls_last())
    up = Window.partitionBy("part").orderBy(F.col("item").asc_nulls_first())
    items = frame.select("part", "item").distinct()
    return items.select("part", "item", F.rank().over(down).alias("d"), F.rank().over(up).alias("u"))


def running(frame: DataFrame) -> DataFrame:
    """How many rows stand before each weight: the counting that ranks lists."""
    steps = frame.groupBy("part", "weight").agg(F.sum(one()).alias("equals"))
    best = Window.partitionBy("part").orderBy(F.col("weight").desc_nulls_last())
    upto = best.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    whole = Window.partitionBy("part")
    return steps.withColumn("upto", F.sum("equals").over(upto)).withColumn("n", F.sum("equals").over(whole))


def first_copies(frame: DataFrame) -> DataFrame:
    known = frame.filter(F.col("id").isNotNull() & F.col("moment").isNotNull()).withColumn("shard", shard(16))
    order = Window.partitionBy("day", "shard").orderBy("id", "moment", "part", F.col("item").asc_nulls_first())
    return (
        known.withColumn("previous", F.lag("id").over(order))
        .filter(F.col("previous").isNull() | (F.col("previous") != F.col("id")))
        .select("day", "id", "moment", "part")
    )


def sides(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    left = frame.filter(F.col("part") == 0).select("item", F.col("weight").alias("l"))
    right = frame.filter(F.col("part") == 2).select("item", F.col("weight").alias("r")).distinct()
    return left, right


def joined(how: str) -> Callable[[DataFrame], DataFrame]:
    def frame(rows: DataFrame) -> DataFrame:
        left, right = sides(rows)
        return left.join(right, ["item"], how)

    return frame


SIDES = """with l as (select item, weight as l from t where part = 0),
    r as (select distinct item, weight as r from t where part = 2) """
ORDERED = """order by weight desc nulls last, item desc nulls last, moment asc nulls first, id asc nulls first"""
DAY_US = 86_400_000_000
LISTED = [date(1, 1, 1), date(1582, 10, 10), date(1970, 1, 1), date(9999, 12, 31)]
LISTED_SQL = ", ".join(f"date '{day}'" for day in LISTED)
START, END = datetime(1582, 10, 10, tzinfo=UTC), datetime(2026, 3, 8, 10, tzinfo=UTC)


FORMS = {
    "distinct": Form(lambda t: t.select("item", "region").distinct(), "select distinct item, region from t"),
    "count distinct by itself": Form(
        lambda t: t.select("part", "item").distinct().groupBy("part").agg(F.sum(one()).alias("n")),
        "select part, count(*) from (select distinct part, item from t) group by all",
    ),
    "sum, count, min and max by key": Form(
        lambda t: t.groupBy("item").agg(F.sum("weight"), F.sum(one()), F.min("moment"), F.max("moment")),
        "select item, sum(weight), count(*), min(moment), max(moment) from t group by all",
    ),
    "grouping by a key that is constant in a file": Form(
        lambda t: t.groupBy("part", "day").agg(F.sum(one()).alias("n")),
        "select part, day, count(*) from t group by all",
    ),
    "sum of sums of one": Form(
        lambda t: t.groupBy("part", "item").agg(F.sum(one()).alias("n")).groupBy("part").agg(F.sum("n")),
        "select part, count(*) from t group by all",
    ),
    "longs summed as decimals cast before": Form(
        lambda t: t.transform(wide).groupBy("item").agg(F.sum("wide")),
        "select item, sum(weight::decimal(38,0)) from t group by all",
    ),
    "nothing at all": Form(
        lambda t: t.filter("part > 99").agg(F.sum(one()), F.sum("weight"), F.min("moment")),
        "select null, null, null",
    ),
    "nulls counted": Form(
        lambda t: t.agg(*(F.sum(F.col(c).isNull().cast("int").cast("bigint")) for c in ("item", "moment", "weight"))),
        "select sum((item is null)::int), sum((moment is null)::int), sum((weight is null)::int) from t",
    ),
    "sum of decimal(18,4)": Form(
        lambda t: t.groupBy("part").agg(F.sum("points"), F.min("points"), F.max("points")),
        "select part, sum(points), min(points), max(points) from t group by all",
    ),
    "sum of decimal(28,4)": Form(
        lambda t: t.groupBy("region").agg(F.sum("season"), F.min("season")),
        "select region, sum(season), min(season) from t group by all",
    ),
    "inner join": Form(joined("inner"), SIDES + "select item, l, r from l join r using (item)"),
    "left join": Form(joined("left"), SIDES + "select item, l, r from l left join r using (item)"),
    "full join": Form(joined("full"), SIDES + "select item, l, r from l full join r using (item)"),
    "semi join": Form(joined("left_semi"), SIDES + "select item, l from l semi join r using (item)"),
    "anti join": Form(joined("left_anti"), SIDES + "select item, l from l anti join r using (item)"),
    "null-safe join": Form(
        lambda t: (
            t.select("item")
            .distinct()
            .alias("x")
            .join(t.select("item").distinct().alias("y"), F.col("x.item").eqNullSafe(F.col("y.item")))
        ),
        "with d as (select distinct item from t) select x.item, y.item from d x join d y "
        "on x.item is not distinct from y.item",
    ),
    "union by name": Form(
        lambda t: t.select("item", "weight").unionByName(t.select(F.col("weight"), F.col("region").alias("item"))),
        "select item, weight from t union all select region, weight from t",
    ),
    "intersect": Form(
        lambda t: t.select("item").intersect(t.select(F.col("region").alias("item"))),
        "select item from t intersect select region from t",
    ),
    "except": Form(
        lambda t: t.select("item").subtract(t.filter("part = 1").select("item")),
        "select item from t except select item from t where part = 1",
    ),
    "row_number, rank and dense_rank": Form(
        ranked,
        f"select part, item, weight, moment, id, row_number() over (partition by part {ORDERED}), "
        "rank() over (partition by part order by weight desc nulls last), "
        "dense_rank() over (partition by part order by weight desc nulls last) from t",
    ),
    "strings in byte order, both ways": Form(
        ties,
        "with d as (select distinct part, item from t) select part, item, "
        "rank() over (partition by part order by item desc nulls last), "
        "rank() over (partition by part order by item asc nulls first) from d",
    ),
    "running and whole sums over a window": Form(
        running,
        "with s as (select part, weight, count(*) as n from t group by all) select part, weight, n, "
        "sum(n) over (partition by part order by weight desc nulls last rows unbounded preceding), "
        "sum(n) over (partition by part) from s",
    ),
    "first of each run of equals in a sorted shard": Form(
        first_copies,
        "select day, id, moment, part from t where id is not null and moment is not null qualify row_number() over ("
        "partition by day, id order by moment, part, item asc nulls first) = 1",
    ),
    "shard of an id": Form(
        lambda t: t.select("id", (shard(48) >= F.lit(0)).alias("in"), (shard(48) < F.lit(48)).alias("below")),
        "select id, case when id is not null then true end, case when id is not null then true end from t",
    ),
    "microseconds, their place in the day, and back": Form(
        lambda t: t.select(
            micros("moment"), F.pmod(micros("moment"), F.lit(DAY_US)), F.timestamp_micros(micros("moment") + F.lit(0))
        ),
        f"select epoch_us(moment), (epoch_us(moment) % {DAY_US} + {DAY_US}) % {DAY_US}, moment from t",
    ),
    "day, hour and minute in UTC": Form(
        lambda t: t.select("moment", F.to_date("moment"), F.hour("moment"), F.minute("moment")),
        "select moment, moment::date, hour(moment), minute(moment) from t",
    ),
    "the next day": Form(
        lambda t: t.filter("day < date '9999-12-31'").select("day", F.date_add("day", 1)),
        "select day, day + 1 from t where day < date '9999-12-31'",
    ),
    "midnight of a day and an hour after it": Form(
        lambda t: t.select(
            F.col("day").cast("timestamp"),
            F.timestamp_micros(micros(F.col("day").cast("timestamp")) + F.lit(3_600_000_000)),
        ),
        "select day::timestamp::timestamptz, (day::timestamp + interval 1 hour)::timestamptz from t",
    ),
    "instants compared with constants made of microseconds": Form(
        lambda t: t.filter(
            (F.col("moment") >= instant_literal(START)) & (F.col("moment") < instant_literal(END))
        ).select("moment"),
        f"select moment from t where moment >= '{START}'::timestamptz and moment < '{END}'::timestamptz",
    ),
    "days compared with constants": Form(
        lambda t: t.filter(F.col("day").isin(*map(day_literal, LISTED))).select("day", "item"),
        f"select day, item from t where day in ({LISTED_SQL})",
    ),
    "constants in new columns": Form(
        lambda t: t.select("part", F.lit('it\'s "é" \\ 🚀').alias("text"), F.lit("2026-03-08").cast("date").alias("d")),
        "select part, 'it''s \"é\" \\ 🚀', date '2026-03-08' from t",
    ),
    "conditions over nulls": Form(
        lambda t: t.select("item", (F.col("region") == F.lit("")).alias("is"), F.coalesce("region", F.lit("-"))),
        "select item, region = '', coalesce(region, '-') from t",
    ),
}


def comparable(value: object) -> object:
    """Integers of every width alike, decimals without trailing zeros."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value.normalize()
    return value


def multiset(table: pa.Table) -> Counter[tuple[object, ...]]:
    columns = [table.column(n).to_pylist() for n in range(table.num_columns)]
    return Counter(tuple(comparable(value) for value in row) for row in zip(*columns, strict=True))


def by_duckdb(files: list[str], sql: str) -> Counter[tuple[object, ...]]:
    with duckdb.connect() as duck:
        duck.execute("set TimeZone = 'UTC'")
        duck.read_parquet(files).create_view("t")
        return multiset(duck.sql(sql).to_arrow_table())


@pytest.mark.parametrize("name", FORMS)
def test_form(engine: Engine, files: list[str], name: str) -> None:
    form = FORMS[name]
    found = engine.rows(form.frame(engine.spark.read.schema(DDL).parquet(*files)))
    assert multiset(found) == by_duckdb(files, form.sql)


def events_of(engine: Engine, files: list[str]) -> DataFrame:
    return engine.spark.read.schema(DDL).parquet(*files)


def values(engine: Engine, frame: DataFrame) -> list[object]:
    table = engine.rows(frame)
    return [value for column in table.columns for value in column.to_pylist()]


def largest(engine: Engine) -> DataFrame:
    return engine.spark.range(2).select(F.lit(2**63 - 1).cast("bigint").alias("n"))


def test_why_longs_are_summed_as_decimals(sail_engine: Engine) -> None:
    assert values(sail_engine, largest(sail_engine).agg(F.sum("n"))) == [-2], "Sail no longer wraps around"
    wide_sum = largest(sail_engine).withColumn("n", F.col("n").cast("decimal(38,0)")).agg(F.sum("n"))
    assert values(sail_engine, wide_sum) == [2**64 - 2]


def test_spark_refuses_a_sum_of_longs_that_overflows(spark_engine: Engine) -> None:
    with pytest.raises(LakeFailedError, match="OVERFLOW"):
        spark_engine.rows(largest(spark_engine).agg(F.sum("n")))


def test_why_instants_are_not_made_by_lit(spark_engine: Engine) -> None:
    first = datetime(1, 1, 1, tzinfo=UTC)
    off = spark_engine.spark.range(1).select(F.unix_micros(instant_literal(first)) - F.unix_micros(F.lit(first)))
    assert values(spark_engine, off) == [-2 * DAY_US], "Spark's instants are right in year 1: F.lit will do"


def test_why_days_are_not_made_by_lit(spark_engine: Engine) -> None:
    off = spark_engine.spark.range(1).select(F.lit(date(1582, 10, 10)))
    assert values(spark_engine, off) == [date(1582, 10, 20)], "Spark's days are right before 1582: F.lit will do"


def whole() -> Any:
    return Window.partitionBy("key")


WRONG_ON_SAIL: dict[str, tuple[Callable[[DataFrame], DataFrame], list[object], list[object]]] = {
    "the average of decimals is cut, not rounded": (
        lambda t: t.agg(F.avg("points").cast("string")),
        ["0.00016666"],
        ["0.00016667"],
    ),
    "seconds round towards zero": (lambda t: t.select(F.unix_seconds("moment")), [0, 0, 0], [-1, -1, -1]),
    "a cast inside a window is lost beside the same window without it": (
        lambda t: t.select(F.sum("n").over(whole()), F.sum(F.col("n").cast("decimal(38,0)")).over(whole())),
        [3] * 6,
        [3] * 3 + [Decimal(3)] * 3,
    ),
    "the smallest struct is not one with a null": (
        lambda t: t.agg(F.min(F.struct("gap", "n"))),
        [{"gap": 1, "n": 1}],
        [{"gap": None, "n": 2}],
    ),
}


def few(engine: Engine, folder: Path) -> DataFrame:
    """Three rows whose key is constant."""
    before = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    points = [Decimal("0.0001"), Decimal("0.0002"), Decimal("0.0002")]
    columns = {"key": ["c"] * 3, "n": [1, 2, 0], "gap": [1, None, 3], "points": points, "moment": [before] * 3}
    kinds = [pa.string(), pa.int64(), pa.int64(), pa.decimal128(18, 4), pa.timestamp("us", "UTC")]
    arrays = {name: pa.array(values, kind) for (name, values), kind in zip(columns.items(), kinds, strict=True)}
    pq.write_table(pa.table(arrays), folder / "few.parquet")
    ddl = "key string, n bigint, gap bigint, points decimal(18,4), moment timestamp"
    return engine.spark.read.schema(ddl).parquet(str(folder / "few.parquet"))


@pytest.mark.parametrize("name", WRONG_ON_SAIL)
def test_why_jobs_do_without(engine: Engine, tmp_path: Path, name: str) -> None:
    form, on_sail, right = WRONG_ON_SAIL[name]
    found = values(engine, form(few(engine, tmp_path)))
    due = on_sail if engine.name == "sail" else right
    assert [(value, type(value)) for value in found] == [(value, type(value)) for value in due], (
        f"{engine.name} has changed: {name}"
    )


@pytest.mark.parametrize(
    "form", [lambda t: t.select(F.xxhash64("key")), lambda t: t.select(F.date_trunc("day", F.lit("0001-01-01")))]
)
def test_what_sail_refuses(sail_engine: Engine, tmp_path: Path, form: Callable[[DataFrame], DataFrame]) -> None:
    with pytest.raises(LakeFailedError):
        sail_engine.rows(form(few(sail_engine, tmp_path)))
