"""A file is taken in once as what it is, and as something else beside that."""

from pathlib import Path

import pytest

from daybreak import clock
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
