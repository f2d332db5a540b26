"""Ranks of players in any period, merged from their days. Every rank by counting, never by one long sort.

Reads   player_days  committed and staged by this run
Stages  board_snapshots, board_histograms  (jobs.boards.derive); season_ranks (jobs.closing.close)
Rerun   same player_days and bans give the same rows
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from daybreak.rules.boards import Board
from jobs.boards.player_days import LAST

PERIOD = ("day", "board", "period")
PLAYER = (*PERIOD, "player_id")


def in_periods(days: DataFrame, calendar: DataFrame) -> DataFrame:
    """Each row of player_days (without `day`) once for each period that it lies in, under the period's as-of day.

    `calendar` has (board, season, on_day, period, day, period_end): which day belongs to which period.
    """
    return days.join(calendar, ["board", "season", "on_day"])


def without_banned(days: DataFrame, bans: DataFrame | None) -> DataFrame:
    """Leaves out players of `bans` (player_id, since) in periods that end later, or never."""
    if bans is None:
        return days
    ends_before = F.col("period_end").isNotNull() & (F.col("period_end") <= F.col("since"))
    return days.join(bans, "player_id", "left").filter(F.col("since").isNull() | ends_before).drop("since")


def merge_days(days: DataFrame, board: Board) -> DataFrame:
    """One row per (day, board, period, player): points, reached_at, event_count."""
    match board.semantics:
        case "sum":
            return merge_sums(days)
        case "best":
            return merge_best(days, board.sign)
        case "latest":
            return merge_latest(days)


def merge_sums(days: DataFrame) -> DataFrame:
    """Totals; without any event that changed one, the first event counts as the moment."""
    merged = days.groupBy(*PLAYER).agg(
        F.sum("points").alias("points"),
        F.sum("event_count").alias("event_count"),
        F.max("changed_at").alias("changed_at"),
        F.min("first_at").alias("first_at"),
    )
    return (
        merged.withColumn("points", F.col("points").cast("decimal(28,4)"))
        .withColumn("reached_at", F.coalesce("changed_at", "first_at"))
        .drop("changed_at", "first_at")
    )


def merge_best(days: DataFrame, sign: int) -> DataFrame:
    """The best of all days and the first moment that it was reached."""
    best = F.max("points") if sign > 0 else F.min("points")
    players = days.groupBy(*PLAYER).agg(best.alias("points"), F.sum("event_count").alias("event_count"))
    reached = days.groupBy(*PLAYER, "points").agg(F.min("changed_at").alias("reached_at"))
    return players.join(reached, [*PLAYER, "points"])


def merge_latest(days: DataFrame) -> DataFrame:
    """The latest of all days; of equal times the larger order key is the later."""
    newest = Window.partitionBy(*PLAYER).orderBy(*(F.col(name).desc_nulls_last() for name in ("changed_at", *LAST)))
    counts = days.groupBy(*PLAYER).agg(F.sum("event_count").alias("event_count"))
    last = days.withColumn("newness", F.row_number().over(newest)).filter(F.col("newness") == F.lit(1))
    return counts.join(last.select(*PLAYER, "points", F.col("changed_at").alias("reached_at")), [*PLAYER])


def count_points(players: DataFrame) -> DataFrame:
    """Players per distinct points of each period: few rows, exact for everybody."""
    return players.groupBy(*PERIOD, "points").agg(F.sum(F.lit(1).cast("bigint")).alias("players"))


def rank_by_counting(players: DataFrame, board: Board, depth: int | None) -> DataFrame:
    """`players` with position, rank, population and percentile; the first `depth`, or all of them.

    Players per distinct points, cumulated, say how many stand before each points. They are joined back, and
    only equals are ordered among themselves.
    """
    points = F.col("points")
    best_first = Window.partitionBy(*PERIOD).orderBy(
        points.desc_nulls_last() if board.sign > 0 else points.asc_nulls_last()
    )
    whole = Window.partitionBy(*PERIOD)
    steps = (
        count_points(players)
        .withColumn("upto", F.sum("players").over(best_first.rowsBetween(Window.unboundedPreceding, Window.currentRow)))
        .withColumn("population", F.sum("players").over(whole))
        .withColumn("dense", F.row_number().over(best_first).cast("bigint"))
        .withColumn("before", F.col("upto") - F.col("players"))
        .withColumn("worse", F.col("population") - F.col("upto"))
        .drop("players", "upto")
    )
    if depth is not None:
        steps = steps.filter(F.col("before") < F.lit(depth))
    among_equals = Window.partitionBy(*PERIOD, "points").orderBy(*tie_breaks(board))
    ranked = (
        players.join(steps, [*PERIOD, "points"])
        .withColumn("among", F.row_number().over(among_equals).cast("bigint"))
        .withColumn("position", F.col("before") + F.col("among"))
        .withColumn("rank", rank_in_style(board))
        .withColumn("percentile", (F.col("worse") * F.lit(100)).cast("double") / F.col("population").cast("double"))
    )
    return ranked if depth is None else ranked.filter(F.col("position") <= F.lit(depth))


def tie_breaks(board: Board) -> list[Column]:
    """The order of equals."""
    orders = {
        "reached_at": F.col("reached_at").asc_nulls_last(),
        "fewer_events": F.col("event_count").asc_nulls_last(),
        "more_events": F.col("event_count").desc_nulls_last(),
        "player_id": F.col("player_id").asc_nulls_last(),
    }
    return [orders[name] for name in board.order_within_equals]


def rank_in_style(board: Board) -> Column:
    """The rank, by points alone."""
    match board.rank_style:
        case "competition":
            return F.col("before") + F.lit(1).cast("bigint")
        case "dense":
            return F.col("dense")
        case "ordinal":
            return F.col("position")
