"""Laws of the intake: nothing gets lost, and no row's fate depends on its neighbours."""

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daybreak.errors import UnreadableInputError
from daybreak.events import Kind
from daybreak.intake.contract import Intake, Taken
from daybreak.intake.files import read_file

RECEIVED = datetime(2026, 3, 2, tzinfo=UTC)
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
INSTANTS = st.one_of(
    st.datetimes(timezones=st.just(UTC), max_value=datetime(2026, 3, 1)).map(lambda at: at.isoformat()),  # noqa: DTZ001
    st.sampled_from(
        ["2026-03-01T12:00:00", "2026-03-01T12:00:00.1234567Z", "2026-03-01 12:00+0100", "2026-03-01", "x", ""]
    ),
    st.integers(),
    st.none(),
)
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "event_id": st.one_of(ANY_TEXT, st.integers(), st.none(), st.booleans(), st.lists(st.integers())),
        "item_id": st.one_of(ANY_TEXT, st.integers(-(2**70), 2**70), st.just("x" * 513)),
        "occurred_at": INSTANTS,
        "received_at": INSTANTS,
        "weight": st.one_of(st.integers(-1, 5), st.floats(allow_nan=False), ANY_TEXT, st.none()),
        "colour": st.one_of(ANY_TEXT, st.none(), st.lists(ANY_TEXT, max_size=2)),
        "region": st.one_of(ANY_TEXT, st.none()),
    },
)
GOOD = {"event_id": "g", "item_id": "G", "occurred_at": "2026-03-01T12:00:00Z"}
LINES = st.one_of(
    ROWS.map(lambda row: json.dumps(row).encode()),
    st.just(json.dumps(GOOD).encode()),
    st.binary(max_size=12).map(lambda data: data.replace(b"\n", b"")),
)
few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def take_all(lines: list[bytes], **options: Any) -> list[Taken]:
    intake = Intake(
        Kind.ITEMS,
        source="s",
        received_at=RECEIVED,
        default_timezone="Europe/London",
        future_tolerance=timedelta(minutes=5),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_bytes(b"\n".join(lines))
        return [intake.take(batch) for batch in read_file(path, **options)]


def fates(taken: list[Taken]) -> list[tuple[Any, ...]]:
    """Per row in offset order: what it was accepted as, or the code it was refused with."""
    good = [
        (row["offset"], row["event_id"], row["item_id"], row["occurred_at"], row["weight"], row["region"])
        for part in taken
        for row in part.accepted.to_pylist()
    ]
    bad = [(row["offset"], row["code"]) for part in taken for row in part.refused.to_pylist()]
    return sorted(good + bad, key=lambda fate: fate[0])


@few
@given(st.lists(LINES, max_size=12))
def test_every_line_is_accepted_or_refused_exactly_once(lines: list[bytes]) -> None:
    lines = [json.dumps(GOOD).encode(), *lines]
    count = sum(bool(line.strip()) for line in lines)
    taken = take_all(lines)
    assert sum(part.read for part in taken) == count
    assert [fate[0] for fate in fates(taken)] == list(range(count))
    for part in taken:
        part.accepted.validate(full=True)
        part.refused.validate(full=True)


@few
@given(LINES.filter(lambda line: line.strip()), st.lists(LINES.filter(lambda line: line.strip()), max_size=5))
def test_a_rows_fate_does_not_depend_on_its_neighbours(line: bytes, others: list[bytes]) -> None:
    good = json.dumps(GOOD).encode()
    alone = fates(take_all([good, line]))[1]
    crowd = fates(take_all([good, line, *others, *[good] * 100]))[1]
    assert alone == crowd


@few
@given(st.lists(LINES.filter(lambda line: line.strip()), min_size=1, max_size=20))
def test_batch_size_changes_nothing(lines: list[bytes]) -> None:
    lines = [json.dumps(GOOD).encode(), *lines]
    assert fates(take_all(lines, batch_rows=1)) == fates(take_all(lines))


@few
@given(st.binary(min_size=1, max_size=200), st.sampled_from([".jsonl", ".csv", ".parquet", ".json.gz", ".csv.gz"]))
def test_any_bytes_are_read_or_refused_in_one_line(data: bytes, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"any{suffix}"
        path.write_bytes(data)
        message = ""
        try:
            assert all(isinstance(batch.columns, pa.Table) for batch in read_file(path))
        except UnreadableInputError as error:
            message = str(error)
    assert "\n" not in message
