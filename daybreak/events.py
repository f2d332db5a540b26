"""What an event is, once accepted: the Arrow schemas that every path shares.

Instants are microseconds UTC. `(occurred_at, received_at, source, partition, offset)` is the order key:
of several copies of one `event_id` the smallest wins, on every engine.
"""

from enum import StrEnum

import pyarrow as pa

INSTANT = pa.timestamp("us", tz="UTC")
POINTS = pa.decimal128(18, 4)
ORDER_KEY = ("occurred_at", "received_at", "source", "partition", "offset")

EVENT_ID_BYTES = 256
ITEM_ID_BYTES = 512
WEIGHT_MAX = 2**32

ARRIVAL = [
    pa.field("schema_version", pa.int32(), nullable=False),
    pa.field("extra", pa.map_(pa.string(), pa.string())),
    pa.field("received_at", INSTANT, nullable=False),
    pa.field("source", pa.string(), nullable=False),
    pa.field("partition", pa.int32(), nullable=False),
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("day", pa.date32(), nullable=False),
]

ITEM_EVENT = pa.schema(
    [
        pa.field("event_id", pa.string(), nullable=False),
        pa.field("item_id", pa.string(), nullable=False),
        pa.field("occurred_at", INSTANT, nullable=False),
        pa.field("user_id", pa.string()),
        pa.field("region", pa.string()),
        pa.field("category", pa.string()),
        pa.field("weight", pa.int64(), nullable=False),
        *ARRIVAL,
    ]
)

SCORE_EVENT = pa.schema(
    [
        pa.field("event_id", pa.string(), nullable=False),
        pa.field("match_id", pa.string(), nullable=False),
        pa.field("match_type", pa.string()),
        pa.field("player_id", pa.string(), nullable=False),
        pa.field("points", POINTS, nullable=False),
        pa.field("occurred_at", INSTANT, nullable=False),
        pa.field("region", pa.string()),
        pa.field("season", pa.string()),
        *ARRIVAL,
    ]
)

REFUSAL = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("raw", pa.string(), nullable=False),
        pa.field("received_at", INSTANT, nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
    ]
)


class Kind(StrEnum):
    """The two kinds of event; the value is what `--kind` takes."""

    ITEMS = "items"
    SCORES = "scores"

    @property
    def schema(self) -> pa.Schema:
        return ITEM_EVENT if self is Kind.ITEMS else SCORE_EVENT


class RefusalCode(StrEnum):
    """Why a row was refused. Each row gets the first that applies, in this order."""

    MALFORMED = "malformed"
    MISSING_FIELD = "missing_field"
    TOO_LONG = "too_long"
    BAD_TIMESTAMP = "bad_timestamp"
    NO_TIMEZONE = "no_timezone"
    BAD_WEIGHT = "bad_weight"
    BAD_POINTS = "bad_points"
    FAR_FUTURE = "far_future"
