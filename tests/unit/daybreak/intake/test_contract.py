"""The contract, row by row: what is accepted, and which code each refusal gets."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daybreak.errors import UsageError
from daybreak.events import REFUSAL, Kind
from daybreak.intake.contract import Intake, Taken
from daybreak.intake.files import read_file
from tests.builders import raw_row

RECEIVED = datetime(2026, 3, 2, tzinfo=UTC)


def taken(tmp_path: Path, *rows: Any, kind: Kind = Kind.ITEMS, zone: str | None = None) -> Taken:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return judge(path, kind, zone)


def judge(path: Path, kind: Kind = Kind.ITEMS, zone: str | None = None) -> Taken:
    intake = Intake(
        kind,
        source="s",
        received_at=RECEIVED,
        default_timezone=zone,
        future_tolerance=timedelta(minutes=5),
    )
    (batch,) = read_file(path)
    result = intake.take(batch)
    assert result.accepted.schema == kind.schema
    assert result.refused.schema == REFUSAL
    assert len(result.accepted) + len(result.refused) == result.read
    result.accepted.validate(full=True)
    return result


ITEM_REFUSALS = [
    ("{", "malformed"),
    (raw_row(schema_version="new"), "malformed"),
    (raw_row(event_id=None), "missing_field"),
    (raw_row(event_id=""), "missing_field"),
    (raw_row(item_id=None), "missing_field"),
    (raw_row(occurred_at=None), "missing_field"),
    (raw_row(occurred_at=""), "missing_field"),
    (raw_row(event_id="x" * 257), "too_long"),
    (raw_row(item_id="é" * 256 + "x"), "too_long"),
    (raw_row(occurred_at=1772366400), "bad_timestamp"),
    (raw_row(occurred_at="1772366400"), "bad_timestamp"),
    (raw_row(occurred_at="2026-02-29T00:00:00Z"), "bad_timestamp"),
    (raw_row(occurred_at="2026-03-01"), "bad_timestamp"),
    (raw_row(occurred_at="2026-03-01T12Z"), "bad_timestamp"),
    (raw_row(occurred_at="2026-03-01T12+01:00"), "bad_timestamp"),
    (raw_row(occurred_at="2026-03-01T24:00:00Z"), "bad_timestamp"),
    (raw_row(occurred_at="2026-03-01T12:00:00.1234567890Z"), "bad_timestamp"),
    (raw_row(occurred_at="2026-03-01T12:00:00+25:00"), "bad_timestamp"),
    (raw_row(occurred_at="0000-03-01T12:00:00Z"), "bad_timestamp"),
    (raw_row(occurred_at="0001-01-01T00:00:00+01:00"), "bad_timestamp"),
    (raw_row(received_at="soon"), "bad_timestamp"),
    (raw_row(occurred_at="2026-03-01T12:00:00"), "no_timezone"),
    (raw_row(weight=0), "bad_weight"),
    (raw_row(weight=-1), "bad_weight"),
    (raw_row(weight=1.5), "bad_weight"),
    (raw_row(weight="many"), "bad_weight"),
    (raw_row(weight=2**32 + 1), "bad_weight"),
    (raw_row(weight=10**30), "bad_weight"),
    (raw_row(occurred_at="2026-03-02T00:05:00.000001Z"), "far_future"),
]


@pytest.mark.parametrize(("row", "code"), ITEM_REFUSALS)
@pytest.mark.parametrize("company", [0, 200])
def test_a_broken_contract_has_its_code_alone_and_in_a_crowd(tmp_path: Path, row: Any, code: str, company: int) -> None:
    result = taken(tmp_path, *[raw_row(event_id=f"g{n}") for n in range(company)], row, raw_row())
    (refusal,) = result.refused.to_pylist()
    assert refusal["code"] == code
    assert refusal["offset"] == company
    assert refusal["reason"]
    assert refusal["raw"] == (row if isinstance(row, str) else json.dumps(row))[:4096]
    assert len(result.accepted) == company + 1


def test_the_first_code_in_order_wins(tmp_path: Path) -> None:
    row = raw_row(event_id=None, item_id="x" * 600, occurred_at="never", weight=0)
    assert taken(tmp_path, row).refused["code"].to_pylist() == ["missing_field"]
    row = raw_row(item_id="x" * 600, occurred_at="never", weight=0)
    assert taken(tmp_path, row).refused["code"].to_pylist() == ["too_long"]


@pytest.mark.parametrize(
    ("text", "micros_text"),
    [
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00"),
        ("2026-03-01 12:00Z", "2026-03-01T12:00:00"),
        ("2026-03-01T12:00:00.5Z", "2026-03-01T12:00:00.5"),
        ("2026-03-01T12:00:00.123456789Z", "2026-03-01T12:00:00.123456"),
        ("2026-03-01T12:00:00+05:30", "2026-03-01T06:30:00"),
        ("2026-03-01T12:00:00-0800", "2026-03-01T20:00:00"),
        ("2026-03-02T00:05:00Z", "2026-03-02T00:05:00"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00"),
        ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999"),
    ],
)
def test_instants_are_microseconds_utc_truncated(tmp_path: Path, text: str, micros_text: str) -> None:
    expected = datetime.fromisoformat(micros_text).replace(tzinfo=UTC)
    for company in ([], [raw_row(occurred_at="never")]):
        result = taken(tmp_path, raw_row(occurred_at=text), *company)
        assert result.accepted["occurred_at"].to_pylist() == [expected]
        assert result.accepted["day"].to_pylist() == [expected.date()]


@pytest.mark.parametrize(
    ("local", "outcome"),
    [
        ("2025-07-01T12:00:00", datetime(2025, 7, 1, 11, tzinfo=UTC)),
        ("2025-12-01T12:00:00", datetime(2025, 12, 1, 12, tzinfo=UTC)),
        ("2025-03-30T01:30:00", "bad_timestamp"),
        ("2025-10-26T01:30:00", "bad_timestamp"),
    ],
)
def test_a_local_time_that_is_missing_or_twofold_is_refused(tmp_path: Path, local: str, outcome: Any) -> None:
    pq.write_table(
        pa.table({"event_id": ["e"], "item_id": ["A"], "occurred_at": [datetime.fromisoformat(local)]}),
        tmp_path / "e.parquet",
    )
    for result in (
        taken(tmp_path, raw_row(occurred_at=local), zone="Europe/London"),
        judge(tmp_path / "e.parquet", zone="Europe/London"),
    ):
        got = result.accepted["occurred_at"].to_pylist() or result.refused["code"].to_pylist()
        assert got == [outcome]


def test_arrow_timestamps_of_any_unit_and_naive_ones_need_a_zone(tmp_path: Path) -> None:
    at = datetime.fromisoformat("2026-03-01T12:00:01")
    for unit in ("s", "ms", "us", "ns"):
        column = pa.array([at], pa.timestamp(unit))
        pq.write_table(pa.table({"event_id": ["e"], "item_id": ["A"], "occurred_at": column}), tmp_path / "e.parquet")
        assert judge(tmp_path / "e.parquet").refused["code"].to_pylist() == ["no_timezone"]
        accepted = judge(tmp_path / "e.parquet", zone="UTC").accepted
        assert accepted["occurred_at"].to_pylist() == [at.replace(tzinfo=UTC)]
    numbers = pa.table({"event_id": ["e"], "item_id": ["A"], "occurred_at": [1772366400]})
    pq.write_table(numbers, tmp_path / "e.parquet")
    refusal = judge(tmp_path / "e.parquet", zone="UTC").refused.to_pylist()[0]
    assert refusal["code"] == "bad_timestamp"
    assert "1772366400 is int64" in refusal["reason"]


def test_bytes_are_ids_where_they_are_utf_8_and_dictionaries_are_their_values(tmp_path: Path) -> None:
    table = pa.table(
        {
            "event_id": pa.array(["e1", "e2"]).dictionary_encode(),
            "item_id": pa.array(["café".encode(), b"\xff"]),
            "occurred_at": ["2026-03-01T12:00:00Z"] * 2,
        }
    )
    pq.write_table(table, tmp_path / "e.parquet")
    result = judge(tmp_path / "e.parquet")
    assert result.accepted.select(["event_id", "item_id"]).to_pylist() == [{"event_id": "e1", "item_id": "café"}]
    assert result.refused.select(["code", "offset"]).to_pylist() == [{"code": "missing_field", "offset": 1}]


def test_weights(tmp_path: Path) -> None:
    given = [None, 1, "2", 3.0, "4.0", 2**32, 2_147_483_647]
    rows = [raw_row(weight=weight) for weight in given]
    assert taken(tmp_path, *rows).accepted["weight"].to_pylist() == [1, 1, 2, 3, 4, 2**32, 2_147_483_647]


def test_points_are_exact_decimals(tmp_path: Path) -> None:
    texts = ["-0.1", "0", "1.2345", "99999999999999.9999", "1e2", "1.50000"]
    good = [
        f'{{"event_id":"e","match_id":"m","player_id":"p","points":{text},"occurred_at":"2026-03-01T12:00:00Z"}}'
        for text in texts
    ]
    result = taken(tmp_path, *good, kind=Kind.SCORES)
    assert result.accepted["points"].to_pylist() == [Decimal(text) for text in texts]
    for bad in ("1.23456", "1e14", '"ten"', "0.00001"):
        row = good[0].replace("-0.1", bad)
        assert taken(tmp_path, row, kind=Kind.SCORES).refused["code"].to_pylist() == ["bad_points"], bad
    missing = raw_row(Kind.SCORES, points=None)
    assert taken(tmp_path, missing, kind=Kind.SCORES).refused["code"].to_pylist() == ["missing_field"]


def test_ids_are_kept_byte_for_byte(tmp_path: Path) -> None:
    ids = ["Lets\nCrash", "café", "cafe\u0301", "😀", "שלום", " a ", "A", "a", "x" * 512, "\u0000"]
    rows = [raw_row(event_id=f"e{n}", item_id=item) for n, item in enumerate(ids)]
    assert taken(tmp_path, *rows).accepted["item_id"].to_pylist() == ids


def test_unknown_fields_go_to_extra_and_known_ones_are_filled(tmp_path: Path) -> None:
    rows = [raw_row(colour="red", size=3, source="fake"), raw_row(region="eu")]
    first, second = taken(tmp_path, *rows).accepted.to_pylist()
    assert dict(first["extra"]) == {"colour": "red", "size": "3", "source": "fake"}
    assert second["extra"] is None
    assert (first["source"], first["partition"], first["offset"], second["offset"]) == ("s", 0, 0, 1)
    assert (first["schema_version"], second["region"], first["region"]) == (1, "eu", None)
    assert first["received_at"] == RECEIVED


def test_received_at_of_the_row_wins_and_dates_the_refusal(tmp_path: Path) -> None:
    own = "2026-03-01T12:01:00Z"
    result = taken(tmp_path, raw_row(received_at=own), raw_row(received_at=own, weight=0), raw_row())
    assert result.accepted["received_at"].to_pylist() == [datetime(2026, 3, 1, 12, 1, tzinfo=UTC), RECEIVED]
    assert result.refused["day"].to_pylist() == [date(2026, 3, 1)]


def test_raw_text_is_cut(tmp_path: Path) -> None:
    result = taken(tmp_path, raw_row(item_id="x" * 9000), "{" + "y" * 9000)
    assert [len(raw) for raw in result.refused["raw"].to_pylist()] == [4096, 4096]


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="Mars/Olympus"):
        Intake(
            Kind.ITEMS,
            source="s",
            received_at=RECEIVED,
            default_timezone="Mars/Olympus",
            future_tolerance=timedelta(0),
        )
    naive = RECEIVED.replace(tzinfo=None)
    with pytest.raises(UsageError, match="aware"):
        Intake(Kind.ITEMS, source="s", received_at=naive, default_timezone=None, future_tolerance=timedelta(0))
