"""The tables of boards: partials, snapshots and histograms of every night; closed periods and what was decided."""

import pyarrow as pa

from daybreak.events import INSTANT
from lakehouse.tables.table import DAY, TOTAL, Table, column

_BOARD = [DAY, column("board", pa.string()), column("period", pa.string())]
_STANDING = [
    column("points", TOTAL),
    column("reached_at", INSTANT),
    column("event_count", pa.int64()),
    column("rank", pa.int64()),
    column("population", pa.int64()),
]
AS_OF = column("as_of", pa.date32())
PERIOD_COMMENTS = {
    "period": "2026-03-01, 2026-W28, 2026, all_time or a season's name",
    "position": "1 to N without gaps, by points, the board's tie-breaks, then player_id (UTF-8 bytes)",
    "rank": "by points alone, in the board's style",
    "population": "players on the board",
    "reached_at": "sum: last event that changed it; best: first time it was reached; latest: time of that event",
}

PLAYER_DAYS = Table(
    "player_days",
    "What one player did on one board on one closed UTC day; any period is merged from these.",
    pa.schema(
        [
            DAY,
            column("board", pa.string()),
            column("season", pa.string()),
            column("player_id", pa.string()),
            column("points", TOTAL),
            column("event_count", pa.int64()),
            column("first_at", INSTANT),
            column("changed_at", INSTANT, True),
            column("last_received_at", INSTANT, True),
            column("last_source", pa.string(), True),
            column("last_partition", pa.int32(), True),
            column("last_offset", pa.int64(), True),
            column("last_occurred_at", INSTANT, True),
            column("on_day", pa.date32()),
        ]
    ),
    ("day", "board", "season", "player_id"),
    {
        "season": "label that the events carry; empty: all events of the board",
        "points": "sum, best or latest, as the board says",
        "changed_at": "sum: last event with points, null if none; best: first time of the best; latest: its time",
        "on_day": "the same as `day`, inside the files: many days are then one plain read on every engine",
        "last_offset": "with last_*: order key of the latest event; null on boards that are not `latest`",
    },
    {"event_count": 1},
)

BOARD_SNAPSHOTS = Table(
    "board_snapshots",
    "The first players of every board period, as of the end of `day`.",
    pa.schema([*_BOARD, column("position", pa.int64()), column("player_id", pa.string()), *_STANDING, AS_OF]),
    ("day", "board", "period", "position"),
    PERIOD_COMMENTS | {"day": "as of the end of this day", "as_of": "the same as `day`, inside the files"},
    {"position": 1, "rank": 1, "population": 1, "event_count": 1},
)

BOARD_HISTOGRAMS = Table(
    "board_histograms",
    "How many players have how many points in every board period, as of the end of `day`: all players.",
    pa.schema([*_BOARD, column("points", TOTAL), column("players", pa.int64()), AS_OF]),
    ("day", "board", "period", "points"),
    {
        "day": "as of the end of this day",
        "as_of": "the same as `day`, inside the files",
        "period": PERIOD_COMMENTS["period"],
    },
    {"players": 1},
)

SEASON_RANKS = Table(
    "season_ranks",
    "Final ranks of all players of a closed period; a correction is a further version, never a change.",
    pa.schema(
        [
            *_BOARD,
            column("version", pa.int64()),
            column("position", pa.int64()),
            column("player_id", pa.string()),
            *_STANDING,
            column("percentile", pa.float64()),
            column("lake_version", pa.int64()),
        ]
    ),
    ("board", "period", "version", "player_id"),
    PERIOD_COMMENTS | {"day": "the period's last day", "percentile": "100 x players strictly worse / population"},
)

SEASON_PRIZES = Table(
    "season_prizes",
    "Who won what at a close: slots / among of one prize.",
    pa.schema(
        [
            *_BOARD,
            column("version", pa.int64()),
            column("player_id", pa.string()),
            column("prize", pa.string()),
            column("slots", pa.int64()),
            column("among", pa.int64()),
        ]
    ),
    ("board", "period", "version", "player_id", "prize"),
)

BOARD_CLOSES = Table(
    "board_closes",
    "Closed periods; a version of `season_ranks` holds once its row is here.",
    pa.schema(
        [
            *_BOARD,
            column("version", pa.int64()),
            column("kind", pa.string()),
            column("content_hash", pa.string()),
            column("population", pa.int64()),
            column("lake_version", pa.int64()),
            column("counted", pa.map_(pa.string(), pa.int64())),
            pa.field("accepted", pa.list_(pa.string()), nullable=False),
            column("policy", pa.string()),
            column("reason", pa.string()),
            column("run_id", pa.string()),
            column("closed_at", INSTANT),
        ]
    ),
    ("board", "period", "version"),
    {
        "kind": "close or amendment",
        "counted": "source[partition] -> largest offset that was counted; later ones are exceptions",
        "accepted": "event ids of exceptions that count",
        "policy": "JSON: prizes and rules as published with version 1",
    },
)

AMENDED_RANKS = Table(
    "amended_ranks",
    "What an amendment changed: one row per player whose rank, points or prize differ from the version before.",
    pa.schema(
        [
            *_BOARD,
            column("version", pa.int64()),
            column("player_id", pa.string()),
            column("old_rank", pa.int64(), True),
            column("new_rank", pa.int64(), True),
            column("old_points", TOTAL, True),
            column("new_points", TOTAL, True),
            column("old_prizes", pa.string(), True),
            column("new_prizes", pa.string(), True),
        ]
    ),
    ("board", "period", "version", "player_id"),
)

BOARD_ACTIONS = Table(
    "board_actions",
    "Bans, voids and decisions about exceptions, in the order in which they were taken; nothing is ever removed.",
    pa.schema(
        [
            column("action_id", pa.string()),
            column("at", INSTANT),
            column("action", pa.string()),
            column("player_id", pa.string(), True),
            column("event_id", pa.string(), True),
            column("board", pa.string(), True),
            column("period", pa.string(), True),
            column("since", INSTANT, True),
            column("reason", pa.string()),
            column("actor", pa.string()),
        ]
    ),
    ("action_id",),
    {"action": "ban, unban, void, accept or reject", "since": "a ban removes the player from periods that end later"},
)

BOARD_EXCEPTIONS = Table(
    "board_exceptions",
    "Events that arrived after their period was closed; `board_actions` says what was decided.",
    pa.schema(
        [
            *_BOARD,
            column("event_id", pa.string()),
            column("player_id", pa.string()),
            column("points", TOTAL),
            column("occurred_at", INSTANT),
            column("received_at", INSTANT),
            column("reason", pa.string()),
            column("found_at", INSTANT),
        ]
    ),
    ("board", "period", "event_id"),
    {"day": "the event's day"},
)
