"""Days turn stale when what shaped them changes, on items and on boards, and for nothing else."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from daybreak.events import Kind
from daybreak.rules.boards import Board, Boards
from daybreak.settings import Settings
from jobs.ingest import declare_complete
from jobs.run.lake import Lake
from jobs.run.pin import day_pins
from jobs.run.staleness import rules_of, stale_board_days, stale_days, stale_item_days
from lakehouse import actions, runs
from lakehouse.runs import RunKind
from lakehouse.stores.delta_rs import DeltaRsStore
from lakehouse.tables.registry import ITEM_EVENTS, SCORE_EVENTS, Table

D1, D2 = date(2026, 3, 1), date(2026, 3, 2)
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
NONE = Boards({}, {})


def append(store: DeltaRsStore, table: Table, at: datetime) -> None:
    row = {field.name: None for field in table.schema}
    row |= {"day": at.date(), "occurred_at": at, "received_at": at, "event_id": "e", "source": "s"}
    row |= {"partition": 0, "offset": 0, "player_id": "ana", "points": 1, "item_id": "a", "weight": 1, "match_id": "m"}
    row = {name: value for name, value in row.items() if name in table.schema.names}
    row |= {
        f.name: 1 if pa.types.is_integer(f.type) else "" for f in table.schema if row[f.name] is None and not f.nullable
    }
    store.append(table, pa.Table.from_pylist([row], schema=table.schema))


def record(lake: Lake, kind: RunKind, table: Table, boards: Boards = NONE, is_complete: bool = True) -> None:
    """The manifest of a run over both days, as they are now."""
    days = day_pins(lake.store, lake.settings, [(table, lake.store.version(table))], D1, D2, ["items"])
    runs.append(
        lake.store,
        runs.FinishedRun(
            run_id=f"{kind}-{len(runs.finished(lake.store))}",
            kind=kind,
            first_day=D1,
            last_day=D2,
            lake_version=1,
            attempt=1,
            table_versions={},
            days=tuple(
                runs.RunDay(**day.model_dump() | {"is_complete": is_complete}, distinct=1, duplicate=0) for day in days
            ),
            profile="{}",
            checks="[]",
            code_version="0",
            parameters_hash="p",
            committed_at=AT,
            started_at=AT,
            rules=rules_of(boards, Settings()),
        ),
    )


def lake_with(tmp_path: Path, boards: Boards = NONE) -> Lake:
    return Lake(Settings(), DeltaRsStore(tmp_path), lambda: AT, boards)


def test_a_day_is_stale_for_the_events_that_its_kind_reads(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, Boards({"b": Board(name="b")}, {}))
    kinds: tuple[tuple[Table, RunKind], ...] = ((ITEM_EVENTS, "items"), (SCORE_EVENTS, "boards"))
    for table, kind in kinds:
        append(lake.store, table, AT)
        record(lake, kind, table, lake.boards)
    assert stale_days(lake) == set()
    append(lake.store, SCORE_EVENTS, AT)
    assert stale_item_days(lake) == set()
    assert stale_board_days(lake) == stale_days(lake) == {D1}
    assert stale_days(lake, first=D2) == stale_days(lake, last=D1 - timedelta(days=1)) == set()
    append(lake.store, SCORE_EVENTS, AT + timedelta(hours=11, minutes=30))
    assert stale_board_days(lake) == {D1, D2}
    assert stale_board_days(replace(lake, boards=NONE)) == set()
    append(lake.store, ITEM_EVENTS, AT)
    assert stale_item_days(lake) == {D1}


def test_days_are_stale_that_were_ranked_without_a_board_or_by_other_rules(tmp_path: Path) -> None:
    known = {"b": Board(name="b"), "c": Board(name="c")}
    lake = lake_with(tmp_path, Boards(known, {}))
    append(lake.store, SCORE_EVENTS, AT)
    record(lake, "boards", SCORE_EVENTS, lake.boards)

    def stale_by(boards: dict[str, Board], first: date = date.min) -> set[date]:
        return stale_board_days(replace(lake, boards=Boards(boards, {})), first)

    assert stale_by({"b": known["b"]}) == set()
    assert stale_by(known | {"b": Board(name="b", depth=5, rank_style="dense")}) == set()
    more, other = known | {"d": Board(name="d")}, known | {"b": Board(name="b", semantics="best")}
    assert stale_by(more) == stale_by(other) == {D1, D2}
    assert stale_by(more, first=D2) == {D2}
    changed = replace(lake, boards=Boards(other, {}))
    assert stale_board_days(changed, boards=[known["c"]]) == set(), "a close asks for its own board's rules alone"


def test_a_day_whose_event_was_voided_since_its_run_began_is_stale(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, Boards({"b": Board(name="b")}, {}))
    append(lake.store, SCORE_EVENTS, AT)
    before, after = AT - timedelta(seconds=1), AT + timedelta(seconds=1)
    actions.record(lake.store, lambda: before, "void", reason="r", actor="a", event_id="e1", since=AT)
    record(lake, "boards", SCORE_EVENTS, lake.boards)
    assert stale_days(lake) == set()
    actions.record(lake.store, lambda: after, "void", reason="r", actor="a", event_id="e2", since=AT)
    assert stale_days(lake) == {D1}


def test_a_day_that_was_counted_incomplete_is_stale_once_it_is_complete(tmp_path: Path) -> None:
    lake = lake_with(tmp_path)
    append(lake.store, ITEM_EVENTS, AT)
    record(lake, "items", ITEM_EVENTS, is_complete=False)
    assert stale_days(lake) == set()
    declare_complete(lake.store, lake.clock, Kind.ITEMS, D1)
    assert stale_days(lake) == {D1}
    record(lake, "items", ITEM_EVENTS)
    assert stale_days(lake) == set()
