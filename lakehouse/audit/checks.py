"""Great Expectations over one-row profiles: the engine looks at every row, the suite at one.

Importing Great Expectations takes seconds, so `start_import` does it while the engine works.
"""

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.tables.registry import TABLES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.engines.engine import Engine

Profile = dict[str, Any]


@dataclass(frozen=True)
class CheckResult:
    """One expectation and whether it held."""

    table: str
    expectation: str
    column: str
    observed: str
    passed: bool

    @property
    def message(self) -> str:
        """What is wrong, or what held, in words."""
        verb = "holds" if self.passed else "does not hold"
        return f"{self.table}.{self.column}: {self.expectation} {verb} (found {self.observed})"

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON keeps it."""
        return asdict(self)


def start_import() -> threading.Thread:
    """Begin to import Great Expectations; `validate` waits for it."""
    thread = threading.Thread(target=_library, name="import-great-expectations", daemon=True)
    thread.start()
    return thread


def profile(engine: "Engine", frame: "DataFrame", table: Table) -> Profile:
    """One row about the staged table: `rows`, `distinct_grains`, `nulls_X` and `min_X` per column, `total_X`.

    Totals are summed as decimal(38,0): a sum of longs wraps silently.
    """
    from pyspark.sql import functions as F

    summed = [name for name in ("count", "event_count") if name in table.schema.names]
    wide = frame
    for name in summed:
        wide = wide.withColumn(f"wide_{name}", F.col(name).cast("decimal(38,0)"))
    found = engine.one_row(
        wide.agg(
            F.sum(F.lit(1).cast("bigint")).alias("rows"),
            *(F.sum(F.col(name).isNull().cast("int").cast("bigint")).alias(f"nulls_{name}") for name in table.required),
            *(F.min(name).alias(f"min_{name}") for name in table.at_least),
            *(F.sum(f"wide_{name}").alias(f"total_{name}") for name in summed),
        )
    )
    grains = engine.one_row(frame.select(*table.grain).distinct().agg(F.sum(F.lit(1).cast("bigint")).alias("n")))
    numbers = {name: int(value) if value is not None else 0 for name, value in found.items()}
    for name in table.at_least:
        if found[f"min_{name}"] is None:
            numbers.pop(f"min_{name}")
    return {**numbers, "distinct_grains": int(grains["n"] or 0)}


def validate(profiles: Mapping[str, Profile], *, staged_rows: Mapping[str, int], event_total: int) -> list[CheckResult]:
    """Every expectation that the registry implies, checked on the profiles.

    Not null, unique grain, smallest values, as many rows as were staged; counts of hours and days agree and
    their events add up to `event_total`.
    """
    gx = _library()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    weight = profiles["hourly_counts"]["total_count"] if "hourly_counts" in profiles else None
    results = []
    for name, found in profiles.items():
        equal, at_least = _bounds(TABLES[name], found, staged_rows[name], event_total, weight)
        results += _validate(gx, context, name, found, equal, at_least)
    return results


def _bounds(
    table: Table, found: Profile, staged: int, events: int, weight: int | None
) -> tuple[dict[str, int], dict[str, int]]:
    equal = {f"nulls_{name}": 0 for name in table.required}
    equal |= {"rows": staged, "distinct_grains": staged}
    if table.name in ("hourly_counts", "daily_counts"):
        if "total_event_count" in found:
            equal["total_event_count"] = events
        if "total_count" in found and weight is not None:
            equal["total_count"] = weight
    at_least = {f"min_{name}": least for name, least in table.at_least.items() if f"min_{name}" in found}
    return equal, at_least


def _validate(
    gx: Any, context: Any, name: str, found: Profile, equal: Mapping[str, int], at_least: Mapping[str, int]
) -> list[CheckResult]:
    import pandas as pd

    frame = pd.DataFrame([{column: _comparable(value) for column, value in found.items()}])
    batch = (
        context.data_sources.add_pandas(f"staged {name}")
        .add_dataframe_asset(name)
        .add_batch_definition_whole_dataframe("profile")
        .get_batch(batch_parameters={"dataframe": frame})
    )
    expected = gx.expectations
    suite = gx.ExpectationSuite(
        name=name,
        expectations=[
            *(expected.ExpectColumnValuesToBeInSet(column=c, value_set=[_comparable(v)]) for c, v in equal.items()),
            *(expected.ExpectColumnValuesToBeBetween(column=c, min_value=v) for c, v in at_least.items()),
        ],
    )
    due = {c: f"= {v}" for c, v in equal.items()} | {c: f">= {v}" for c, v in at_least.items()}
    outcome = batch.validate(suite, result_format="BOOLEAN_ONLY")
    results = []
    for one in outcome.results:
        column = str(one.expectation_config.kwargs["column"])
        passed = bool(one.success) and not one.exception_info.get("raised_exception", False)
        results.append(CheckResult(name, due[column], column, str(found.get(column)), passed))
    return results


def _comparable(value: int) -> int | str:
    """Integers past 64 bits as text: pandas would make floats of them."""
    return value if -(2**63) <= value < 2**63 else str(value)


def _library() -> Any:
    """Great Expectations, silent: no analytics, no network."""
    import os

    os.environ.setdefault("GX_ANALYTICS_ENABLED", "False")
    import great_expectations as gx

    return gx
