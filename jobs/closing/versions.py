"""Versions of closed periods: how one is committed step by step, finished after a crash, read and published.

Reads   board_closes, season_ranks, season_prizes  newest
Writes  season_ranks, season_prizes, amended_ranks  appended, each under a transaction id of (board, period, version)
        board_closes                                the row that makes the version hold, last
        publications, Redis                         the closed board
Rerun   what is committed already is kept, and the rest follows from it
"""

from dataclasses import replace
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from daybreak.crashpoints import crash_point
from daybreak.errors import CheckFailedError
from daybreak.rules.seasons import Period
from daybreak.serving.boards import Place
from daybreak.serving.boards import content_hash as served_hash
from jobs.boards.plan import Ranked
from jobs.closing import season_ranks
from jobs.publishing.boards import BoardContent, meta_of
from jobs.publishing.generations import allot
from jobs.run.context import Context
from jobs.run.run import Pin, Run, RunState, parameters_hash
from lakehouse.closes import Version
from lakehouse.engines.engine import StagedTable
from lakehouse.stores.store import Store, Transaction
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table


def closing_run(context: Context, run_id: str, period: Period, lake_version: int) -> Run:
    """A run about one period, at one version of its events. It stages; its commits are `append`s of versions."""
    first, last = period.days
    pin = Pin(
        run_id=run_id,
        kind="boards",
        first=first,
        last=last,
        lake_version=lake_version,
        read_version=lake_version,
        attempt=1,
        days=[],
    )
    state = RunState(pin=pin, started_at=context.clock(), parameters_hash=parameters_hash(context.settings))
    run = context.run(state)
    run.save()
    return run


def refuse(run: Run, draft: Version, failures: list[str]) -> None:
    """Passes when DuckDB's recount found no difference.

    Raises:
        CheckFailedError: naming the first differences; the staging is kept for a look.
    """
    if failures:
        raise CheckFailedError(
            f"version {draft.version} of {draft.board} {draft.period} is not committed: {'; '.join(failures[:5])}. "
            f"Staging is kept in {run.folder}"
        )


def fence(table: Table, board: str, period: str) -> str:
    """The transaction id that gives each version of a period to `table` once."""
    return f"{table.name}/{board}/{period}"


def events_id(board: str, period: str, version: int) -> str:
    """The transaction id whose version tells which events a version of `season_ranks` was ranked from."""
    return f"events/{board}/{period}/{version}"


def ranked_version(store: Store, board: str, period: str) -> int:
    """The newest version whose ranks are committed, whether it holds yet or not; 0 before the first."""
    return store.transaction_version(tables.SEASON_RANKS, fence(tables.SEASON_RANKS, board, period)) or 0


def append_ranks(store: Store, staged: StagedTable, draft: Version) -> None:
    """Commit the ranks of a version. From here on the version is what these rows say.

    Raises:
        FenceRefusedError: another run has committed this version.
    """
    ids = {
        fence(tables.SEASON_RANKS, *draft.key): draft.version,
        events_id(*draft.key, draft.version): draft.lake_version,
    }
    store.append(tables.SEASON_RANKS, staged.reader(), Transaction(ids, draft.run_id))
    crash_point("close.ranks")


def events_version(store: Store, board: str, period: str, version: int) -> int:
    """The version of the events that committed ranks were made from."""
    found = store.transaction_version(tables.SEASON_RANKS, events_id(board, period, version))
    return -1 if found is None else found


def final(store: Store, key: tuple[str, str], day: date, version: int) -> pa.Table:
    """The committed ranks of a version, by position."""
    chosen = (pc.field("day") == pa.scalar(day, pa.date32())) & (pc.field("version") == version)
    chosen = chosen & (pc.field("board") == key[0]) & (pc.field("period") == key[1])
    return season_ranks.standings(store.dataset(tables.SEASON_RANKS), chosen)


def finish(context: Context, draft: Version, before: Version | None = None) -> Version:
    """Make the version whose ranks are committed hold, and publish it: prizes, changes, the row, Redis."""
    store = context.store
    ranks = final(store, draft.key, draft.day, draft.version)
    prizes = season_ranks.season_prizes(ranks, draft.rules)
    append_once(store, tables.SEASON_PRIZES, draft, prizes)
    if before:
        old = final(store, before.key, before.day, before.version)
        changed = season_ranks.changes(old, season_ranks.season_prizes(old, draft.rules), ranks, prizes)
        append_once(store, tables.AMENDED_RANKS, draft, changed)
    crash_point("close.prizes")
    made = replace(draft, content_hash=season_ranks.content_hash(ranks, prizes), population=ranks.num_rows)
    row = {field.name: getattr(made, field.name) for field in tables.BOARD_CLOSES.schema}
    row |= {"counted": list(made.counted.items()), "accepted": list(made.accepted)}
    append_once(store, tables.BOARD_CLOSES, made, pa.Table.from_pylist([row], schema=tables.BOARD_CLOSES.schema))
    crash_point("close.row")
    publish(context, made, ranks)
    return made


def append_once(store: Store, table: Table, draft: Version, rows: pa.Table) -> None:
    """The version's rows, unless they are there."""
    app_id = fence(table, *draft.key)
    if (store.transaction_version(table, app_id) or 0) >= draft.version:
        return
    for name in ("day", "board", "period", "version"):
        if name not in rows.column_names:
            value = pa.scalar(getattr(draft, name), table.schema.field(name).type)
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    store.append(table, rows.select(table.schema.names), Transaction({app_id: draft.version}, draft.run_id))


def publish(context: Context, made: Version, ranks: pa.Table | None = None) -> None:
    """Serve the version, unless it is what Redis serves.

    Raises:
        FenceRefusedError: Redis holds a higher version.
    """
    ranks = final(context.store, made.key, made.day, made.version) if ranks is None else ranks
    board = made.rules
    first = ranks.slice(0, board.depth).drop_columns(["population", "percentile"]).to_pylist()
    counts = ranks.group_by("points").aggregate([("points", "count")])
    histogram = list(zip(counts["points"].to_pylist(), counts["points_count"].to_pylist(), strict=True))
    places = [Place(**row) for row in first]
    content = BoardContent(Ranked(board, made.span, made.day), places, histogram, served_hash(places, histogram))
    served = context.board_lists.meta(*made.key)
    if served and (served.version, served.content_hash) == (made.version, content.content_hash):
        return
    pin = Pin(
        run_id=made.run_id,
        kind="boards",
        first=made.day,
        last=made.day,
        lake_version=made.lake_version,
        read_version=made.lake_version,
        attempt=1,
        days=[],
    )
    generations = allot(context.store, pin, [content.content], context.clock())
    meta = replace(meta_of(content, pin, generations[content.content.subject]), state="closed", version=made.version)
    context.board_lists.publish(*made.key, places, histogram, meta)
    crash_point("close.published")
