"""Files as rows: every format, and every way a file can be wrong."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daybreak.errors import UnreadableInputError
from daybreak.intake.files import RawBatch, content_hash, read_file

GOOD = {"event_id": "e1", "item_id": "A", "occurred_at": "2026-03-01T12:00:00Z"}


def lines(tmp_path: Path, *rows: Any, name: str = "events.jsonl") -> Path:
    path = tmp_path / name
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def only(path: Path, **options: Any) -> RawBatch:
    (batch,) = read_file(path, **options)
    return batch


def test_formats_give_the_same_rows(tmp_path: Path) -> None:
    rows = [GOOD | {"item_id": item} for item in ("Lets\nCrash", "café", "cafe\u0301", "😀", "עברית", 'x,"y')]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "e.parquet")
    text = ["event_id,item_id,occurred_at"] + [
        ",".join('"' + value.replace('"', '""') + '"' for value in row.values()) for row in rows
    ]
    lines(tmp_path, *text, name="e.csv")
    lines(tmp_path, *text, name="e.csv.gz")
    lines(tmp_path, *rows, name="e.ndjson")
    lines(tmp_path, *rows, name="e.json.gz")
    for name in ("e.parquet", "e.csv", "e.csv.gz", "e.ndjson", "e.json.gz"):
        batch = only(tmp_path / name)
        assert batch.columns.select(table.column_names).to_pylist() == rows, name
        assert batch.offsets.to_pylist() == list(range(len(rows)))


def test_broken_json_lines_are_set_aside_with_reason_raw_text_and_number(tmp_path: Path) -> None:
    path = lines(tmp_path, GOOD, "{", "", "  ", "[1]", GOOD | {"event_id": ["x"]}, '{"item_id": "\\ud800"}', GOOD)
    batch = only(path)
    assert batch.offsets.to_pylist() == [0, 5]
    broken = {row["offset"]: (row["raw"], row["reason"]) for row in batch.broken.to_pylist()}
    assert sorted(broken) == [1, 2, 3, 4]
    assert broken[1][0] == "{"
    assert "not JSON" in broken[1][1]
    assert "not an object" in broken[2][1]
    assert "event_id is a JSON list" in broken[3][1]
    assert "UTF-8" in broken[4][1]
    assert json.loads(batch.raw(np.array([1]))[0]) == GOOD


def test_one_bad_byte_costs_one_row_not_the_block(tmp_path: Path) -> None:
    good = [json.dumps(GOOD | {"event_id": f"e{n}"}).encode() for n in range(1000)]
    good[517] = good[517].replace(b"A", b"\xff")
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"\n".join(good))
    batch = only(path)
    assert batch.broken["offset"].to_pylist() == [517]
    assert batch.columns["event_id"].to_pylist() == [f"e{n}" for n in range(1000) if n != 517]
    assert batch.offsets.to_pylist() == [n for n in range(1000) if n != 517]


def test_batches_continue_the_numbering(tmp_path: Path) -> None:
    rows: list[Any] = [GOOD | {"event_id": f"e{n}"} for n in range(500)]
    rows[100] = rows[400] = "nonsense"
    batches = list(read_file(lines(tmp_path, *rows), batch_rows=50))
    assert len(batches) > 3
    offsets = [n for batch in batches for n in batch.offsets.to_pylist()]
    assert offsets == [n for n in range(500) if n not in (100, 400)]
    assert [n for batch in batches for n in batch.broken["offset"].to_pylist()] == [100, 400]
    ids = [text for batch in batches for text in batch.columns["event_id"].to_pylist()]
    assert ids == [f"e{n}" for n in offsets]


def test_numbers_as_ids_and_fields_of_changing_type(tmp_path: Path) -> None:
    first, second = GOOD | {"event_id": 123}, GOOD | {"event_id": "x", "weight": "2"}
    batch = only(lines(tmp_path, first, second, GOOD | {"event_id": 9, "weight": 2.5}))
    assert batch.columns["event_id"].to_pylist() == ["123", "x", "9"]


@pytest.mark.parametrize("value", ["2011-12-05T17:24:00", "2011-12-05 17:24:00", "007", "1.50"])
def test_extras_keep_their_text(tmp_path: Path, value: str) -> None:
    late = [GOOD] * 100 + [GOOD | {"note": value}]
    batch = only(lines(tmp_path, *late))
    assert batch.columns["note"].to_pylist()[-1] == value
    nested = only(lines(tmp_path, GOOD | {"note": {"a": [1, None]}}, name="n.jsonl"))
    assert [json.loads(text) for text in nested.columns["note"].to_pylist()] == [{"a": [1, None]}]


def test_mapping_renames_and_a_displaced_column_keeps_its_values(tmp_path: Path) -> None:
    batch = only(lines(tmp_path, GOOD | {"ts": "2026-03-02T00:00:00Z"}), mapping={"ts": "occurred_at"})
    assert batch.columns["occurred_at"].to_pylist() == ["2026-03-02T00:00:00Z"]
    assert batch.columns["occurred_at_"].to_pylist() == [GOOD["occurred_at"]]


def test_csv_rows_of_the_wrong_width_are_broken_and_empty_means_absent(tmp_path: Path) -> None:
    text = "event_id,item_id,occurred_at\n1,A,t\n2\n3,,t\n4,A,t,more\n5,A,t\n6\n"
    (tmp_path / "e.csv").write_text(text)
    batch = only(tmp_path / "e.csv")
    assert batch.columns["event_id"].to_pylist() == ["1", "3", "5"]
    assert batch.columns["item_id"].to_pylist() == ["A", None, "A"]
    assert batch.offsets.to_pylist() == [0, 2, 4]
    assert batch.broken.select(["offset", "raw"]).to_pylist() == [
        {"offset": 1, "raw": "2"},
        {"offset": 3, "raw": "4,A,t,more"},
        {"offset": 5, "raw": "6"},
    ]


def _half_parquet(path: Path) -> None:
    pq.write_table(pa.table({"event_id": ["x"] * 1000}), path)
    path.write_bytes(path.read_bytes()[:-100])


UNREADABLE = {
    "empty.jsonl": lambda path: path.write_bytes(b""),
    "mark.jsonl": lambda path: path.write_bytes(b"\xef\xbb\xbf"),
    "blank_mark.jsonl": lambda path: path.write_bytes(b"\xef\xbb\xbf \n"),
    "blank.jsonl": lambda path: path.write_bytes(b"\n \n"),
    "random.jsonl": lambda path: path.write_bytes(np.random.default_rng(1).bytes(5000)),
    "random.csv": lambda path: path.write_bytes(np.random.default_rng(1).bytes(5000)),
    "random.parquet": lambda path: path.write_bytes(np.random.default_rng(1).bytes(5000)),
    "random.csv.gz": lambda path: path.write_bytes(np.random.default_rng(1).bytes(5000)),
    "cut.jsonl.gz": lambda path: path.write_bytes(gzip.compress(json.dumps(GOOD).encode() * 99)[:-9]),
    "half.parquet": _half_parquet,
    "what.xml": lambda path: path.write_text("<a/>"),
    "missing.csv": lambda path: None,
    "folder.csv": lambda path: path.mkdir(),
    "list.json": lambda path: path.write_text(json.dumps([GOOD])),
    "pretty.json": lambda path: path.write_text(json.dumps(GOOD, indent=1)),
    "twice.csv": lambda path: path.write_text("event_id,item_id,item_id\n1,a,b\n"),
    "strange.jsonl": lambda path: path.write_text('{"a": 1}\n'),
    "strange.csv": lambda path: path.write_text("a,b\n1,2\n"),
    "strange.parquet": lambda path: pq.write_table(pa.table({"a": [1]}), path),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_file_is_one_line_that_names_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    UNREADABLE[name](path)
    with pytest.raises(UnreadableInputError) as caught:
        list(read_file(path))
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert ";" in message, "it says what to do"


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv", "e.parquet"])
def test_a_mapped_column_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "e.parquet":
        pq.write_table(pa.Table.from_pylist([GOOD]), path)
    else:
        lines(tmp_path, *([GOOD] if name == "e.jsonl" else ["event_id,item_id", "1,A"]), name=name)
    with pytest.raises(UnreadableInputError, match="'when'"):
        list(read_file(path, mapping={"when": "occurred_at"}))


def test_content_hash_is_sha256(tmp_path: Path) -> None:
    path = lines(tmp_path, GOOD)
    assert content_hash(path) == hashlib.sha256(path.read_bytes()).hexdigest()
