"""A file is taken in once as what it is, and as something else beside that."""

import gzip
from pathlib import Path

import pytest

from daybreak import clock
from daybreak.errors import UnreadableInputError
from daybreak.events import Kind
from daybreak.settings import Settings
from jobs.ingest import Ingested, ingest_file
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables import registry as tables

SCORE = '{"event_id": "1", "player_id": "ana", "match_id": "m", "points": 1, "occurred_at": "2026-03-01T10:00:00Z"}\n'


@pytest.mark.parametrize("order", [(Kind.ITEMS, Kind.SCORES), (Kind.SCORES, Kind.ITEMS)])
def test_a_file_that_was_taken_for_the_wrong_kind_can_be_taken_in_again(
    tmp_path: Path, order: tuple[Kind, ...]
) -> None:
    settings = Settings(home=tmp_path)
    store = DeltaRsStore(settings.lake_root)
    file = tmp_path / "scores.jsonl"
    file.write_text(SCORE)

    def taken(kind: Kind) -> Ingested:
        return ingest_file(store, settings, clock.now, file, kind=kind, mapping={}, default_timezone=None)

    found = {kind: taken(kind) for kind in order}
    assert (found[Kind.ITEMS].refused, found[Kind.SCORES].accepted) == (1, 1)
    assert all(taken(kind).skipped for kind in order)
    assert store.read(tables.SCORE_EVENTS).num_rows == store.read(tables.REFUSALS).num_rows == 1


def test_progress_counts_every_row_and_refusals_are_counted_by_code(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    store = DeltaRsStore(settings.lake_root)
    file = tmp_path / "scores.jsonl"
    file.write_text(SCORE + "no JSON\n" + SCORE.replace('"points": 1', '"points": "x"'))
    read: list[int] = []
    done = ingest_file(
        store, settings, clock.now, file, kind=Kind.SCORES, mapping={}, default_timezone=None, progress=read.append
    )
    assert (done.read, done.accepted, done.refused) == (sum(read), 1, 2) == (3, 1, 2)
    assert done.refused_by_code == {"malformed": 1, "bad_points": 1}
    assert sorted(store.read(tables.REFUSALS)["code"].to_pylist()) == ["bad_points", "malformed"]


def test_a_file_cut_off_in_the_middle_is_named_and_nothing_of_it_is_taken_in(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    store = DeltaRsStore(settings.lake_root)
    file = tmp_path / "scores.jsonl.gz"
    file.write_bytes(gzip.compress(SCORE.encode() * 1000)[:-9])
    with pytest.raises(UnreadableInputError, match=r"scores\.jsonl\.gz is not whole gzip data"):
        ingest_file(store, settings, clock.now, file, kind=Kind.SCORES, mapping={}, default_timezone=None)
    assert store.read(tables.SCORE_EVENTS).num_rows == store.read(tables.REFUSALS).num_rows == 0
