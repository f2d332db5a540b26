"""The truth about boards is itself checked: by the worked examples."""

from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from daybreak.rules.boards import Board, Filter
from daybreak.rules.seasons import ALL_TIME, Period, PeriodKind, Season, parse_period, period_at, period_of_season
from tests import builders
from tests.builders import MIDNIGHT, score
from tests.oracles import boards as oracles_boards
from tests.oracles.boards import Row

DAY = date(2026, 3, 1)
TODAY = period_at(PeriodKind.DAY, DAY)
SUM = Board(name="sum")


def totals(**of: int | str) -> list[dict[str, Any]]:
    """One event per player, a second apart."""
    return [score(f"e{n}", player, points, n) for n, (player, points) in enumerate(of.items())]


def players(rows: Iterable[Row]) -> list[str]:
    return [row.player_id for row in rows]


def lines(rows: Iterable[Row]) -> list[tuple[int, str, Decimal]]:
    return [(row.rank, row.player_id, row.points) for row in rows]


def test_a_repeated_event_counts_once_and_equal_points_go_to_who_had_them_first() -> None:
    e3 = score("e3", "ben", 20, 1010)
    events = [score("e1", "ana", 50, 1000), score("e2", "ben", 30, 1005), e3, score("e4", "cai", 70, 1003), e3]
    assert lines(oracles_boards.board(events, SUM, TODAY)) == [(1, "cai", 70), (2, "ana", 50), (2, "ben", 50)]


def test_players_join_and_overtake() -> None:
    events = totals(Ben=300, Cy=200, Ana=120, Dee=90)
    assert players(oracles_boards.board(events, SUM, TODAY)) == ["Ben", "Cy", "Ana", "Dee"]
    events += [score("j1", "Eli", 250, 60), score("j2", "Fay", 150, 61), score("j3", "Ana", 160, 62)]
    assert players(oracles_boards.board(events, SUM, TODAY)) == ["Ben", "Ana", "Eli", "Cy", "Fay", "Dee"]
    events += [score("j4", "Dee", 170, 63)]
    last = oracles_boards.board(events, SUM, TODAY)[-1]
    assert (last.position, last.rank, last.player_id) == (6, 6, "Fay")


def test_a_total_sent_twice_stays() -> None:
    events = [score("e1", "ana", 1_830), score("e1", "ana", 1_830, 5, offset=1)]
    (row,) = oracles_boards.board(events, SUM, TODAY)
    assert (row.points, row.event_count, row.reached_at) == (1_830, 1, MIDNIGHT)


def test_41_206_players_above_make_rank_41_207() -> None:
    events = [score("own", "ana", 1_830), *(score(f"e{n}", f"p{n}", 1_831 + n % 7) for n in range(41_206))]
    row = oracles_boards.board(events, SUM, TODAY)[-1]
    assert (row.player_id, row.rank, row.population, row.percentile) == ("ana", 41_207, 41_207, 0.0)


@pytest.mark.parametrize(
    ("style", "ranks"), [("competition", [1, 1, 3, 3, 5]), ("dense", [1, 1, 2, 2, 3]), ("ordinal", [1, 2, 3, 4, 5])]
)
def test_rank_styles(style: str, ranks: list[int]) -> None:
    found = oracles_boards.board(totals(a=50, b=50, c=30, d=30, e=10), Board(name="b", rank_style=style), TODAY)
    assert [row.rank for row in found] == ranks
    assert [row.position for row in found] == [1, 2, 3, 4, 5]
    assert [row.percentile for row in found] == [60.0, 60.0, 20.0, 20.0, 0.0]


def test_fractions_of_points_are_exact() -> None:
    events = [score("e1", "ana", "12.5"), score("e2", "ana", "0.5")]
    events += [score(f"t{n}", "ben", "0.1") for n in range(10)]
    assert lines(oracles_boards.board(events, SUM, TODAY)) == [(1, "ana", 13), (2, "ben", Decimal("1.0"))]


def test_zero_and_negative_totals_are_listed() -> None:
    events = [score("e1", "ana", -5), score("e2", "ben", 3), score("e3", "ben", -3), score("e4", "cai", 0)]
    assert lines(oracles_boards.board(events, SUM, TODAY)) == [(1, "ben", 0), (1, "cai", 0), (3, "ana", -5)]


def test_large_totals_that_doubles_confuse_rank_apart() -> None:
    events = totals(a=2**53, b=2**53 + 1, c=900_719, d=900_720, e="0.0001", f="99999999999999.9999")
    events += [score("f2", "f", "0.0001", 9), score("f3", "f", "-99999999999999.9998", 9)]
    assert players(oracles_boards.board(events, SUM, TODAY)) == ["b", "a", "d", "c", "f", "e"]
    assert oracles_boards.board(events, SUM, TODAY)[4].points == Decimal("0.0002")


def test_percentiles_of_1_to_12() -> None:
    rows = oracles_boards.board([score(f"e{n}", f"p{n}", n) for n in range(1, 13)], SUM, TODAY)
    assert [row.percentile for row in rows] == [100 * below / 12 for below in range(11, -1, -1)]


def test_reached_at_of_a_sum_is_the_last_change_and_without_one_the_first_event() -> None:
    events = [score("e1", "ana", 5, 10), score("e2", "ana", -5, 20), score("e3", "ana", 0, 30)]
    events += [score("e4", "ben", 0, 40), score("e5", "ben", 0, 25)]
    rows = oracles_boards.board(events, SUM, TODAY)
    assert [(row.player_id, row.reached_at.second) for row in rows] == [("ana", 20), ("ben", 25)]


def test_best_was_reached_when_it_was_reached_first() -> None:
    events = [score("e1", "ana", 5, 30), score("e2", "ana", 5, 20), score("e3", "ana", 1, 10)]
    (row,) = oracles_boards.board(events, Board(name="b", semantics="best"), TODAY)
    assert (row.points, row.reached_at.second, row.event_count) == (5, 20, 3)
    (row,) = oracles_boards.board(events, Board(name="b", semantics="best", order="ascending"), TODAY)
    assert (row.points, row.reached_at.second) == (1, 10)


def test_latest_of_equal_times_is_the_larger_order_key() -> None:
    events = [score("e1", "ana", 9, 30, offset=1), score("e2", "ana", 2, 30, offset=2), score("e3", "ana", 50, 10)]
    (row,) = oracles_boards.board(events, Board(name="b", semantics="latest"), TODAY)
    assert (row.points, row.reached_at.second) == (2, 30)


def test_the_clock_of_reached_at_is_the_boards() -> None:
    late = {"received_at": MIDNIGHT + timedelta(seconds=50)}
    events = [score("e1", "ana", 5, 10, **late), score("e2", "ben", 5, 20)]
    assert players(oracles_boards.board(events, SUM, TODAY)) == ["ana", "ben"]
    assert players(oracles_boards.board(events, Board(name="b", reached_by="received_at"), TODAY)) == ["ben", "ana"]


def test_tie_breaks_in_turn_and_then_the_bytes_of_the_id() -> None:
    events = [score("a", "ana", 2, 5), score("b1", "ben", 1, 1), score("b2", "ben", 1, 2), score("c", "cai", 2, 5)]
    order = {
        ("reached_at",): ["ben", "ana", "cai"],
        ("fewer_events", "reached_at"): ["ana", "cai", "ben"],
        ("more_events",): ["ben", "ana", "cai"],
        ("player_id",): ["ana", "ben", "cai"],
        (): ["ana", "ben", "cai"],
    }
    for breaks, expected in order.items():
        assert players(oracles_boards.board(events, Board(name="b", tie_breaks=breaks), TODAY)) == expected
    ids = ["😀", "\uffff", "é", "Z", "a"]
    rows = oracles_boards.board([score(each, each, 1) for each in ids], SUM, TODAY)
    assert players(rows) == ["Z", "a", "é", "\uffff", "😀"]


def test_the_periods_of_a_day_are_cut_at_utc_midnight() -> None:
    events = [score("e1", "ana", 1, -0.000001), score("e2", "ben", 2, 0), score("e3", "cai", 3, 86_400)]
    events[1]["occurred_at"] = events[1]["occurred_at"].astimezone(tz=builders.instant("2026-01-01T00:00-05:00").tzinfo)
    for period, expected in {"2026-02-28": ["ana"], "2026-03-01": ["ben"], "2026-W09": ["ben", "ana"]}.items():
        assert players(oracles_boards.board(events, SUM, parse_period(period, {}))) == expected
    assert players(oracles_boards.board(events, SUM, ALL_TIME)) == ["cai", "ben", "ana"]
    assert players(oracles_boards.board(events, SUM, ALL_TIME, as_of=DAY)) == ["ben", "ana"]


def test_seasons_go_by_label_by_days_or_by_both() -> None:
    events = [score("e1", "ana", 1, season="cup"), score("e2", "ben", 2), score("e3", "cai", 3, 86_400, season="cup")]
    by_label, by_days = Season("cup", label="cup"), Season("march", first=DAY, last=DAY)
    both = Season("both", label="cup", first=DAY, last=DAY)
    for season, expected in ((by_label, ["cai", "ana"]), (by_days, ["ben", "ana"]), (both, ["ana"])):
        assert players(oracles_boards.board(events, SUM, period_of_season(season))) == expected


def test_filters_all_hold_and_the_copy_that_wins_decides() -> None:
    cup = Board(name="b", filter=Filter(region=("EU", "US"), match_type=("ranked",), season=("x",)))
    fits = {"region": "EU", "match_type": "ranked", "season": "x"}
    events = [score("e1", "ana", 1, **fits), score("e2", "ben", 1, **{**fits, "region": None})]
    events += [score("e3", "cai", 1, **{**fits, "match_type": "training"}), score("e3", "cai", 1, 5, **fits)]
    assert players(oracles_boards.board(events, cup, TODAY)) == ["ana"]
    other_label = Period(PeriodKind.SEASON, "y", label="y")
    assert oracles_boards.board(events, cup, other_label) == []


def test_item_events_rank_items_by_weight() -> None:
    events = [builders.event(1, item_id="A", weight=2), builders.event(2, item_id="B", weight=3)]
    plays = Board(name="plays", source="item_events")
    assert lines(oracles_boards.board(events, plays, TODAY)) == [(1, "B", 3), (2, "A", 2)]


def test_bans_leave_the_periods_that_ended_before_them() -> None:
    events = [score("e1", "ana", 9), score("e2", "ben", 5), score("e3", "ana", 9, 86_400)]
    on_the_second = {"ana": MIDNIGHT + timedelta(days=1)}
    assert players(oracles_boards.board(events, SUM, TODAY, on_the_second)) == ["ana", "ben"]
    assert players(oracles_boards.board(events, SUM, ALL_TIME, on_the_second)) == ["ben"]
    just_before = {"ana": MIDNIGHT + timedelta(days=1, microseconds=-1)}
    (row,) = oracles_boards.board(events, SUM, TODAY, just_before)
    assert (row.player_id, row.position, row.population) == ("ben", 1, 1)


def test_a_void_gives_back_the_best_before_it() -> None:
    events = [score("e1", "ana", 9), score("e2", "ana", 4), score("e3", "ben", 1)]
    best = Board(name="b", semantics="best")
    assert lines(oracles_boards.board(events, best, TODAY, voided={"e1", "e3"})) == [(1, "ana", 4)]


def test_the_histogram_counts_everybody_best_first() -> None:
    events = totals(a=5, b=1, c=5, d=-2)
    assert oracles_boards.histogram(events, SUM, TODAY) == [(5, 2), (1, 1), (-2, 1)]
    up = Board(name="b", order="ascending")
    assert oracles_boards.histogram(events, up, TODAY, {"b": MIDNIGHT}) == [(-2, 1), (5, 2)]


def test_partials_of_a_day_by_label() -> None:
    events = [score("e1", "ben", 2, 7, season="cup"), score("e2", "ana", 0, 8), score("e3", "ana", 9, 86_400)]
    rows = oracles_boards.partials(events, SUM, DAY, ["", "cup"])
    keys = ("season", "player_id", "points", "event_count")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("", "ana", 0, 1),
        ("", "ben", 2, 1),
        ("cup", "ben", 2, 1),
    ]
    assert rows[0]["changed_at"] is None
    assert rows[0]["first_at"] == MIDNIGHT + timedelta(seconds=8)
    assert rows[1]["changed_at"] == rows[1]["first_at"] == MIDNIGHT + timedelta(seconds=7)
    assert rows[1]["last_offset"] is None
    (latest, _) = oracles_boards.partials(events, Board(name="b", semantics="latest"), DAY)
    assert (latest["last_source"], latest["last_offset"], latest["last_received_at"]) == (
        "test",
        0,
        latest["changed_at"],
    )
