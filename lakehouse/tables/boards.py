"""The tables of boards: partials, snapshots and histograms of every night; closed periods and what was decided."""

import pyarrow as pa

from daybreak.events import INSTANT
from lakehouse.tables.table import DAY, TOTAL, Table
from lakehouse.tables.table import column as _f

_BOARD = [DAY, _f("board", pa.string()), _f("period", pa.string())]
_STANDING = [
    _f("points", TOTAL),
    _f("reached_at", INSTANT),
    _f("event_count", pa.int64()),
    _f("rank", pa.int64()),
    _f("population", pa.int64()),
]
AS_OF = _f("as_of", pa.date32())
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
            _f("board", pa.string()),
            _f("season", pa.string()),
            _f("player_id", pa.string()),
            _f("points", TOTAL),
            _f("event_count", pa.int64()),
            _f("first_at", INSTANT),
            _f("changed_at", INSTANT, True),
            _f("last_received_at", INSTANT, True),
            _f("last_source", pa.string(), True),
            _f("last_partition", pa.int32(), True),
            _f("last_offset", pa.int64(), True),
            _f("last_occurred_at", INSTANT, True),
            _f("on_day", pa.date32()),
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
    pa.schema([*_BOARD, _f("position", pa.int64()), _f("player_id", pa.string()), *_STANDING, AS_OF]),
    ("day", "board", "period", "position"),
    PERIOD_COMMENTS | {"day": "as of the end of this day", "as_of": "the same as `day`, inside the files"},
    {"position": 1, "rank": 1, "population": 1, "event_count": 1},
)

BOARD_HISTOGRAMS = Table(
    "board_histograms",
    "How many players have how many points in every board period, as of the end of `day`: all players.",
    pa.schema([*_BOARD, _f("points", TOTAL), _f("players", pa.int64()), AS_OF]),
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
            _f("version", pa.int64()),
            _f("position", pa.int64()),
            _f("player_id", pa.string()),
            *_STANDING,
            _f("percentile", pa.float64()),
            _f("lake_version", pa.int64()),
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
            _f("version", pa.int64()),
            _f("player_id", pa.string()),
            _f("prize", pa.string()),
            _f("slots", pa.int64()),
            _f("among", pa.int64()),
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
            _f("version", pa.int64()),
            _f("kind", pa.string()),
            _f("content_hash", pa.string()),
            _f("population", pa.int64()),
            _f("lake_version", pa.int64()),
            _f("counted", pa.map_(pa.string(), pa.int64())),
            pa.field("accepted", pa.list_(pa.string()), nullable=False),
            _f("policy", pa.string()),
            _f("reason", pa.string()),
            _f("run_id", pa.string()),
            _f("closed_at", INSTANT),
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
            _f("version", pa.int64()),
            _f("player_id", pa.string()),
            _f("old_rank", pa.int64(), True),
            _f("new_rank", pa.int64(), True),
            _f("old_points", TOTAL, True),
            _f("new_points", TOTAL, True),
            _f("old_prizes", pa.string(), True),
            _f("new_prizes", pa.string(), True),
        ]
    ),
    ("board", "period", "version", "player_id"),
)

BOARD_ACTIONS = Table(
    "board_actions",
    "Bans, voids and decisions about exceptions, in the order in which they were taken; nothing is ever removed.",
    pa.schema(
        [
            _f("action_id", pa.string()),
            _f("at", INSTANT),
            _f("action", pa.string()),
            _f("player_id", pa.string(), True),
            _f("event_id", pa.string(), True),
            _f("board", pa.string(), True),
            _f("period", pa.string(), True),
            _f("since", INSTANT, True),
            _f("reason", pa.string()),
            _f("actor", pa.string()),
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
            _f("event_id", pa.string()),
            _f("player_id", pa.string()),
            _f("points", TOTAL),
            _f("occurred_at", INSTANT),
            _f("received_at", INSTANT),
            _f("reason", pa.string()),
            _f("found_at", INSTANT),
        ]
    ),
    ("board", "period", "event_id"),
    {"day": "the event's day"},
)
