"""Events that arrived after their period was closed: found, listed, accepted or rejected.

Reads   score_events, item_events  files that came after a close; board_closes, board_actions
Writes  board_exceptions           one row per late event and closed period, found once
        board_actions              decisions; an accepted event makes an amendment
Rerun   finds nothing twice
"""

from collections.abc import Collection, Iterable
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from daybreak.clock import Clock
from daybreak.errors import FenceRefusedError, LakeFailedError, UsageError
from daybreak.events import ORDER_KEY
from daybreak.rules.boards import Board
from daybreak.rules.seasons import Period
from daybreak.windows import day_before, day_bounds
from jobs.closing.amend import amend, event_batches, is_counted
from jobs.run.context import Context
from lakehouse import actions
from lakehouse.closes import Version, newest_versions, versions
from lakehouse.stores.store import Store, Transaction
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

Row = dict[str, Any]


def exceptions(context: Context, board: str | None = None) -> list[Row]:
    """Every late event of closed periods, with its `state`: open, accepted or rejected. Looks for new ones first.

    Takes no lease, since it only appends what a transaction id gives to one run.

    Raises:
        UsageError: no such board.
    """
    if board is not None and board not in {key[0] for key in newest_versions(context.store)}:
        context.boards.board(board)
    find(context.store, context.clock, board=board)
    decided = actions.decisions(context.store)
    rows = context.store.read(tables.BOARD_EXCEPTIONS).to_pylist()
    return [
        row | {"state": decided.get((row["board"], row["period"], row["event_id"]), "open")}
        for row in sorted(rows, key=lambda row: (row["board"], row["period"], row["occurred_at"], row["event_id"]))
        if board in (None, row["board"])
    ]


def accept(context: Context, board: str, period: str, event_id: str, reason: str, actor: str = "") -> Version:
    """Count a late event in its closed period: recorded, then amended; the version that holds now.

    Raises:
        UsageError: the period is not closed, or the event is none of its exceptions.
    """
    run_id = f"accept-{board}-{period}-{uuid4().hex[:8]}"
    with context.lease(run_id):
        closed = require_exception(context, board, period, event_id)
        if actions.decisions(context.store).get((board, period, event_id)) != "accepted":
            about = {"board": board, "period": period, "event_id": event_id}
            actions.record(context.store, context.clock, "accept", reason=reason, actor=actor, **about)
        return amend(context, closed, run_id, f"accepted {event_id}: {reason}")


def reject(context: Context, board: str, period: str, event_id: str, reason: str, actor: str = "") -> None:
    """Record that a late event stays out of its closed period.

    Raises:
        UsageError: it is none of its exceptions, or was accepted: then it can only be voided.
    """
    with context.lease(f"reject-{board}-{period}-{uuid4().hex[:8]}"):
        require_exception(context, board, period, event_id)
        decided = actions.decisions(context.store).get((board, period, event_id))
        if decided == "accepted":
            raise UsageError(
                f"event {event_id!r} was accepted into {board} {period} already; take it out everywhere with: "
                f"daybreak board void {event_id}"
            )
        if decided is None:
            about = {"board": board, "period": period, "event_id": event_id}
            actions.record(context.store, context.clock, "reject", reason=reason, actor=actor, **about)


def require_exception(context: Context, board: str, period: str, event_id: str) -> Version:
    """The newest version of the closed period that the event is late for.

    Raises:
        UsageError: the period is not closed, or the event is none of its exceptions.
    """
    closed = newest_versions(context.store).get((board, period))
    if closed is None:
        raise UsageError(f"{board} {period} is not closed, so nothing is late for it; a night counts what arrives")
    if event_id not in known_exceptions(context.store).get(closed.key, ()):
        find(context.store, context.clock, board=board)
    if event_id not in known_exceptions(context.store).get(closed.key, ()):
        raise UsageError(
            f"event {event_id!r} is no exception of {board} {period}; daybreak board exceptions {board} lists them"
        )
    return closed


def known_exceptions(store: Store) -> dict[tuple[str, str], set[str]]:
    """Ids of the late events that were found for each (board, period)."""
    found: dict[tuple[str, str], set[str]] = {}
    for row in store.read(tables.BOARD_EXCEPTIONS).select(["board", "period", "event_id"]).to_pylist():
        found.setdefault((row["board"], row["period"]), set()).add(row["event_id"])
    return found


def find(
    store: Store,
    clock: Clock,
    first: date = date.min,
    last: date = date.max,
    board: str | None = None,
) -> int:
    """Append the late events of these days that are not yet known, and return how many there were."""
    found: list[Row] = []
    fences: dict[str, int] = {}
    voided = actions.voided(store)
    seen = known_exceptions(store)
    for closed in (each for each in versions(store) if each.version == 1):
        days = max(first, closed.span.days[0]), min(last, closed.span.days[1])
        if days[0] > days[1] or board not in (None, closed.board):
            continue
        known = seen.get(closed.key, set())
        late = [row for row in late_events(store, closed, *days) if row["event_id"] not in known | voided]
        if late:
            found += [as_exception(row, closed) | {"found_at": clock()} for row in late]
            fences[f"{tables.BOARD_EXCEPTIONS.name}/{closed.board}/{closed.period}"] = len(known) + len(late)
    if found:
        rows = pa.Table.from_pylist(found, schema=tables.BOARD_EXCEPTIONS.schema)
        try:
            store.append(tables.BOARD_EXCEPTIONS, rows, Transaction(fences))
        except FenceRefusedError:  # somebody found the same at once; what they left out is found the next time
            return 0
    return len(found)


def as_exception(row: Row, closed: Version) -> Row:
    """A late event as board_exceptions has it."""
    source = f"{row['source']}[{row['partition']}]"
    limit = closed.counted.get(source)
    is_score = closed.rules.source == tables.SCORE_EVENTS.name
    beyond = "from which nothing was counted" if limit is None else f"where {limit} was the last one counted"
    return {
        "day": row["occurred_at"].date(),
        "board": closed.board,
        "period": closed.period,
        "event_id": row["event_id"],
        "player_id": row["player_id" if is_score else "item_id"],
        "points": row["points" if is_score else "weight"],
        "occurred_at": row["occurred_at"],
        "received_at": row["received_at"],
        "reason": f"arrived after the close: offset {row['offset']} of {source}, {beyond}",
    }


def late_events(store: Store, closed: Version, first: date, last: date) -> list[Row]:
    """Events of these days on the closed board (in version 1) that came after it; no copies of counted ones."""
    events, rules, span = tables.TABLES[closed.rules.source], closed.rules, closed.span
    version = store.version(events)
    schema = pa.schema([field for field in events.schema if field.name not in ("extra", "day")])
    rows: list[Row] = []
    for batch in event_batches(newer_files(store, events, closed.lake_version, version, first, last), schema):
        late = pc.invert(is_counted(batch, closed.counted))
        rows += batch.filter(pc.and_(late, is_on_board(batch, rules, span))).to_pylist()
    if not rows:
        return []
    files = store.files(events, version, day_before(first), last)
    taken = counted_copies(event_batches(files, schema), closed, {row["event_id"] for row in rows})
    by_id: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: tuple(row[name] for name in ORDER_KEY), reverse=True):
        if not is_copy(row, taken, closed.lookback):
            by_id[row["event_id"]] = row
    return [by_id[event] for event in sorted(by_id)]


def newer_files(store: Store, events: Table, before: int, version: int, first: date, last: date) -> list[str]:
    """The files of these days that came after version `before`; all of them where the log no longer tells."""
    files = store.files(events, version, first, last)
    try:
        return sorted({*files} - {*store.files(events, before, first, last)})
    except LakeFailedError:
        return files


def is_on_board(batch: pa.RecordBatch, rules: Board, span: Period) -> pa.Array:
    """Which events pass the board's filter and have the season's label."""
    wanted = [*rules.filter.columns().items(), *([("season", (span.label,))] if span.label else [])]
    passes = pa.repeat(pa.scalar(True), batch.num_rows)
    for column, values in wanted:
        passes = pc.and_(passes, pc.is_in(batch[column], pa.array(values, pa.string())))
    return passes


def counted_copies(batches: Iterable[pa.RecordBatch], closed: Version, ids: Collection[str]) -> dict[str, list[Any]]:
    """When the counted events with one of these ids occurred."""
    wanted = pa.array(sorted(ids), pa.string())
    taken: dict[str, list[Any]] = {}
    for batch in batches:
        chosen = batch.filter(pc.and_(pc.is_in(batch["event_id"], wanted), is_counted(batch, closed.counted)))
        for event, at in zip(chosen["event_id"].to_pylist(), chosen["occurred_at"].to_pylist(), strict=True):
            taken.setdefault(event, []).append(at)
    return taken


def is_copy(row: Row, taken: dict[str, list[Any]], lookback: timedelta) -> bool:
    """Whether a counted event with this id is on the same day or in the look-back slice before it."""
    day = row["occurred_at"].date()
    start, end = day_bounds(day)
    return any(at < end and start - at <= lookback for at in taken.get(row["event_id"], ()))
