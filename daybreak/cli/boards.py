"""The `daybreak board` commands that read: boards of a period as they are served, or as the lake has them."""

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daybreak import settings
from daybreak.cli.options import Format
from daybreak.cli.output import say, show
from daybreak.errors import DaybreakError
from daybreak.rules import boards

if TYPE_CHECKING:
    from daybreak.queries.boards import Lookup
    from daybreak.serving.boards import BoardMeta, Place, ServedBoard


def board_names() -> list[str]:
    """The boards of boards.toml, for completion; none where the settings cannot be read."""
    try:
        return [*boards.load(settings.load().boards_folder).boards]
    except DaybreakError:
        return []


app = typer.Typer(help="Exact boards of players per day, week, year, season and of all time.", no_args_is_help=True)

BoardName = Annotated[str, typer.Argument(metavar="BOARD", help="A board of boards.toml.", autocompletion=board_names)]
PlayerId = Annotated[str, typer.Argument(metavar="PLAYER", help="The player's id.")]
PeriodName = Annotated[
    str | None,
    typer.Option(
        "--period",
        help="2026-03-01, 2026-W28, 2026, all_time or a season; else the board's first kind, at the newest day.",
    ),
]
PLACES = ("position", "rank", "player_id", "points", "reached_at", "event_count")


@app.command("list", epilog="Example: daybreak board list")
def list_boards(format_: Format = "table") -> None:
    """Say what boards there are and what they rank."""
    defined = boards.load(settings.load().boards_folder)
    rows = [
        {
            "board": board.name,
            "source": board.source,
            "semantics": board.semantics,
            "order": board.order,
            "rank_style": board.rank_style,
            "periods": " ".join((*board.periods, *board.seasons)),
            "depth": board.depth,
            "prizes": len(board.prizes),
        }
        for board in defined
    ]
    if not rows:
        say("no board is defined; docs/how-to/add-a-board.md says how")
    show(["board", "source", "semantics", "order", "rank_style", "periods", "depth", "prizes"], rows, format_)


@app.command(epilog="Example: daybreak board top goals --period 2026-W28 -k 10")
def top(
    board: BoardName,
    period: PeriodName = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many places.")] = 20,
    format_: Format = "table",
) -> None:
    """Show the first places of a board."""
    show_places(lookup(board, period).top(k), format_)


@app.command(epilog="Example: daybreak board rank goals ana --period 2026")
def rank(board: BoardName, player: PlayerId, period: PeriodName = None, format_: Format = "table") -> None:
    """Show a player's position, rank and points, at whatever depth."""
    show_standing(lookup(board, period), player, format_, (*PLACES, "population"))


@app.command(epilog="Example: daybreak board percentile goals ana --period 2026")
def percentile(board: BoardName, player: PlayerId, period: PeriodName = None, format_: Format = "table") -> None:
    """Show the share of players, x 100, whose points are strictly worse than this player's; exact."""
    show_standing(lookup(board, period), player, format_, ("player_id", "points", "rank", "percentile", "population"))


@app.command(epilog="Example: daybreak board around goals ana --period 2026 --width 3")
def around(
    board: BoardName,
    player: PlayerId,
    period: PeriodName = None,
    width: Annotated[int, typer.Option("--width", min=0, help="Places above and below; fewer at the ends.")] = 2,
    format_: Format = "table",
) -> None:
    """Show a player among the neighbours."""
    found = lookup(board, period)
    if neighbours := found.around(player, width):
        show_places(neighbours, format_)
    else:
        show_standing(found, player, format_, PLACES)


@app.command(epilog="Example: daybreak board page goals --period 2026 --size 100 --after 100:ana")
def page(
    board: BoardName,
    period: PeriodName = None,
    after: Annotated[str | None, typer.Option("--after", help="The cursor that the page before ended with.")] = None,
    size: Annotated[int, typer.Option("--size", min=1, help="How many places.")] = 20,
    format_: Format = "table",
) -> None:
    """Show a board page by page; ranks go on across pages, and the last line names the cursor of the next."""
    found, cursor = lookup(board, period).page(after, size)
    show_places(found, format_)
    say(f"next page: --after {cursor}" if cursor else "no further page")


def lookup(board: str, period: str | None) -> "Lookup":
    """The board and period that the options name."""
    from daybreak.queries.boards import lookup as find
    from daybreak.serving.boards import BoardLists
    from daybreak.serving.connection import connect
    from lakehouse.stores.delta_rs import DeltaRsStore

    conf = settings.load()
    store = DeltaRsStore(conf.lake_root, conf.lake.retention)
    defined = boards.load(conf.boards_folder)
    return find(store, BoardLists(connect(conf), conf.redis), defined, board, period)


def show_places(found: "ServedBoard", format_: str) -> None:
    """Places as rows, and what is known of the board."""
    say_of(found.meta)
    show_rows(found.meta, PLACES, [place_row(found.meta, place) for place in found.places], format_)


def show_standing(found: "Lookup", player: str, format_: str, columns: Sequence[str]) -> None:
    """One player as a row; in words when there is no score."""
    standing = found.standing(player)
    if standing is None:
        say(f"{player} has no score on board {found.board.name} in {found.period.name}")
        show(columns, [], format_)
        return
    meta = standing.meta
    say_of(meta)
    if standing.place:
        row = place_row(meta, standing.place)
    else:
        say(f"{player} stands below the {meta.published} published places; a position is known only above")
        row = dict.fromkeys(PLACES) | {"player_id": player, "points": points_text(meta.decimals, standing.points)}
    more = {"rank": standing.rank, "percentile": standing.percentile, "population": meta.population}
    show_rows(meta, columns, [row | more], format_)


def show_rows(meta: "BoardMeta", columns: Sequence[str], rows: Sequence[dict[str, Any]], format_: str) -> None:
    """Rows with these columns; as JSON each also says of what state it is."""
    rows = [{name: row[name] for name in columns} for row in rows]
    show(columns, [row | about(meta) for row in rows] if format_ == "json" else rows, format_)


def place_row(meta: "BoardMeta", place: "Place") -> dict[str, Any]:
    """A place as a row."""
    return {
        "position": place.position,
        "rank": place.rank,
        "player_id": place.player_id,
        "points": points_text(meta.decimals, place.points),
        "reached_at": place.reached_at.isoformat(),
        "event_count": place.event_count,
    }


def points_text(decimals: int, points: Decimal | None) -> str:
    """Points with the decimals that a board shows; ranks go by all four."""
    return "" if points is None else f"{points:.{decimals}f}"


def about(meta: "BoardMeta") -> dict[str, Any]:
    """What a reader must know beside the places."""
    known = {
        "board": meta.board,
        "period": meta.period,
        "state": meta.state,
        "as_of": meta.as_of.isoformat(),
        "version": meta.version or None,
        "generation": meta.generation or None,
        "lake_version": meta.lake_version if meta.lake_version >= 0 else None,
        "population": meta.population,
    }
    return {name: value for name, value in known.items() if value is not None}


def say_of(meta: "BoardMeta") -> None:
    """What is known of the board, for the person."""
    say(" ".join(f"{name}={value}" for name, value in about(meta).items()))
