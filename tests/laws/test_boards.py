"""For any score events Sail, Apache Spark, DuckDB and plain Python give equal boards.

One drawn example is many boards and periods over many small days, each with its own trouble, so that few runs of
the engines see much.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from daybreak.errors import DaybreakError
from daybreak.events import WEIGHT_MAX
from daybreak.rules.boards import Board, Filter
from daybreak.rules.seasons import Season
from jobs.boards import ranks as board_ranks
from jobs.boards.player_days import LAST, SCORED, player_days
from lakehouse.engines.engine import Engine
from lakehouse.tables.registry import PLAYER_DAYS, SEASON_RANKS
from tests.boards import STAGED, TOTALS, Case, Row, close_recounted, derive, due, recounted, rows_of, written
from tests.builders import MIDNIGHT, event, score
from tests.engines import NAMES, Engines
from tests.oracles import boards as oracles_boards
from tests.oracles import items as oracles
from tests.plans import faults, without_broadcasts

pytestmark = pytest.mark.slow

LAST_MICRO = timedelta(days=1) - timedelta(microseconds=1)
TIMES = [
    timedelta(0),
    timedelta(microseconds=1),
    timedelta(hours=12),
    timedelta(hours=23) - timedelta(microseconds=1),
    timedelta(hours=23),
    LAST_MICRO,
]
DAYS = [
    date(1, 1, 1),
    date(1, 1, 2),
    date(1582, 10, 14),
    date(1969, 12, 31),
    date(1970, 1, 1),
    date(2026, 12, 27),  # a Sunday, the last of 2026-W52
    date(2026, 12, 31),
    date(2027, 1, 1),
    date(2027, 1, 2),
    date(9999, 12, 30),
    date(9999, 12, 31),
]
SEASONS = {
    season.name: season
    for season in (
        Season("cup", "cup"),
        Season("cup-of-2027", "cup", date(2027, 1, 1), date(2027, 12, 31)),
        Season("odd", "ü '"),
        Season("winter", None, date(2026, 12, 27), date(2027, 1, 1)),
        Season("old", None, date.min, date(1969, 12, 31)),
        Season("late", "cup", date(9999, 12, 31)),
    )
}
POINTS = ["0", "0", "1", "1", "-1", "2", "0.1", "-0.1", "12.5", "0.0001", "99999999999999.9999", "-99999999999999.9999"]
PLAYERS = ["a", "A", " a", "é", "e\u0301", "🚀", "ש\u200f", "\u0000", "'", '"', "\\", "\n", "\uffff"]
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)
INSTANTS = [
    datetime.min.replace(tzinfo=UTC),
    NEW_YEAR,
    NEW_YEAR + timedelta(microseconds=1),
    NEW_YEAR + timedelta(days=365),
    datetime.max.replace(tzinfo=UTC),
]
REGIONS = [None, "", "eu", "ü"]
PARTS: dict[str, Callable[[Row], object]] = {
    "one file a day": lambda row: None,
    "one player a file": lambda row: row.get("player_id", row.get("item_id")),
    "one event id a file": lambda row: row["event_id"],
    "two files a day": lambda row: row["offset"] % 2,
}

drawn_events = st.fixed_dictionaries(
    {
        "is_item": st.sampled_from([False, False, False, True]),
        "day": st.sampled_from(DAYS),
        "time": st.sampled_from(TIMES) | st.integers(0, 86_400_000_000 - 1).map(lambda us: timedelta(microseconds=us)),
        "event_id": st.sampled_from(["e", "E", "é", "e\u0301", "1", "01", "🚀", " "]) | st.text(min_size=1, max_size=2),
        "player_id": st.sampled_from(PLAYERS)
        | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=2),
        "points": st.sampled_from(POINTS),
        "weight": st.sampled_from([1, 2, WEIGHT_MAX]),
        "received_at": st.sampled_from(INSTANTS),
        "region": st.sampled_from(REGIONS),
        "match_type": st.sampled_from([None, "duel"]),
        "season": st.sampled_from([None, "", "cup", "cup", "ü '"]),
        "source": st.sampled_from(["s", "S", "ß"]),
        "partition": st.sampled_from([0, 1, 2**31 - 1]),
    }
)


def filters(**columns: list[str]) -> st.SearchStrategy[Filter]:
    """Filters by any of these columns and values."""
    chosen = {
        name: st.just(()) | st.lists(st.sampled_from(values), min_size=1).map(tuple) for name, values in columns.items()
    }
    return st.builds(Filter, **chosen)


rules = {
    "order": st.sampled_from(["descending", "ascending"]),
    "rank_style": st.sampled_from(["competition", "dense", "ordinal"]),
    "tie_breaks": st.lists(st.sampled_from(["reached_at", "fewer_events", "more_events"]), unique=True).map(tuple),
    "reached_by": st.sampled_from(["occurred_at", "received_at"]),
    "depth": st.sampled_from([1, 2, 3, 1000]),
    "periods": st.lists(st.sampled_from(["day", "week", "year", "all_time"]), unique=True, min_size=1).map(tuple),
}


def boards_of(semantics: str, is_item: bool) -> st.SearchStrategy[Board]:
    """Boards of one kind; every example has one of each, so that no engine is spared any."""
    if is_item:
        own = {"source": st.just("item_events"), "filter": filters(region=["", "eu"]), "seasons": st.just(())}
    else:
        chosen = filters(region=["", "eu", "ü"], match_type=["duel"], season=["", "cup"])
        own = {"filter": st.just(Filter()) | chosen}
        own["seasons"] = st.lists(st.sampled_from(sorted(SEASONS)), unique=True, max_size=3).map(tuple)
    return st.builds(
        Board, name=st.just(f"{semantics}{'-items' * is_item}"), semantics=st.just(semantics), **rules, **own
    )


KINDS = [("sum", False), ("best", False), ("latest", False), ("sum", True), ("latest", True)]
drawn_cases = st.builds(
    lambda drawn, boards, bans, voided, as_of, cuts, parts: Case(
        **placed(drawn),
        boards=boards,
        seasons=SEASONS,
        bans=bans,
        voided=voided,
        as_of=as_of,
        runs=runs_between(sorted(cuts)),
        part_of=PARTS[parts],
    ),
    st.lists(drawn_events, min_size=60, max_size=160),
    st.tuples(*(boards_of(*kind) for kind in KINDS)),
    st.dictionaries(st.sampled_from(PLAYERS), st.sampled_from(INSTANTS), max_size=3),
    st.sets(st.sampled_from(["e", "é", "1", "'"]), max_size=2),
    st.sampled_from([*DAYS[5:], date.max]),
    st.sets(st.sampled_from(DAYS[1:]), max_size=3),
    st.sampled_from(sorted(PARTS)),
)


def placed(drawn: list[Row]) -> dict[str, list[Row]]:
    """The drawn copies as events of the lake; offsets tell copies apart that nothing else does."""
    found: dict[str, list[Row]] = {"scores": [], "items": []}
    for offset, each in enumerate(drawn):
        at = oracles.start_of(each["day"]) + each["time"]
        shared = {name: each[name] for name in ("received_at", "region", "source", "partition")}
        shared |= {"occurred_at": at, "offset": offset}
        if each["is_item"]:
            of_item = {"event_id": each["event_id"], "item_id": each["player_id"], "weight": each["weight"]}
            found["items"].append(event(0, **of_item, **shared))
        else:
            of_score = {name: each[name] for name in ("match_type", "season")}
            found["scores"].append(score(each["event_id"], each["player_id"], each["points"], **of_score, **shared))
    return found


def runs_between(cuts: Sequence[date]) -> list[tuple[date, date]]:
    """All days, cut before each of these."""
    firsts = [date.min, *cuts]
    return list(zip(firsts, [*(cut - timedelta(days=1) for cut in cuts), date.max], strict=True))


def agreed(engines: Engines, names: Sequence[str], case: Case, folder: Path) -> None:
    """Passes when every engine's rows are the oracle's, and DuckDB's recount says so too."""
    files, rows = case.event_files(folder), due(case)
    for name in names:
        staged = derive(engines[name], case, folder, files)
        for table in STAGED:
            assert rows_of(staged[table.name], table) == rows[table.name], (name, table.name)
        assert recounted(case, files, staged) == [], name
        assert close_recounted(case, staged, folder) == [], name


def law(engines: Engines, folder: Path, names: Sequence[str], examples: int, phases: Sequence[Phase]) -> None:
    """Holds so many drawn cases."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=phases)
    @given(drawn_cases)
    def holds(case: Case) -> None:
        assume(len(case.days) > 3)  # the engines' time is for cases that have something to say
        agreed(engines, names, case, Path(mkdtemp(dir=folder)))

    holds()


@pytest.mark.timeout(900)
def test_all_engines_recount_and_oracle_give_equal_boards(engines: Engines, tmp_path: Path) -> None:
    """Without shrinking: Spark takes seconds for a case."""
    law(engines, tmp_path, NAMES, 2, [Phase.explicit, Phase.reuse, Phase.generate])


def test_sail_recount_and_oracle_give_equal_boards_of_more_events(engines: Engines, tmp_path: Path) -> None:
    law(engines, tmp_path, ["sail"], 10, list(Phase))


def at_noon(number: int, player: str, points: str, **fields: object) -> Row:
    """A score of an event id of its own."""
    return score(f"e{number}", player, points, 43_200 + number, offset=number, **fields)


def test_totals_are_exact_above_2_to_53_and_in_tenths(engine: Engine, tmp_path: Path) -> None:
    """Doubles cannot tell the totals of ana, ben and cai apart, nor add up a tenth ten times."""
    hundredth, tenths = "90071992547409.93", ["0.1"] * 10
    scores = [at_noon(n, "ana", hundredth) for n in range(100)]  # 2^53 + 1
    scores += [at_noon(100 + n, "ben", hundredth) for n in range(99)]
    scores += [at_noon(199, "ben", "90071992547408.93")]  # 2^53
    scores += [at_noon(200 + n, "cai", hundredth) for n in range(100)] + [at_noon(300, "cai", "0.0001")]
    scores += [at_noon(310 + n, "dee", points) for n, points in enumerate(tenths)]
    scores += [at_noon(330, "eli", "1"), at_noon(331, "fay", "0.9999"), at_noon(332, "gus", "900720")]
    scores += [at_noon(333, "hal", "900719")]
    case = Case(scores, [Board(name="b", periods=("day", "all_time"))])
    files = case.event_files(tmp_path)
    staged = derive(engine, case, tmp_path, files)
    rows = [row for row in rows_of(staged[SEASON_RANKS.name], SEASON_RANKS) if row["period"] == "all_time"]
    ranks = [(row["rank"], row["player_id"], row["points"]) for row in sorted(rows, key=lambda row: row["position"])]
    two = Decimal(2**53)
    assert ranks == [
        (1, "cai", two + Decimal("1.0001")),
        (2, "ana", two + 1),
        (3, "ben", two),
        (4, "gus", 900_720),
        (5, "hal", 900_719),
        (6, "dee", 1),
        (6, "eli", 1),
        (8, "fay", Decimal("0.9999")),
    ]
    assert recounted(case, files, staged) == []


def test_the_largest_totals_are_exact_and_one_more_is_refused(engine: Engine, tmp_path: Path) -> None:
    """A total has 24 digits before its point, which no number of events that a lake can hold passes."""
    limit = Decimal(10) ** 24 - Decimal("0.0001")
    at = MIDNIGHT
    fixed = {"day": at.date(), "board": "b", "period": "all_time", "season": "", "event_count": 1}
    fixed |= {"first_at": at, "changed_at": at, "on_day": at.date()} | dict.fromkeys(LAST)

    def merged(name: str, *points: str | Decimal) -> list[Decimal]:
        rows = [fixed | {"player_id": "ana", "points": Decimal(each)} for each in points]
        days = engine.read([written(tmp_path / f"{name}.parquet", rows, OF_PERIOD)], OF_PERIOD)
        totals = TOTALS.conform(board_ranks.merge_days(days, Board(name="b")).select(*TOTALS.schema.names))
        return [row["points"] for row in rows_of(engine.stage(totals, TOTALS, tmp_path / name).files, TOTALS)]

    with localcontext(oracles_boards.PLENTY):
        for sign in (1, -1):
            assert merged(f"largest{sign}", sign * (limit - 7), sign * Decimal(7)) == [sign * limit]
            assert merged(f"between{sign}", sign * limit, sign * limit, -sign * limit) == [sign * limit]
            with pytest.raises(DaybreakError):
                merged(f"above{sign}", sign * limit, sign * Decimal("0.0001"))


OF_PERIOD = pa.schema([*(field for field in PLAYER_DAYS.schema), pa.field("period", pa.string())])


@pytest.mark.parametrize("semantics", ["sum", "best", "latest"])
def test_no_step_on_spark_puts_all_rows_in_one_task(semantics: str, spark_engine: Engine, tmp_path: Path) -> None:
    board = Board(name="b", semantics=semantics)
    scored = spark_engine.read([written(tmp_path / "scored.parquet", [], SCORED.schema)], SCORED.schema)
    days = spark_engine.read([written(tmp_path / "days.parquet", [], OF_PERIOD)], OF_PERIOD)
    with without_broadcasts(spark_engine.spark):
        players = board_ranks.merge_days(days, board)
        frames = [player_days(scored, board, ["", "cup"]), players, board_ranks.count_points(players)]
        frames += [board_ranks.rank_by_counting(players, board, depth) for depth in (None, 10)]
        assert [faults(frame) for frame in frames] == [[]] * 5
