"""Ranks of 5 M players on Sail against DuckDB's own window functions: `python -m bench.boards`.

Many players are equal: points come from a Zipf law, so that one value is shared by a large part of all.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.harness import Result, interleaved, show
from daybreak.events import INSTANT
from daybreak.rules.boards import Board
from daybreak.settings import Settings
from jobs.boards.ranks import rank_by_counting
from lakehouse.engines.engine import Engine
from lakehouse.opening import open_engine
from lakehouse.tables.registry import SEASON_RANKS, TOTAL, Table

PLAYERS = 5_000_000
ROUNDS = 3
MEASURED = ("day", "board", "period", "player_id", "points", "reached_at", "event_count")
TOTALS = Table("totals", "One row per player.", pa.schema([SEASON_RANKS.schema.field(name) for name in MEASURED]), ())
RANKS = Table(
    "ranks",
    "What a close stages of each player.",
    pa.schema([field for field in SEASON_RANKS.schema if field.name not in ("version", "lake_version")]),
    (),
)
BOARD = Board(name="b")

PLAIN = """
select *, row_number() over (order by points desc, reached_at, player_id) as "position",
    rank() over (order by points desc) as "rank", count(*) over () as population
from totals
"""
"""All ranks of the one period, without the percentile."""

WHY = ""


def totals(file: Path, players: int, seed: int = 7) -> str:
    """A file of one period's players in no order: points by a Zipf law, instants of one year."""
    chance = np.random.default_rng(seed)
    points = pa.array(np.minimum(chance.zipf(1.5, players), 10**9)).cast(pa.decimal128(19, 0)).cast(TOTAL)
    numbers = pa.array(chance.permutation(players)).cast(pa.string())
    at = chance.integers(1_767_225_600_000_000, 1_798_761_600_000_000, players)
    columns = {
        "day": pa.repeat(pa.scalar(20_818, pa.int32()), players).cast(pa.date32()),
        "board": pa.repeat("b", players),
        "period": pa.repeat("2026", players),
        "player_id": pc.binary_join_element_wise("player", numbers, "-"),
        "points": points,
        "reached_at": pa.array(at).cast(INSTANT),
        "event_count": pa.array(chance.integers(1, 100, players)),
    }
    pq.write_table(pa.table(columns).cast(TOTALS.schema), file, row_group_size=500_000)
    return str(file)


def ours(engine: Engine, file: str, folder: Path) -> list[str]:
    """The jobs' ranks of all players, staged."""
    frame = rank_by_counting(engine.read([file], TOTALS.schema), BOARD, None)
    return list(engine.stage(RANKS.conform(frame.select(*RANKS.schema.names)), RANKS, folder / "ours").files)


def theirs(duck: duckdb.DuckDBPyConnection, folder: Path) -> str:
    """DuckDB's ranks of all players, written."""
    file = str(folder / "theirs.parquet")
    duck.sql(PLAIN).write_parquet(file)
    return file


def require_equal(mine: list[str], other: str) -> None:
    """Passes when both ranked alike: equal sums of the rows' hashes."""
    row = 'hash(player_id, points, reached_at, event_count, "position", "rank", population)'
    one, two = (
        duckdb.read_parquet(files).aggregate(f"count(*), sum({row}::hugeint)").fetchall() for files in (mine, other)
    )
    assert one == two


def run(folder: Path | None = None, players: int = PLAYERS) -> list[Result]:
    """The comparison, both engines started before."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return run(Path(made), players)
    file = totals(folder / "totals.parquet", players)
    duck = duckdb.connect(":memory:", config={"preserve_insertion_order": False})
    duck.read_parquet(file).create_view("totals")
    with open_engine(Settings(home=folder)) as engine:
        require_equal(ours(engine, file, folder), theirs(duck, folder))
        seconds = interleaved(
            {"ours": partial(ours, engine, file, folder), "theirs": partial(theirs, duck, folder)}, rounds=ROUNDS
        )
    name, to = f"ranks of {players:,} players, staged", "DuckDB's row_number and rank, written"
    return [
        Result(name, seconds["ours"], "s", to, seconds["ours"] / seconds["theirs"], "<= 3 x", WHY),
        Result(to, seconds["theirs"], "s"),
    ]


if __name__ == "__main__":
    show(run(players=int(sys.argv[1]) if sys.argv[1:] else PLAYERS))
