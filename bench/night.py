"""A whole night of a 2.5 M-event day as the command runs it, cold: `python -m bench.night`.

Cold means a new process each time, that imports everything and starts Sail itself. Redis runs, as it does
after a day of streaming, and holds the day's provisional lists and sketches; the lake has not seen the day
corrected: every step has its full work.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from redis.exceptions import BusyLoadingError

from bench.harness import Result, show
from bench.lakes import DAY, ROWS, few_days, large_day_file
from daybreak import clock
from daybreak.events import Kind
from daybreak.serving.client import client_of
from daybreak.serving.embedded import EmbeddedServer
from jobs.ingest import declare_complete
from lakehouse.stores.delta_rs import DeltaRsStore

ROUNDS = 3
SECONDS_MAX = 180.0
STEP = re.compile(rf"{DAY}: (\w+)")

WHY = (
    "The longest steps of the median night: {steps}. Profiled on two cores (2026-12-01): `derive` is the search "
    "for first copies, with the import of Great Expectations (6 s of processor time) beside it; `check` is "
    "DuckDB's recount (2 s) and the profiles; `report` is not profiled further."
)


@dataclass(frozen=True)
class Night:
    """One night measured."""

    seconds: float
    peak_bytes: int
    steps: dict[str, float]


def day_before(folder: Path) -> Path:
    """A home as it is before the night: the lake of 8 days, Redis with the streamed day, stopped."""
    home = folder / "before"
    if not home.exists():
        shutil.copytree(few_days(folder) / "lake", home / "lake")
        declare_complete(DeltaRsStore(home / "lake"), clock.now, Kind.ITEMS, DAY)
        command(home, "stream", str(large_day_file(folder)), "--until-idle")
        EmbeddedServer(home).stop()
    return home


def started_redis(home: Path) -> int:
    """The process id of the home's Redis, which has loaded everything."""
    client = client_of(EmbeddedServer(home).ensure())
    while True:
        try:
            client.ping()
            return int(client.info("server")["process_id"])
        except BusyLoadingError:
            time.sleep(0.05)


def command(home: Path, *words: str, beside: int | None = None) -> Night:
    """Run a command to its end, watched; the memory of the process `beside` counts as its own."""
    log = home / "bench.log"
    with log.open("w") as said, (home / "bench.out").open("w") as printed:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "daybreak.cli", *words],
            env=os.environ | {"DAYBREAK_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=said,
        )
        try:
            seen, peak = watch(process, log, began, beside)
        finally:
            kill_tree(process)
    end = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"{words[0]} ended with {process.returncode}: {log.read_text()[-2000:]}")
    starts = [*seen.values(), end]
    steps = {name: after - at for (name, at), after in zip(seen.items(), starts[1:], strict=True)}
    return Night(end, peak, {"start": starts[0], **steps} if seen else {})


def watch(
    process: subprocess.Popen[bytes], log: Path, began: float, beside: int | None
) -> tuple[dict[str, float], int]:
    """When each step was announced, and the largest sum of resident bytes of all processes."""
    seen: dict[str, float] = {}
    peak = 0
    while process.poll() is None:
        now = time.perf_counter() - began
        for step in STEP.findall(log.read_text()):
            seen.setdefault(step, now)
        peak = max(peak, resident(process.pid) + (resident(beside) if beside else 0))
        if now > SECONDS_MAX:
            raise TimeoutError(f"not done after {now:.0f} s")
        time.sleep(0.02)
    return seen, peak


def resident(pid: int) -> int:
    """Resident bytes of a process and everything it started; pages they share count once for each."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
    return total


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a command that did not end; its Redis is stopped by its own launcher."""
    if process.poll() is None:
        process.kill()
        process.wait()


def night(folder: Path, number: int) -> Night:
    """One night in a fresh copy of the home."""
    home = folder / f"night-{number}"
    shutil.copytree(day_before(folder), home)
    try:
        done = command(home, "nightly", "--day", str(DAY), beside=started_redis(home))
        summary = json.loads((home / "bench.out").read_text().splitlines()[-1])
        assert (summary["rows"], summary["generations"]) == (ROWS, {str(DAY): 1}), summary
        return done
    finally:
        EmbeddedServer(home).stop()
        shutil.rmtree(home, ignore_errors=True)


def run(folder: Path | None = None) -> list[Result]:
    """Median seconds and the highest peak of several nights, and where the median night's time went."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return run(Path(made))
    nights = [night(folder, number) for number in range(ROUNDS)]
    median = statistics.median_low(each.seconds for each in nights)
    steps = next(each.steps for each in nights if each.seconds == median)
    longest = sorted(steps.items(), key=lambda step: -step[1])[:4]
    why = WHY.format(steps=", ".join(f"{name} {seconds:.1f} s" for name, seconds in longest))
    peak = max(each.peak_bytes for each in nights) / 1e9
    return [
        Result("night of a day of 2.5 M, the whole command", median, "s", target="<= 15 s", why=why),
        Result("peak memory of its processes, Sail and Redis included", peak, "GB", target="<= 4 GB", why=why),
        *(Result(f"night, {name}", seconds, "s") for name, seconds in steps.items()),
    ]


if __name__ == "__main__":
    show(run())
