"""What is done to boards: closes, bans, voids, decisions about late events; each leaves its trace in the lake."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daybreak import settings
from daybreak.cli.boards import BoardName, PeriodName, PlayerId, points_text
from daybreak.cli.boards import app as app
from daybreak.cli.options import Format, parse_instant
from daybreak.cli.output import say, show
from daybreak.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from jobs.closing.bans import Reached
    from jobs.run.context import Context
    from lakehouse.closes import Version

ClosedPeriod = Annotated[str, typer.Argument(metavar="PERIOD", help="A day, week, year or season.")]
EventId = Annotated[str, typer.Argument(metavar="EVENT", help="The event's id.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept for ever.")]
Since = Annotated[
    str, typer.Option("--since", help="UTC, 2026-03-01 or 2026-03-01T10:00: out of every period that ends later.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write and publish nothing.")]
Actor = Annotated[str, typer.Option("--actor", envvar="USER", help="Who does it; kept for ever.")]
VERSION = ("board", "period", "version", "kind", "population", "lake_version", "content_hash", "closed_at")


@app.command(epilog="Example: daybreak board close goals 2026-W28")
def close(
    board: Annotated[str | None, typer.Argument(metavar="[BOARD]", help="A board of boards.toml.")] = None,
    period: Annotated[str | None, typer.Argument(metavar="[PERIOD]", help="A day, week, year or season.")] = None,
    is_due: Annotated[bool, typer.Option("--due", help="Instead: every season that is over and not closed.")] = False,
    dry_run: DryRun = False,
    format_: Format = "table",
) -> None:
    """Make a period final: ranks of all players and prizes; closing it again gives the same answer."""
    from jobs.closing.close import close as close_period
    from jobs.closing.close import due, preview

    with opened() as context:
        if is_due and board is None:
            chosen = due(context)
            say(f"{len(chosen)} seasons are over and not closed")
        elif board and period and not is_due:
            chosen = [(board, period)]
        else:
            raise UsageError("name a board and a period, or say --due; --due goes alone")
        if dry_run:
            show_previews(context, [preview(context, *each) for each in chosen], format_)
        else:
            show_versions((close_period(context, *each) for each in chosen), format_)


@app.command(epilog="Example: daybreak board exceptions goals")
def exceptions(
    board: Annotated[str | None, typer.Argument(metavar="[BOARD]", help="Only of this board.")] = None,
    format_: Format = "table",
) -> None:
    """List events that arrived after their period was closed, and what was decided about each."""
    from jobs.closing.exceptions import exceptions as late_events

    with opened() as context:
        rows = [row | shown_points(context, row, "points") for row in late_events(context, board)]
    columns = ("board", "period", "event_id", "player_id", "points", "occurred_at", "received_at", "state", "reason")
    show(columns, rows, format_)


@app.command(epilog='Example: daybreak board accept goals 2026-W28 match-7 --reason "the server was down"')
def accept(
    board: BoardName, period: ClosedPeriod, event: EventId, reason: Reason, actor: Actor = "", format_: Format = "table"
) -> None:
    """Count a late event in its closed period, which makes an amendment of it."""
    from jobs.closing.exceptions import accept as accept_event

    with opened() as context:
        show_versions([accept_event(context, board, period, event, reason, actor)], format_)


@app.command(epilog='Example: daybreak board reject goals 2026-W28 match-7 --reason "sent after the prizes"')
def reject(
    board: BoardName, period: ClosedPeriod, event: EventId, reason: Reason, actor: Actor = "", format_: Format = "table"
) -> None:
    """Leave a late event out of its closed period for good."""
    from jobs.closing.exceptions import reject as reject_event

    with opened() as context:
        reject_event(context, board, period, event, reason, actor)
    show(
        ("board", "period", "event_id", "state"),
        [{"board": board, "period": period, "event_id": event, "state": "rejected"}],
        format_,
    )


@app.command(epilog="Example: daybreak board ban eve --since 2026-03-01 --reason cheating")
def ban(
    player: PlayerId,
    since: Since,
    reason: Reason,
    actor: Actor = "",
    dry_run: DryRun = False,
    format_: Format = "table",
) -> None:
    """Take a player off every board of a period that ends after an instant; closed ones are amended."""
    from jobs.closing.bans import ban as ban_player

    if dry_run:
        what_if(player, since, format_)
        return
    with opened() as context:
        show_reached(ban_player(context, player, parse_instant(since, "--since"), reason, actor), format_)


@app.command(epilog='Example: daybreak board unban eve --reason "it was somebody else"')
def unban(player: PlayerId, reason: Reason, actor: Actor = "", format_: Format = "table") -> None:
    """Let a banned player back onto every board."""
    from jobs.closing.bans import unban as unban_player

    with opened() as context:
        show_reached(unban_player(context, player, reason, actor), format_)


@app.command(epilog='Example: daybreak board void match-7 --reason "a broken match"')
def void(event: EventId, reason: Reason, actor: Actor = "", format_: Format = "table") -> None:
    """Let an event count nowhere, whenever it is sent."""
    from jobs.closing.bans import void as void_event

    with opened() as context:
        show_reached(void_event(context, event, reason, actor), format_)


@app.command("what-if", epilog="Example: daybreak board what-if eve --since 2026-03-01")
def what_if(player: PlayerId, since: Since, format_: Format = "table") -> None:
    """Say which ranks and prizes a ban would change; nothing is changed."""
    from jobs.closing.what_if import what_if_ban

    with opened() as context:
        found = what_if_ban(context, player, parse_instant(since, "--since"))
        rows = [
            row | {"board": each.board, "period": each.period, "version": each.version or None}
            for each in found
            for row in each.changes.to_pylist()
        ]
        rows = [row | shown_points(context, row, "old_points", "new_points") for row in rows]
    say(f"{len(rows)} ranks or prizes in {len(found)} periods would change" if rows else "nothing would change")
    before_and_after = [f"{side}_{what}" for what in ("rank", "points", "prizes") for side in ("old", "new")]
    show(["board", "period", "version", "player_id", *before_and_after], rows, format_)


@app.command(epilog="Example: daybreak board audit")
def audit(format_: Format = "table") -> None:
    """List every ban, unban, void, accept and reject, with who, when and why."""
    from lakehouse.actions import actions

    with opened() as context:
        rows = actions(context.store)
    show(("at", "action", "player_id", "since", "event_id", "board", "period", "reason", "actor"), rows, format_)


@app.command(epilog="Example: daybreak board history goals ana --period all_time")
def history(board: BoardName, player: PlayerId, period: PeriodName = None, format_: Format = "table") -> None:
    """Show a player's ranks on a board, night by night and version by version."""
    from daybreak.queries.board_history import history as ranks_of

    with opened() as context:
        found = ranks_of(context, board, player, period)
        rows = [
            row
            | {"as_of": row["day"], "version": row["version"] or None}
            | shown_points(context, row | {"board": board}, "points")
            for row in found
        ]
    if not rows:
        say(f"{player} was never among the published places of board {board}")
    show(("period", "as_of", "state", "version", "position", "rank", "points", "population"), rows, format_)


def opened() -> "Context":
    """What a change works on."""
    from jobs.run.context import open_context

    return open_context(settings.load())


def show_versions(made: Iterable["Version"], format_: str) -> None:
    """Versions of closed periods as rows."""
    show(VERSION, ({name: getattr(each, name) for name in VERSION} for each in made), format_)


def show_previews(context: "Context", found: Iterable[tuple["Version", "pa.Table", "pa.Table"]], format_: str) -> None:
    """Each player's final place as a close would make it, with what the player would win."""
    rows: list[dict[str, Any]] = []
    for version, ranks, prizes in found:
        state = "would be closed" if version.run_id.startswith("preview-") else "is closed already"
        say(f"{version.board} {version.period} {state}: {version.population} players, digest {version.content_hash}")
        won: dict[str, list[str]] = {}
        for each in prizes.to_pylist():
            won.setdefault(each["player_id"], []).append(each["prize"])
        rows += [
            {"board": version.board, "period": version.period, "prizes": ", ".join(won.get(row["player_id"], []))}
            | {name: row[name] for name in ("position", "rank", "player_id")}
            | shown_points(context, row | {"board": version.board}, "points")
            for row in ranks.to_pylist()
        ]
    show(("board", "period", "position", "rank", "player_id", "points", "prizes"), rows, format_)


def show_reached(reached: "Reached", format_: str) -> None:
    """What an action changed, as rows."""
    rows: list[dict[str, Any]] = [
        {"board": board, "period": period, "state": "exact", "version": None} for board, period in reached.ranked
    ]
    rows += [
        {"board": each.board, "period": each.period, "state": "closed", "version": each.version}
        for each in reached.amended
    ]
    say(f"{len(reached.ranked)} open periods ranked anew, {len(reached.amended)} closed ones amended")
    show(("board", "period", "state", "version"), rows, format_)


def shown_points(context: "Context", row: Mapping[str, Any], *columns: str) -> dict[str, str]:
    """Points with the decimals that their board shows; all four where boards.toml no longer has it."""
    board = context.boards.boards.get(row["board"])
    return {name: points_text(board.decimals if board else 4, row[name]) for name in columns}
