"""Which days are complete, from the table `progress`: how far each partition of each source has come."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta

from daybreak.errors import InputIncompleteError
from daybreak.settings import Settings
from daybreak.windows import days_between
from lakehouse.stores.store import StoreReader
from lakehouse.tables import registry as tables

OpenDays = Mapping[tuple[str, int], date]
"""(source, partition) -> the first day of it that is not complete yet."""


def open_days(store: StoreReader, settings: Settings, kind: str = "items") -> OpenDays:
    """The first day that is not yet complete, of each partition that carries events of `kind`.

    A log's progress counts once it has passed the end of a day by the grace; a declared one as it stands.
    """
    first_open: dict[tuple[str, int], date] = {}
    for row in store.read(tables.PROGRESS).to_pylist():
        if not row["source"].endswith(f"/{kind}"):
            continue
        grace = timedelta(0) if row["basis"] == "declared" else settings.night.complete_grace
        reached = row["complete_through"] - grace
        key = (row["source"], row["partition"])
        first_open[key] = max(first_open.get(key, date.min), reached.date())
    return first_open


def is_complete(first_open: OpenDays, day: date) -> bool:
    """Whether every partition has passed the end of `day`; false when no partition has reported yet."""
    return bool(first_open) and all(open_day > day for open_day in first_open.values())


def is_complete_in_all(opened: Iterable[OpenDays], day: date) -> bool:
    """Whether `day` is complete in the events of every kind that these are of."""
    return all(is_complete(each, day) for each in opened)


def require_complete(store: StoreReader, settings: Settings, first: date, last: date, kind: str = "items") -> None:
    """Passes when all days are complete in the events of `kind`.

    Raises:
        InputIncompleteError: naming the first open day and the partition that holds it up.
    """
    first_open = open_days(store, settings, kind)
    for day in days_between(first, last):
        if not is_complete(first_open, day):
            behind = [f"{source}[{partition}]" for (source, partition), d in first_open.items() if d <= day]
            raise InputIncompleteError(
                f"{day} is not complete: {'waiting for ' + ', '.join(behind) if behind else 'no source has said so'}; "
                f"ingest the rest with --complete-through {day}, or count what is there with --allow-incomplete"
            )
