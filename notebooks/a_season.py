"""A season's story: who led after each night. Needs ranked days of a board, see docs/how-to/add-a-board.md."""

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
    return analyst, conf, duck, mo, plt


@app.cell
def _(analyst, conf, duck):
    longest = analyst.frame(
        duck,
        """
        select board, period, count(distinct day) as nights from board_snapshots
        group by all order by nights desc, board, period limit 1
        """,
    )
    assert len(longest), f"no board was ranked in {conf.lake_root}; correct days of scores first: daybreak nightly"
    board, period = longest["board"][0], longest["period"][0]
    return board, period


@app.cell
def _(analyst, board, duck, period):
    story = analyst.frame(
        duck,
        f"""
        with last as (select player_id from board_of('{board}', '{period}', k := 8))
        select day, player_id, position, points
        from board_snapshots semi join last using (player_id)
        where board = '{board}' and period = '{period}'
        order by day, position
        """,
    )
    return (story,)


@app.cell
def _(board, mo, period):
    about = "The first eight of the last night, night by night. Lines that cross are places that changed."
    mo.md(f"# {board}, {period}\n\n{about}")
    return


@app.cell
def _(plt, story):
    picture, axes = plt.subplots(figsize=(10, 4))
    for player, rows in story.groupby("player_id"):
        axes.plot(rows["day"].astype(str), rows["position"], marker="o", label=player)
    axes.invert_yaxis()
    axes.set(xlabel="as of the night of", ylabel="position")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    picture.autofmt_xdate()
    picture.tight_layout()
    picture
    return


@app.cell
def _(mo, story):
    mo.ui.table(story[story["day"] == story["day"].max()])
    return


if __name__ == "__main__":
    app.run()
