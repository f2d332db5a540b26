"""A corrected day: what was served while it ran, what it was, how far apart. Needs a lake, as `make demo` leaves."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import matplotlib.pyplot as plt

    from daybreak import settings
    from lakehouse.reading import analyst
    from lakehouse.stores.delta_rs import DeltaRsStore

    conf = settings.load()
    duck = analyst.connect(DeltaRsStore(conf.lake_root, conf.lake.retention))
    days = analyst.frame(duck, "select max(day) as day from error_over_time()")
    newest = days["day"][0]
    assert newest is not None, f"no report in {conf.lake_root}; run make demo, and what its last lines say"
    return analyst, duck, mo, newest, plt


@app.cell
def _(mo, newest):
    mo.md(
        f"""
        # {newest} and its error

        The provisional list is the one that was served just before the night replaced it. The points are its
        items: estimate against exact count. Other items in the same cells, and copies of events, raise an estimate
        above the line, hardly ever past the dotted bound; below it lie items of which events came too late for the
        list. The larger a point, the more items it stands for.
        """
    )
    return


@app.cell
def _(analyst, duck, newest):
    items = analyst.frame(
        duck,
        f"""
        select item_id, estimate, coalesce(count, 0) as count, error_bound
        from served_lists left join daily_counts using (day, item_id) cross join error_over_time() as e
        where served_lists.day = '{newest}' and e.day = served_lists.day and served_lists."window" = 'day'
        order by estimate desc
        """,
    )
    hours = analyst.frame(
        duck, f"select bucket_start, recall from error_over_time(of_window := 'hour') where day = '{newest}'"
    )
    assert len(items)
    return hours, items


@app.cell
def _(hours, items, plt):
    picture, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    most = max(int(items["count"].max()), 1)
    points = items.groupby(["count", "estimate"], as_index=False).size()
    left.scatter(points["count"], points["estimate"], s=8 + points["size"], alpha=0.4)
    left.plot([0, most], [0, most], linewidth=1)
    bound = float(items["error_bound"][0])
    left.plot([0, most], [bound, most + bound], linewidth=1, linestyle=":")
    left.set(xlabel="exact count", ylabel="estimate", title=f"{len(items)} items of the provisional list")
    clock = [start.hour for start in hours["bucket_start"]]
    right.bar(clock, hours["recall"])
    right.plot(clock, hours["recall"], "o", clip_on=False)
    right.set(xlabel="hour (UTC); without a dot: no list", ylabel="recall", title="Share of the exact list, by hour")
    picture.tight_layout()
    picture
    return


@app.cell
def _(items, mo):
    over = items["estimate"] - items["count"]
    mo.ui.table(items.assign(over=over).sort_values("over", ascending=False).head(20))
    return


if __name__ == "__main__":
    app.run()
