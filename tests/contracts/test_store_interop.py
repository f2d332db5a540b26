"""Each table written by one store and replaced by the other: every engine reads the same rows from it."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse.stores.store import Store, Transaction
from lakehouse.tables.registry import BOARD_TABLES, CORRECTIONS, DAILY_COUNTS, DERIVED, Table, partition_filter
from tests.contracts.stores import ENGINE_INFO, ONE, THREE, TWO, store_of
from tests.engines import Engines

pytestmark = pytest.mark.slow

NASTY = ["", "café", "cafe\u0301", "Lets\nCrash", "007", " blank ", "a=b/c%20", "\U0001f3b5", "'quoted\"", "\x00nul"]
INSTANTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]
Rows = list[tuple[object, ...]]


def value(kind: pa.DataType, n: int) -> object:
    """The n-th value of a type, edges first."""
    if pa.types.is_string(kind):
        return NASTY[n % len(NASTY)]
    if pa.types.is_timestamp(kind):
        return INSTANTS[n % len(INSTANTS)]
    if pa.types.is_date(kind):
        return [date.min, ONE, date.max][n % 3]
    if pa.types.is_boolean(kind):
        return n % 2 == 0
    if pa.types.is_floating(kind):
        return [0.1, -0.0, 1e300, 5e-324][n % 4]
    if pa.types.is_int32(kind):
        return n
    if pa.types.is_decimal(kind):
        return [Decimal("-0.0001"), Decimal("9" * 24 + ".9999"), Decimal("0.0000")][n % 3]
    return [2**53 + 1, 2**63 - 1, 1, -(2**63)][n % 4]


def some_rows(table: Table, days: list[date], seed: int) -> pa.Table:
    """Ten rows a day, edges of every type among them, nulls where they may be."""
    rows = [
        {
            field.name: day
            if field.name == "day"
            else None
            if field.nullable and n % 3 == 0
            else value(field.type, seed + n + place)
            for place, field in enumerate(table.schema)
        }
        for day in days
        for n in range(10)
    ]
    return pa.Table.from_pylist(rows, schema=table.schema)


def comparable(found: pa.Table, table: Table) -> Rows:
    """Rows in the registry's types and an order of their own."""
    columns = found.select(table.schema.names).cast(table.schema).to_pydict().values()
    return sorted(zip(*columns, strict=True), key=repr)


def read_everywhere(store: Store, table: Table, engines: Engines) -> dict[str, Rows]:
    """The table's rows as delta-rs, Spark, Sail and DuckDB read them."""
    files = store.files(table, store.version(table), date.min, date.max)
    found = {"delta-rs": store.read(table)}
    spark = engines["spark"]
    found["spark"] = spark.rows(spark.spark.read.format("delta").load(str(store.path(table))))
    sail = engines["sail"]
    found["sail"] = sail.rows(sail.read(files, table.schema))
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        sql = "select * from read_parquet(?, hive_partitioning = true)"
        found["duckdb"] = connection.sql(sql, params=[files]).to_arrow_table()
    return {name: comparable(rows, table) for name, rows in found.items()}


@pytest.mark.parametrize("writers", [("delta_rs", "delta_spark"), ("delta_spark", "delta_rs")], ids="+".join)
@pytest.mark.parametrize("table", [*DERIVED, *BOARD_TABLES, CORRECTIONS], ids=lambda table: table.name)
def test_a_table_of_both_stores_reads_the_same_everywhere(
    table: Table, writers: tuple[str, str], tmp_path: Path, engines: Engines
) -> None:
    spark = engines["spark"]
    first, second = (store_of(kind, tmp_path / "a lake é", spark) for kind in writers)
    old, new = some_rows(table, [ONE, TWO, THREE], 0), some_rows(table, [TWO, THREE], 5)
    fences = [f"{table.name}/{day}" for day in (ONE, TWO, THREE)]
    first.replace(table, ONE, THREE, old, Transaction(dict.fromkeys(fences, 1), "run-1", (ONE, THREE)))
    second.replace(table, TWO, THREE, new, Transaction(dict.fromkeys(fences[1:], 2), "run-2", (TWO, THREE)))

    kept = old.filter(pa.compute.equal(old["day"], pa.scalar(ONE)))
    due = comparable(pa.concat_tables([kept, new]), table)
    for engine, rows in read_everywhere(first, table, engines).items():
        assert rows == due, f"{engine} reads other rows"
    assert first.transaction_versions(table, fences) == dict(zip(fences, [1, 2, 2], strict=True))

    made = [commit for commit in first.commits_after(table, 0) if commit.run_id]
    assert [commit.run_id for commit in made] == ["run-1", "run-2"]
    for commit, kind in zip(made, writers, strict=True):
        assert commit.engine.startswith(ENGINE_INFO[kind])
    assert shown_by_spark(first, table, engines) == ["run-1", "run-2"]
    assert protocols(first, table) == {(1, 2)}
    for file in first.path(table).rglob("day=*/*.parquet"):
        assert "day" not in pq.read_schema(file).names, "engines take the day from the folder"


def shown_by_spark(store: Store, table: Table, engines: Engines) -> list[str]:
    """Run ids of DESCRIBE HISTORY, oldest first."""
    spark = engines["spark"]
    history = spark.rows(spark.spark.sql(f"DESCRIBE HISTORY delta.`{store.path(table)}`").orderBy("version"))
    metadata = [json.loads(text or "{}") for text in history["userMetadata"].to_pylist()]
    return [one["run_id"] for one in metadata if "run_id" in one]


def protocols(store: Store, table: Table) -> set[tuple[int, int]]:
    """Every protocol that the log has ever named."""
    lines = [
        json.loads(line)
        for file in (store.path(table) / "_delta_log").glob("[0-9]*.json")
        for line in file.read_text().splitlines()
    ]
    named = [line["protocol"] for line in lines if "protocol" in line]
    return {(protocol["minReaderVersion"], protocol["minWriterVersion"]) for protocol in named}


def test_fences_and_rows_outlive_the_log_in_a_checkpoint_of_spark(tmp_path: Path, engines: Engines) -> None:
    kinds = ("delta_rs", "delta_spark")
    by_rs, by_spark = (store_of(kind, tmp_path / "lake", engines["spark"]) for kind in kinds)
    rows = some_rows(DAILY_COUNTS, [ONE], 0)
    by_rs.replace(DAILY_COUNTS, ONE, ONE, rows, Transaction({"d/1": 5}, "run-1"))
    while by_rs.version(DAILY_COUNTS) < 8:
        by_rs.append(DAILY_COUNTS, DAILY_COUNTS.schema.empty_table())
    assert by_spark.replace(DAILY_COUNTS, TWO, TWO, some_rows(DAILY_COUNTS, [TWO], 1), Transaction({"d/2": 6})) == 10
    log = by_rs.path(DAILY_COUNTS) / "_delta_log"
    assert (log / f"{10:020}.checkpoint.parquet").exists()
    for version in range(10):
        (log / f"{version:020}.json").unlink()
    assert by_rs.transaction_versions(DAILY_COUNTS, ["d/1", "d/2"]) == {"d/1": 5, "d/2": 6}
    assert by_rs.sequence(DAILY_COUNTS) == 3, "one replace, one claim, one replace on Spark"
    assert by_rs.read(DAILY_COUNTS).num_rows == 20
    by_rs.replace(DAILY_COUNTS, TWO, TWO, DAILY_COUNTS.schema.empty_table(), Transaction({"d/2": 7}))
    where = partition_filter(ONE, THREE)
    spark = engines["spark"]
    left = spark.rows(spark.spark.read.format("delta").load(str(by_rs.path(DAILY_COUNTS))).where(where))
    assert comparable(left, DAILY_COUNTS) == comparable(rows, DAILY_COUNTS)


def test_a_range_of_years_keeps_every_instant(tmp_path: Path, engines: Engines) -> None:
    """Days before 1582 and the calendar's last, in folders and columns, replaced by Spark."""
    days = [date.min, date(1582, 10, 4), date(1969, 12, 31), date.max]
    store = store_of("delta_spark", tmp_path / "lake", engines["spark"])
    rows = some_rows(DAILY_COUNTS, days, 2)
    store.replace(DAILY_COUNTS, date.min, date.max, rows, Transaction({}, "run"))
    due = comparable(rows, DAILY_COUNTS)
    for engine, found in read_everywhere(store, DAILY_COUNTS, engines).items():
        assert found == due, f"{engine} reads other rows"
    counts = store.row_counts(DAILY_COUNTS, store.version(DAILY_COUNTS), date.min, date.max)
    assert counts == dict.fromkeys(days, 10)
    assert days[1] + timedelta(days=1) not in counts
