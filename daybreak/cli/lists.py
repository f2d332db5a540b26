"""The commands that read lists of items: as they are served, or as the lake has them."""

from typing import TYPE_CHECKING, Annotated

import typer

from daybreak import settings
from daybreak.cli.options import Format, WindowOption, lake, lists, parse_instant
from daybreak.cli.output import say, show
from daybreak.windows import Window, bucket_at

if TYPE_CHECKING:
    from daybreak.queries.items import Items


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `app`."""
    app.command(epilog="Example: daybreak top --window hour --at 2011-12-05T17:00 -k 20")(top)
    app.command(epilog="Example: daybreak estimate --window day --at 2011-12-05 22086 85123A")(estimate)


def top(
    window: WindowOption = Window.DAY,
    at: Annotated[
        str | None, typer.Option(help="A time inside the bucket, UTC: 2011-12-05 or 2011-12-05T17:24.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many entries.")] = 20,
    format_: Format = "table",
) -> None:
    """Show a list of the most played items, and whether it is provisional or exact."""
    from daybreak.ranking import ranks

    bucket = bucket_at(window, parse_instant(at))
    served = opened().top(bucket, k)
    entries = served.entries[:k]
    positions = ranks([count for _, count in entries], "competition")
    rows = [
        {"position": position, "rank": rank, "item_id": item_id, "count": count}
        for position, (rank, (item_id, count)) in enumerate(zip(positions, entries, strict=True), 1)
    ]
    meta = served.meta
    about = {
        "state": meta.state,
        "as_of": meta.as_of.isoformat(),
        "error_bound": meta.error_bound,
        "generation": meta.generation,
        "lake_version": meta.lake_version,
        "population": meta.items_total,
    }
    say(" ".join(f"{key}={value}" for key, value in about.items() if value is not None))
    columns = ["position", "rank", "item_id", "count"]
    if format_ == "json":
        rows = [row | {name: about[name] for name in ("state", "as_of", "error_bound")} for row in rows]
    show(columns, rows, format_)


def estimate(
    items: Annotated[list[str], typer.Argument(metavar="ITEM…")],
    window: WindowOption = Window.DAY,
    at: Annotated[str | None, typer.Option(help="A time inside the bucket, UTC.")] = None,
    format_: Format = "table",
) -> None:
    """Count of any items: the sketch's estimate while provisional, the exact count afterwards."""
    bucket = bucket_at(window, parse_instant(at))
    found = opened().counts(bucket, items)
    say(f"state={found.state} error_bound={found.error_bound}")
    known = {"state": found.state, "error_bound": found.error_bound}
    rows = [{"item_id": item, "count": found.by_item[item]} | known for item in items]
    show(["item_id", "count", "state", "error_bound"], rows, format_)


def opened() -> "Items":
    """All reading of lists of items."""
    from daybreak.queries.items import Items

    conf = settings.load()
    return Items(lake(conf), lists(conf))
