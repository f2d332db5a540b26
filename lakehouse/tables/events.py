"""The tables of events: accepted ones of either kind, and the rows that were refused."""

from daybreak.events import ITEM_EVENT, REFUSAL, SCORE_EVENT, Kind
from lakehouse.tables.table import Table

ITEM_EVENTS = Table("item_events", "Item events as accepted.", ITEM_EVENT, ("source", "partition", "offset"))
SCORE_EVENTS = Table("score_events", "Score events as accepted.", SCORE_EVENT, ("source", "partition", "offset"))
REFUSALS = Table(
    "refusals", "Rows that broke the contract, with the reason.", REFUSAL, ("source", "partition", "offset")
)

EVENTS: dict[Kind, Table] = {Kind.ITEMS: ITEM_EVENTS, Kind.SCORES: SCORE_EVENTS}
"""Where the accepted events of a kind are."""
KINDS: dict[str, Kind] = {table.name: kind for kind, table in EVENTS.items()}
"""The way back: the kind of the events in the table of this name."""
