"""How the sketch's error depends on skew and on its width: no lake and no Redis, the sketch alone."""

import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import matplotlib.pyplot as plt
    import numpy as np
    import pyarrow as pa

    from streaming.sketches.count_min import CountMinSketch

    return CountMinSketch, mo, np, pa, plt


@app.cell
def _(mo):
    mo.md(
        """
        # Skew and error

        A Count-Min sketch never estimates too low; it is too high by what other items left in the same cells. The
        bound, `e / width x total`, does not ask how the counts are spread. The error that one really sees does: the
        more of the total lies on few items, the fewer cells are crowded, and the more often one of the rows is clean.
        """
    )
    return


@app.cell
def _(CountMinSketch, np, pa):
    EVENTS, ITEMS, DEPTH, SEED = 200_000, 20_000, 5, 7
    SKEWS, WIDTHS = (0.6, 0.8, 1.0, 1.2, 1.4), (256, 1024, 4096, 16384)

    def counts_of(skew: float) -> np.ndarray:
        """Events per item, by Zipf's law, the same on every run."""
        shares = np.arange(1, ITEMS + 1) ** -skew
        return np.random.default_rng(SEED).multinomial(EVENTS, shares / shares.sum())

    def measured(skew: float, width: int) -> dict[str, float]:
        """Overcounts of all items that occurred, and the bound."""
        counts = counts_of(skew)
        played = np.flatnonzero(counts)
        names = [f"item-{number}" for number in played]
        sketch = CountMinSketch(width, DEPTH)
        sketch.update_ids(pa.array(names), counts[played].astype(np.int64))
        over = np.asarray(sketch.estimate_ids(names)) - counts[played]
        assert over.min() >= 0, "never too low"
        first = np.argsort(-counts[played], kind="stable")[:20]
        return {
            "skew": skew,
            "width": width,
            "mean": float(over.mean()),
            "first twenty": float((over[first] / counts[played][first]).mean()),
            "bound": sketch.error_bound,
            "within": float((over <= sketch.error_bound).mean()),
        }

    found = [measured(skew, width) for skew in SKEWS for width in WIDTHS]
    assert all(each["within"] >= 0.99 for each in found), "the bound holds as often as it promises"
    return SKEWS, WIDTHS, found


@app.cell
def _(SKEWS, WIDTHS, found, plt):
    picture, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    for width in WIDTHS:
        rows = [each for each in found if each["width"] == width]
        means = [max(each["mean"], 0.01) for each in rows]
        (line,) = left.plot(SKEWS, means, marker="o", label=f"{width} cells a row")
        left.axhline(rows[0]["bound"], linewidth=1, linestyle=":", color=line.get_color())
        right.plot(SKEWS, [each["first twenty"] for each in rows], marker="o", label=f"{width} cells a row")
    left.set(yscale="log", xlabel="Zipf exponent", ylabel="mean overcount (dotted: the bound)", title="All items")
    right.set(xlabel="Zipf exponent", ylabel="overcount / count", title="The first twenty items")
    right.legend()
    picture.tight_layout()
    picture
    return


@app.cell
def _(found, mo):
    mo.ui.table([{name: round(value, 4) for name, value in each.items()} for each in found])
    return


if __name__ == "__main__":
    app.run()
