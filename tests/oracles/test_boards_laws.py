"""The truth about boards is itself checked: by laws that need no truth."""

import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daybreak.rules.boards import Board
from daybreak.rules.seasons import ALL_TIME, Period, PeriodKind
from tests.builders import MIDNIGHT, score
from tests.oracles import boards as oracles_boards
from tests.oracles import items as oracles

DAY = date(2026, 3, 1)
SEMANTICS = ("sum", "best", "latest")

SCORES = st.lists(
    st.builds(
        score,
        event_id=st.sampled_from("abcdefghijkl"),
        player_id=st.sampled_from(["ana", "ben", "é"]),
        points=st.sampled_from(["0", "1", "-1", "0.5", "2"]),
        second=st.sampled_from([0.0, 1.0, 1800.0, 3600.0, 86_399.0, 86_400.0, 88_000.0, 90_000.0, 172_800.0]),
        received_at=st.integers(0, 4).map(lambda n: MIDNIGHT + timedelta(hours=15 * n)),
        partition=st.integers(0, 1),
        offset=st.integers(0, 9),
        season=st.sampled_from([None, "cup"]),
    ),
    max_size=25,
).map(lambda rows: list({oracles.order_key(row): row for row in rows}.values()))
BOARDS = st.builds(
    Board,
    name=st.just("b"),
    semantics=st.sampled_from(SEMANTICS),
    order=st.sampled_from(["descending", "ascending"]),
    reached_by=st.sampled_from(["occurred_at", "received_at"]),
    tie_breaks=st.sampled_from([("reached_at",), ("fewer_events", "reached_at"), ("more_events",)]),
)


@given(SCORES)
def test_what_counts_is_what_counts_for_items(events: list[dict[str, Any]]) -> None:
    found = sorted(oracles_boards.distinct(events), key=oracles.order_key)
    days = [DAY + timedelta(days=n) for n in range(3)]
    assert found == sorted((e for day in days for e in oracles.distinct_of_day(events, day)), key=oracles.order_key)


@given(SCORES, BOARDS, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(events: list[dict[str, Any]], board: Board, order: random.Random) -> None:
    rows = oracles_boards.board(events, board, ALL_TIME)
    order.shuffle(events)
    assert oracles_boards.board(events, board, ALL_TIME) == rows


@given(SCORES, BOARDS)
def test_ranks_and_percentiles_are_what_they_say(events: list[dict[str, Any]], board: Board) -> None:
    rows = oracles_boards.board(events, board, ALL_TIME)
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        worse = sum(board.sign * each.points < board.sign * row.points for each in rows)
        better = sum(board.sign * each.points > board.sign * row.points for each in rows)
        assert (row.rank, row.percentile, row.population) == (1 + better, 100 * worse / len(rows), len(rows))


@given(SCORES, BOARDS, st.sampled_from(["", "cup"]))
def test_the_partials_of_days_are_enough_for_any_period(events: list[dict[str, Any]], board: Board, label: str) -> None:
    period = Period(PeriodKind.SEASON, "s", DAY, DAY + timedelta(days=1), label)
    days: dict[str, list[dict[str, Any]]] = {}
    for day in (DAY, DAY + timedelta(days=1)):
        for row in oracles_boards.partials(events, board, day, [label]):
            days.setdefault(row["player_id"], []).append(row)
    expected = {
        row.player_id: (row.points, row.reached_at, row.event_count)
        for row in oracles_boards.board(events, board, period)
    }
    assert {player: merged(rows, board) for player, rows in days.items()} == expected


def merged(rows: list[dict[str, Any]], board: Board) -> tuple[Decimal, datetime, int]:
    """(points, reached_at, event_count) of a player from the partials of several days alone."""
    event_count = sum(row["event_count"] for row in rows)
    match board.semantics:
        case "sum":
            changes = [row["changed_at"] for row in rows if row["changed_at"]]
            reached_at = max(changes) if changes else min(row["first_at"] for row in rows)
            return sum((row["points"] for row in rows), Decimal(0)), reached_at, event_count
        case "best":
            best = max(board.sign * row["points"] for row in rows) * board.sign
            return best, min(row["changed_at"] for row in rows if row["points"] == best), event_count
    columns = ("changed_at", "day", "last_received_at", "last_source", "last_partition", "last_offset")
    last = max(rows, key=lambda row: tuple(row[name] for name in columns))
    return last["points"], last["changed_at"], event_count
