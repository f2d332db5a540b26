"""Amends a closed period: a further version, ranked from the events that count in it, by the rules as published.

Reads   score_events, item_events  of the period: those counted at the close, and accepted ones
        board_actions              bans, voids, accepted events, as they are now
Stages  player_days, season_ranks  of this period alone; only the ranks are committed
Writes  what a close writes, and amended_ranks  (jobs.closing.versions)
Rerun   an outcome equal to the newest version's makes no further one
"""

import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from daybreak.windows import day_before
from jobs.boards.plan import Ranked
from jobs.boards.player_days import SCORED, player_days, scored_events
from jobs.closing import season_ranks, versions
from jobs.run.context import Context
from jobs.run.pin import content_version
from jobs.run.run import Run
from lakehouse import actions
from lakehouse.audit import board_recount
from lakehouse.audit.board_rules import Rules
from lakehouse.audit.duck import Limits
from lakehouse.audit.first_copies import CountedDays
from lakehouse.closes import Version
from lakehouse.engines.engine import StagedTable
from lakehouse.stores.store import Store
from lakehouse.tables import registry as tables
from lakehouse.tables.registry import Table

LEFT_OUT = ("extra", "day")
"""Columns that no board needs; `day` is in the folder's name."""


def amend(context: Context, newest: Version, run_id: str, reason: str) -> Version:
    """The version that holds now: a new one where the outcome differs, else `newest`; served in either case.

    The caller holds the lease.

    Raises:
        CheckFailedError: DuckDB counts or ranks differently; nothing is committed.
        FenceRefusedError: another run has made this version.
    """
    store = context.store
    made = replace(
        newest,
        version=newest.version + 1,
        kind="amendment",
        accepted=tuple(sorted(accepted_in(store, newest))),
        reason=reason,
        run_id=run_id,
        closed_at=context.clock(),
    )
    if versions.ranked_version(store, *newest.key) > newest.version:  # a run died before this version held
        lake_version = versions.events_version(store, *made.key, made.version)
        newest = versions.finish(context, replace(made, lake_version=lake_version), newest)
        made = replace(made, version=newest.version + 1)
    events = tables.TABLES[made.rules.source]
    read_version = store.version(events)
    made = replace(made, lake_version=content_version(store, read_version, events))
    run = versions.closing_run(context, f"{run_id}.{made.board}.{made.period}", made.span, made.lake_version)
    staged = rank_events(context, run, made, read_version, actions.banned(store))
    outcome = season_ranks.staged_standings(staged)
    prizes = season_ranks.season_prizes(outcome, made.rules)
    if season_ranks.content_hash(outcome, prizes) == newest.content_hash:
        versions.publish(context, newest)
    else:
        versions.append_ranks(store, staged, made)
        newest = versions.finish(context, made, newest)
    shutil.rmtree(run.folder)
    return newest


def accepted_in(store: Store, version: Version) -> set[str]:
    """Late events that were accepted into the period."""
    return {
        event
        for (board, period, event), decided in actions.decisions(store).items()
        if (board, period) == version.key and decided == "accepted"
    }


def rank_events(
    context: Context, run: Run, made: Version, read_version: int, bans: Mapping[str, datetime]
) -> StagedTable:
    """The period's ranks from the events that count in it, staged and checked by DuckDB."""
    board, span, events = made.rules, made.span, tables.TABLES[made.rules.source]
    lookback = made.lookback
    voided = actions.voided(context.store)
    files = counted_files(context.store, run, events, read_version, made)
    with run.engine.failing_as(f"the events of {made.board} {made.period}"):
        frame = run.engine.read(files, without(events))
        run.stage(SCORED, scored_events(frame, board.source, *span.days, lookback))
        run.stage(tables.PLAYER_DAYS, player_days(run.staged(SCORED), board, [span.label], voided))
    partials = run.staged_files(tables.PLAYER_DAYS)
    found = board_recount.differences(
        {events.name: files},
        {tables.PLAYER_DAYS.name: partials},
        rules=Rules([board], labels={board.name: [span.label]}, bans=bans, voided=voided),
        days=CountedDays(*span.days, lookback),
        ranking=board_recount.Ranking(ranked=()),
        limits=Limits(spill=run.folder),
    )
    known = {day for file in partials for day in pq.read_table(file, columns=["day"])["day"].unique().to_pylist()}
    ranked = [Ranked(board, span, made.day)]
    staged = season_ranks.stage_ranks(run, board, ranked, partials, sorted(known), bans, made.version)
    found += board_recount.ranks_differences(
        staged.files,
        board_recount.Partials(staged=partials),
        board_recount.FinalRanks(board, span, made.day, made.version, made.lake_version),
        bans=bans,
        limits=Limits(spill=run.folder),
    )
    versions.refuse(run, made, found)
    return staged


def without(events: Table) -> pa.Schema:
    """The columns of events that boards need, and `day`, which readers add."""
    return pa.schema([field for field in events.schema if field.name != "extra"])


def counted_files(store: Store, run: Run, events: Table, version: int, closed: Version) -> list[str]:
    """A file of the period's events that count in a closed one, and of the day before: copies are taken by those."""
    first, last = closed.span.days
    files = store.files(events, version, day_before(first), last)
    schema = pa.schema([field for field in events.schema if field.name not in LEFT_OUT])
    folder = run.folder / "counted_events"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = partial(is_counted, counted=closed.counted, accepted=closed.accepted)
    with pq.ParquetWriter(folder / "part.parquet", schema) as writer:
        for batch in event_batches(files, schema):
            writer.write_batch(batch.filter(chosen(batch)).cast(schema))
    return [str(folder / "part.parquet")]


def event_batches(files: Collection[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of these event files, streamed."""
    if files:
        yield from ds.dataset(sorted(files), schema=schema, format="parquet").to_batches()


def is_counted(batch: pa.RecordBatch, counted: Mapping[str, int], accepted: Collection[str] = ()) -> pa.Array:
    """Which events were there at the close, by their place in their source, or were accepted since."""
    text = pa.string()
    places = pc.binary_join_element_wise(batch["source"], "[", batch["partition"].cast(text), "]", "")
    named = places.dictionary_encode()
    limits = pa.array([counted.get(name, -1) for name in named.dictionary.to_pylist()], pa.int64())
    was_there = pc.less_equal(batch["offset"], limits.take(named.indices))
    return pc.or_(was_there, pc.is_in(batch["event_id"], pa.array(sorted(accepted), text)))
