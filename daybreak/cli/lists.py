"""The commands that read lists of items: as they are served, or as the lake has them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from daybreak import settings
from daybreak.cli.options import Format, WindowOption, lake, lists, parse_instant
from daybreak.cli.output import say, show
from daybreak.errors import UsageError
from daybreak.windows import Bucket, Window, bucket_at

if TYPE_CHECKING:
    from daybreak.serving.lists import ServedList


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
    conf = settings.load()
    served = served_list(conf, bucket, k)
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
    conf = settings.load()
    counts, state, bound = item_counts(conf, bucket, items)
    say(f"state={state} error_bound={bound}")
    rows = [{"item_id": item, "count": counts[item], "state": state, "error_bound": bound} for item in items]
    show(["item_id", "count", "state", "error_bound"], rows, format_)


def served_list(conf: settings.Settings, bucket: Bucket, k: int) -> "ServedList":
    """The list of a bucket: what Redis serves, or for a minute of a corrected day the lake's exact one.

    Raises:
        UsageError: there is none.
    """
    redis = lists(conf)
    state = redis.day_state(bucket.day)
    is_exact = state is not None and state.state == "exact"
    if not (bucket.window is Window.MINUTE and is_exact) and (served := redis.read(bucket)):
        return served
    from daybreak.queries.items import list_from_lake

    _, store = lake()
    if found := list_from_lake(store, conf, bucket, k):
        return found
    raise UsageError(
        f"no {bucket.window} list for {bucket.start:%Y-%m-%dT%H:%MZ}: stream its events, "
        f"or correct the day with: daybreak nightly --day {bucket.day}"
    )


def item_counts(conf: settings.Settings, bucket: Bucket, items: Sequence[str]) -> tuple[dict[str, int], str, float]:
    """(count or estimate per item, state, error bound) of a bucket."""
    redis = lists(conf)
    served = redis.read(bucket)
    if served and served.meta.state == "provisional":
        sketch, _ = redis.read_sketch(bucket)
        if sketch is None:
            raise UsageError(
                f"the sketch of {bucket.label} on {bucket.day} is not kept yet; it is at the bucket's close"
            )
        from streaming.sketches.count_min import CountMinSketch

        estimates = CountMinSketch.deserialize(sketch).estimate_ids(list(items))
        return dict(zip(items, map(int, estimates), strict=True)), "provisional", served.meta.error_bound
    from daybreak.queries.items import counts_from_lake

    _, store = lake()
    return counts_from_lake(store, conf, bucket, items), "exact", 0.0
