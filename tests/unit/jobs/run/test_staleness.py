"""Days of boards turn stale when the events that boards read change, and for nothing else."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from daybreak.rules.boards import Board, Boards
from daybreak.settings import Settings
from jobs.run.pin import day_pins
from jobs.run.staleness import rules_of, stale_board_days, stale_days
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables.registry import ITEM_EVENTS, RUNS, SCORE_EVENTS, Table

D1, D2 = date(2026, 3, 1), date(2026, 3, 2)
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def append(store: DeltaRsStore, table: Table, at: datetime) -> None:
    row = {field.name: None for field in table.schema}
    row |= {"day": at.date(), "occurred_at": at, "received_at": at, "event_id": "e", "source": "s"}
    row |= {"partition": 0, "offset": 0, "player_id": "ana", "points": 1, "item_id": "a", "weight": 1, "match_id": "m"}
    row = {name: value for name, value in row.items() if name in table.schema.names}
    row |= {
        f.name: 1 if pa.types.is_integer(f.type) else "" for f in table.schema if row[f.name] is None and not f.nullable
    }
    store.append(table, pa.Table.from_pylist([row], schema=table.schema))


def record(store: DeltaRsStore, kind: str, table: Table, boards: Boards) -> None:
    """The manifest of a run over both days, as they are now."""
    rules = json.dumps({"rules": rules_of(boards, Settings())})
    days = day_pins(store, Settings(), [(table, store.version(table))], D1, D2, kind)
    row = {"run_id": kind, "kind": kind, "first_day": D1, "last_day": D2, "lake_version": 1, "attempt": 1}
    row |= {"table_versions": [], "profile": rules, "checks": "[]", "code_version": "0", "parameters_hash": "p"}
    row |= {"days": [day.model_dump() | {"distinct": 1, "duplicate": 0} for day in days]}
    row |= {"outcome": "committed", "committed_at": AT}
    store.append(RUNS, pa.Table.from_pylist([row], schema=RUNS.schema))


def test_a_day_is_stale_for_the_events_that_its_kind_reads(tmp_path: Path) -> None:
    store, settings = DeltaRsStore(tmp_path), Settings()
    boards = Boards({"b": Board(name="b")}, {})
    for table, kind in ((ITEM_EVENTS, "items"), (SCORE_EVENTS, "boards")):
        append(store, table, AT)
        record(store, kind, table, boards)
    assert stale_days(store, settings) == stale_board_days(store, settings, boards) == []
    append(store, SCORE_EVENTS, AT)
    assert stale_days(store, settings) == []
    assert stale_board_days(store, settings, boards) == [D1]
    assert stale_board_days(store, settings, boards, first=D2) == []
    append(store, SCORE_EVENTS, AT + timedelta(hours=11, minutes=30))
    assert stale_board_days(store, settings, boards) == [D1, D2]
    assert stale_board_days(store, settings, Boards({}, {})) == []


def test_days_are_stale_that_were_ranked_without_a_board_or_by_other_rules(tmp_path: Path) -> None:
    store, settings = DeltaRsStore(tmp_path), Settings()
    append(store, SCORE_EVENTS, AT)
    known = {"b": Board(name="b"), "c": Board(name="c")}
    record(store, "boards", SCORE_EVENTS, Boards(known, {}))
    fewer, other = Boards({"b": known["b"]}, {}), Boards(known | {"b": Board(name="b", semantics="best")}, {})
    more = Boards(known | {"d": Board(name="d")}, {})
    shown = Boards(known | {"b": Board(name="b", depth=5, rank_style="dense")}, {})
    assert stale_board_days(store, settings, fewer) == stale_board_days(store, settings, shown) == []
    assert stale_board_days(store, settings, more) == stale_board_days(store, settings, other) == [D1, D2]
    assert stale_board_days(store, settings, more, first=D2) == [D2]
