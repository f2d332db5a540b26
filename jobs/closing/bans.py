"""Bans, their end, and voids of single events: recorded, then brought to every board that they touch.

Which periods a ban reaches says `Period.ends_after`; `jobs.boards.ranks.without_banned` is the same rule for an engine.

Reads   player_days  at the manifest, events  newest
Writes  board_actions, then what a night of the boards and amendments write
Rerun   nothing is recorded twice; boards that are right already stay as they are
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from uuid import uuid4

import pyarrow.compute as pc

from daybreak.errors import UnreachableError, UsageError
from daybreak.rules.boards import Boards
from daybreak.windows import ranges
from jobs.board_night import board_night
from jobs.boards.plan import Ranked
from jobs.closing import exceptions
from jobs.closing.amend import amend
from jobs.run.commit import finish_others
from jobs.run.context import Context
from lakehouse import actions
from lakehouse.closes import Version, newest_versions
from lakehouse.runs import newest_days, newest_manifest
from lakehouse.tables import registry as tables

Played = dict[tuple[str, str], list[date]]
"""(board, season label) -> the days on which a player has partials, in order."""


@dataclass(frozen=True)
class Reached:
    """What an action changed: open periods ranked anew, and the versions of closed ones that hold now."""

    ranked: tuple[tuple[str, str], ...]
    """(board, period)"""
    amended: tuple[Version, ...]
    """Only those that are new."""


def ban(context: Context, player: str, since: datetime, reason: str, actor: str = "") -> Reached:
    """Take the player out of every period that ends after `since`, open or closed, in the lake and in Redis.

    Raises:
        UsageError: nobody has that id, or `since` has no time zone.
        UnreachableError: Redis is away; the ban is recorded, and repeating it does the rest.
    """
    require_zone(since)
    require_player(context, player)

    def note() -> None:
        if actions.banned(context.store).get(player) != since.astimezone(UTC):
            about = {"player_id": player, "since": since.astimezone(UTC)}
            actions.record(context.store, context.clock, "ban", reason=reason, actor=actor, **about)

    return recorded(
        context, f"ban of {player}: {reason}", note, lambda run_id: reach_player(context, player, run_id, reason)
    )


def unban(context: Context, player: str, reason: str, actor: str = "") -> Reached:
    """Let the player back into every period that the ban took the player out of.

    Raises:
        UsageError: the player never was banned.
        UnreachableError: Redis is away; it is recorded, and repeating it does the rest.
    """
    if not any(row["action"] == "ban" and row["player_id"] == player for row in actions.actions(context.store)):
        raise UsageError(f"player {player!r} is not banned; daybreak board audit lists every ban")

    def note() -> None:
        if player in actions.banned(context.store):
            actions.record(context.store, context.clock, "unban", reason=reason, actor=actor, player_id=player)

    what = f"end of the ban of {player}: {reason}"
    return recorded(context, what, note, lambda run_id: reach_player(context, player, run_id, what))


def void(context: Context, event_id: str, reason: str, actor: str = "") -> Reached:
    """Let the event count nowhere: its days are derived anew, and closed periods that it counted in amended.

    Raises:
        UsageError: no such event.
        UnreachableError: Redis is away; the void is recorded, and repeating it does the rest.
    """
    happened = occurrences(context, event_id)
    if not happened:
        raise UsageError(f"no event has the id {event_id!r}; ids are told apart by case, look it up with daybreak sql")

    def note() -> None:
        if event_id not in actions.voided(context.store):
            about = {"event_id": event_id, "since": min(at for _, at in happened)}
            actions.record(context.store, context.clock, "void", reason=reason, actor=actor, **about)

    what = f"void of {event_id}: {reason}"
    return recorded(context, what, note, lambda run_id: reach_days(context, happened, run_id, what))


def recorded(context: Context, what: str, note: Callable[[], None], reach: Callable[[str], Reached]) -> Reached:
    """`note`, then `reach`, under the lease. Where Redis is away the note is taken all the same."""
    run_id = f"{what.partition(' ')[0]}-{uuid4().hex[:8]}"
    try:
        with context.lease(run_id):
            finish_others(context)  # a dead run's days count too, and are derived anew if they must be
            note()
            return reach(run_id)
    except UnreachableError as error:
        note()
        raise UnreachableError(f"{error}. The {what} is recorded and holds from now on; repeat it for Redis") from error


def reach_player(context: Context, player: str, run_id: str, reason: str) -> Reached:
    """Rank anew what the player is on, and amend what the player was on, where any ban of the player ever reached."""
    bans = [row for row in actions.actions(context.store) if row["action"] == "ban" and row["player_id"] == player]
    since = min(row["since"] for row in bans if isinstance(row["since"], datetime))
    played = played_days(context, player)
    closed = newest_versions(context.store)
    touched = closed_with(context, player, played, since)
    corrected = newest_days(context.store, "boards")
    anew = [each for each in open_periods(context.boards, played, since, corrected) if each.key[1:] not in closed]
    if anew:
        whole = [day for day, seen in corrected.items() if seen.counted.is_complete]
        day = max(whole or corrected)
        board_night(context, run_id, day, day, allow_incomplete=True, also=anew)
        exceptions.find(context.store, context.clock, day, day)
    return Reached(tuple(each.key[1:] for each in anew), amended(context, touched, run_id, reason))


def reach_days(context: Context, happened: Iterable[tuple[str, datetime]], run_id: str, reason: str) -> Reached:
    """Derive the days anew that were corrected, and amend the closed periods that hold one of them."""
    happened = list(happened)
    corrected = newest_days(context.store, "boards")
    anew: list[tuple[str, str]] = []
    for number, days in enumerate(ranges({at.date() for _, at in happened} & set(corrected))):
        plan = board_night(context, f"{run_id}-{number}", *days, allow_incomplete=True).plan
        exceptions.find(context.store, context.clock, *days)
        anew += [each.key[1:] for each in plan.ranked]
    touched = [
        each
        for each in newest_versions(context.store).values()
        if any(source == each.rules.source and each.span.holds(at.date()) for source, at in happened)
    ]
    return Reached(tuple(sorted(set(anew))), amended(context, touched, run_id, reason))


def amended(context: Context, touched: Iterable[Version], run_id: str, reason: str) -> tuple[Version, ...]:
    """The versions that are new once each of these is what it must be."""
    made = ((before, amend(context, before, run_id, reason)) for before in touched)
    return tuple(after for before, after in made if after.version != before.version)


def open_periods(boards: Boards, played: Played, since: datetime, corrected: Iterable[date]) -> list[Ranked]:
    """Every period that a player's days are in and that ends after `since`, as of its end or the newest day."""
    newest = max(corrected, default=date.min)
    found: dict[tuple[str, str], Ranked] = {}
    for (name, season), days in played.items():
        if name not in boards.boards:
            continue
        board = boards.board(name)
        for day in days:
            for period in boards.periods(board, day, day):
                if period.label == season and period.ends_after(since):
                    found[name, period.name] = Ranked(board, period, min(period.days[1], newest))
    return [found[key] for key in sorted(found)]


def closed_with(context: Context, player: str, played: Played, since: datetime) -> list[Version]:
    """The newest versions of closed periods that end after `since` and that the player has a day in, or a rank.

    Accepted late events are in no night's days, and days of a board that is ranked no more are derived no more.
    """
    named = context.store.dataset(tables.SEASON_RANKS).to_table(
        columns=["board", "period"], filter=pc.field("player_id") == player
    )
    ranked = {(row["board"], row["period"]) for row in named.to_pylist()}
    return [
        each
        for each in newest_versions(context.store).values()
        if each.span.ends_after(since)
        and (each.key in ranked or any(each.span.holds(day) for day in played.get((each.board, each.span.label), ())))
    ]


def played_days(context: Context, player: str) -> Played:
    """The days of the player on every board, as analysts see them."""
    version = newest_manifest(context.store).get(tables.PLAYER_DAYS.name, -1)
    if version < 0:
        return {}
    rows = context.store.dataset(tables.PLAYER_DAYS, version).to_table(
        columns=["day", "board", "season"], filter=pc.field("player_id") == player
    )
    found: Played = {}
    for row in rows.sort_by("day").to_pylist():
        found.setdefault((row["board"], row["season"]), []).append(row["day"])
    return found


def occurrences(context: Context, event_id: str) -> list[tuple[str, datetime]]:
    """(source table, occurred_at) of every copy of an event."""
    found: list[tuple[str, datetime]] = []
    for table in tables.EVENTS.values():
        rows: Any = context.store.dataset(table).to_table(
            columns=["occurred_at"], filter=pc.field("event_id") == event_id
        )
        found += [(table.name, at) for at in rows["occurred_at"].to_pylist()]
    return found


def require_player(context: Context, player: str) -> None:
    """Passes when a player has partials, or an event at least.

    Raises:
        UsageError: nobody has that id.
    """
    if played_days(context, player):
        return
    for table, column in ((tables.SCORE_EVENTS, "player_id"), (tables.ITEM_EVENTS, "item_id")):
        if context.store.dataset(table).head(1, columns=[column], filter=pc.field(column) == player).num_rows:
            return
    raise UsageError(f"no player {player!r} has an event; ids are told apart by case, look it up with daybreak sql")


def require_zone(since: datetime) -> None:
    """Passes when the instant says its zone.

    Raises:
        UsageError: it does not.
    """
    if since.tzinfo is None:
        raise UsageError(f"since {since} has no time zone; write it as 2026-03-01T00:00Z")
