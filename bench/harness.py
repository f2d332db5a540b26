"""What every measurement uses: a result, and medians of several things timed in turn."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One number measured: `value` in `unit`; `ratio` to the thing named by `ratio_to`; `target` in words."""

    name: str
    value: float
    unit: str
    ratio_to: str = ""
    ratio: float | None = None
    target: str = ""
    """`>= 20` or `<= 15 s`: the value's; with an `x` behind it, as in `<= 1.5 x`, the ratio's."""
    why: str = ""
    """What the profile shows, for the page when the target is missed."""

    @property
    def is_met(self) -> bool | None:
        """Whether the target holds; None without one.

        >>> Result("night", 14.0, "s", target="<= 15 s").is_met
        True
        >>> Result("day", 3.0, "s", "DuckDB", 2.0, "<= 1.5 x").is_met
        False
        """
        if not self.target:
            return None
        sign, number, *unit = self.target.split()
        measured = self.ratio if unit == ["x"] else self.value
        if measured is None:
            return None
        return measured >= float(number) if sign == ">=" else measured <= float(number)


def interleaved(
    tasks: Mapping[str, Callable[[], object]],
    rounds: int = 5,
    timer: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of each task; they take turns, so that what slows the machine slows all of them.

    With `timer=time.process_time` it is the time of all this process's threads, as for rates per core.
    """
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            start = timer()
            task()
            times[name].append(timer() - start)
    return {name: statistics.median(seen) for name, seen in times.items()}


def show(results: list[Result]) -> None:
    """Print results as lines."""
    for r in results:
        ratio = f"  {r.ratio:.2f} x {r.ratio_to}" if r.ratio is not None else ""
        print(f"{r.name}: {r.value:,.2f} {r.unit}{ratio}  (target: {r.target or '-'})")
