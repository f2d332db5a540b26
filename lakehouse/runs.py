"""The table `runs`: every finished run, and what it recorded of its days."""

from datetime import date

from lakehouse.stores.store import Store
from lakehouse.tables import registry as tables


def newest_days(store: Store, kind: str = "items") -> dict[date, dict[str, object]]:
    """What the newest run of `kind` recorded of each day, with its run_id and lake_version."""
    newest: dict[date, dict[str, object]] = {}
    runs = sorted(store.read(tables.RUNS).to_pylist(), key=lambda row: (row["committed_at"], row["run_id"]))
    for run in (run for run in runs if run["kind"] == kind):
        for day in run["days"]:
            newest[day["day"]] = day | {"run_id": run["run_id"], "lake_version": run["lake_version"]}
    return newest
