"""Final ranks of all players of a period, their prizes, and the digest of both.

Reads   player_days  files that the caller names: of the manifest, or staged from a period's events
Stages  season_ranks  every player of the periods; nothing is committed here
Rerun   same player_days and bans give the same rows and the same digest
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import functions as F

from daybreak.rules.boards import Board, Boards
from daybreak.rules.prizes import Finalist, award
from jobs.boards import ranks
from jobs.boards.derive import BANS, CALENDAR, TOTALS, BoardRun, conform_from, without_day
from jobs.boards.plan import BoardPlan, Ranked, calendar_rows
from jobs.run.run import Run
from lakehouse.engines.engine import StagedTable
from lakehouse.tables import registry as tables

STANDING = ("position", "player_id", "points", "reached_at", "event_count", "rank", "population", "percentile")
"""What is final of a player; version and lake_version say where it comes from."""
AWARD = ("player_id", "prize", "slots", "among")
LINES = 65_536


def stage_ranks(
    run: Run,
    board: Board,
    ranked: Sequence[Ranked],
    files: Sequence[str],
    known_days: Sequence[date],
    bans: Mapping[str, datetime],
    version: int,
) -> StagedTable:
    """Every player of the periods, from these files of player_days; `known_days`, in order, are the days they hold."""
    boards = BoardRun(run, Boards({board.name: board}, {}), BoardPlan(run.state, ranked, ()))
    calendar = boards.parquet("calendar", CALENDAR, list(calendar_rows(ranked, boards.boards, known_days)))
    out = boards.parquet("bans", BANS, list(bans.items())) if bans else None
    with run.engine.failing_as(f"the final ranks of {board.name}"):
        days = run.gathered(files, without_day(tables.PLAYER_DAYS)).filter(F.col("board") == F.lit(board.name))
        days = days.transform(ranks.in_periods, calendar).transform(ranks.without_banned, out)
        run.stage(TOTALS, TOTALS.conform(days.transform(ranks.merge_days, board)))
        everyone = run.staged(TOTALS).transform(ranks.rank_by_counting, board, None)
        named = everyone.withColumn("version", F.lit(version).cast("bigint")).withColumn(
            "lake_version", F.lit(run.pin.lake_version).cast("bigint")
        )
        return run.stage(tables.SEASON_RANKS, named.transform(conform_from, tables.SEASON_RANKS))


def standings(rows: ds.Dataset, chosen: pc.Expression | None = None, also: Sequence[str] = ()) -> pa.Table:
    """What is final of each player, by position."""
    return rows.to_table(columns=[*STANDING, *also], filter=chosen).sort_by("position")


def staged_standings(staged: StagedTable, also: Sequence[str] = ()) -> pa.Table:
    """The same of staged rows."""
    if not staged.files:
        return tables.SEASON_RANKS.schema.empty_table().select([*STANDING, *also])
    return standings(ds.dataset(list(staged.files), schema=tables.SEASON_RANKS.schema, format="parquet"), also=also)


def season_prizes(final: pa.Table, board: Board) -> pa.Table:
    """Who wins what, by position: rows of AWARD."""
    rank, percentile = pc.field("rank"), pc.field("percentile")
    near = rank <= max((each.ranks[1] for each in board.prizes if each.ranks), default=0)
    for each in board.prizes:
        near = near | (percentile >= each.percentile[0]) if each.percentile else near
    chosen = final.filter(near).select(["player_id", "position", "rank", "percentile"]).to_pylist()
    won = award([Finalist(**row) for row in chosen], board.prizes, board.prize_ties)
    fields = [tables.SEASON_PRIZES.schema.field(name) for name in AWARD]
    return pa.Table.from_pylist([vars(each) for each in won], schema=pa.schema(fields))


def content_hash(final: pa.Table, prizes: pa.Table) -> str:
    """sha256 over each player's line by position and over the prizes: equal for equal outcomes only.

    Neither the version nor the events' version is in it, so that an outcome that comes back has its old digest.
    """
    digest = hashlib.sha256(b"%d players\n" % final.num_rows)
    for part, names in ((final, STANDING), (in_order(prizes), AWARD)):
        for batch in part.select(names).to_batches(max_chunksize=LINES):
            texts = [as_text(batch.column(name)) for name in names]
            lengths = as_text(pc.binary_length(batch.column("player_id")))
            lines = pc.binary_join_element_wise(lengths, *texts, "|")
            digest.update("".join(f"{line}\n" for line in lines.to_pylist()).encode())
        digest.update(b"--\n")
    return digest.hexdigest()


def in_order(prizes: pa.Table) -> pa.Table:
    """Prizes by player and prize."""
    return prizes.sort_by([("player_id", "ascending"), ("prize", "ascending")])


def as_text(column: pa.Array) -> pa.Array:
    """A column as text; instants as microseconds."""
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).cast(pa.string())


def prize_texts(prizes: pa.Table) -> dict[str, str]:
    """What each player won, in words: `gold cup`, `500 coins 3/4`."""
    found: dict[str, list[str]] = {}
    for row in in_order(prizes).to_pylist():
        part = "" if row["slots"] == row["among"] else f" {row['slots']}/{row['among']}"
        found.setdefault(row["player_id"], []).append(row["prize"] + part)
    return {player: ", ".join(won) for player, won in found.items()}


def changes(old: pa.Table, old_prizes: pa.Table, new: pa.Table, new_prizes: pa.Table) -> pa.Table:
    """Each player whose rank, points or prizes differ, also who is new or gone: columns as in amended_ranks."""
    sides = []
    for name, final, prizes in (("old", old, old_prizes), ("new", new, new_prizes)):
        texts = prize_texts(prizes)
        won = pa.array([texts.get(player) for player in final["player_id"].to_pylist()], pa.string())
        columns = [final["player_id"], final["rank"], final["points"], won]
        sides.append(pa.table(columns, ["player_id", *(f"{name}_{what}" for what in ("rank", "points", "prizes"))]))
    both = sides[0].join(sides[1], "player_id", join_type="full outer")
    is_changed = pa.repeat(pa.scalar(False), both.num_rows)
    for what in ("rank", "points", "prizes"):
        is_changed = pc.or_(is_changed, differs(both[f"old_{what}"], both[f"new_{what}"]))
    best_first = [("new_rank", "ascending"), ("old_rank", "ascending"), ("player_id", "ascending")]
    return both.filter(is_changed).sort_by(best_first)


def differs(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where two columns differ; nulls are equal to each other only."""
    unequal = pc.fill_null(pc.not_equal(one, other), False)
    return pc.or_(unequal, pc.xor(pc.is_null(one), pc.is_null(other)))
