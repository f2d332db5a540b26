"""What a process and all that it starts take: seconds, processor seconds, peak memory."""

import json
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

SECONDS_MAX = 1_200.0
SAMPLE_SECONDS = 0.05


@dataclass(frozen=True)
class Cost:
    """What a process took; `steps` are seconds that it says it spent, by what.

    Processor seconds are those of all its processes from start to end: what a busy machine does not change.
    """

    peak_bytes: int
    processor_seconds: float
    steps: dict[str, float]

    @property
    def seconds(self) -> float:
        return sum(self.steps.values())


def watched(command: Sequence[str], said: Path) -> Cost:
    """Run a command that ends by printing its steps as JSON; nothing that it started is left.

    What it prints is kept beside `said`, as `.out` and `.log`.

    Raises:
        RuntimeError: the process failed.
        TimeoutError: it is not done after `SECONDS_MAX`.
    """
    out, log = said.with_suffix(".out"), said.with_suffix(".log")
    processor: dict[psutil.Process, float] = {}
    with out.open("w") as printed, log.open("w") as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=errors)
        try:
            peak = watch(process, processor)
        finally:
            for each in processor:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            process.wait()
    if process.returncode:
        raise RuntimeError(f"{said.name} ended with {process.returncode}: {log.read_text()[-2000:]}")
    return Cost(peak, sum(processor.values()), json.loads(out.read_text().splitlines()[-1]))


def watch(process: subprocess.Popen[bytes], processor: dict[psutil.Process, float]) -> int:
    """The largest sum of resident bytes seen; `processor` gathers the seconds of it and all processes below."""
    peak, deadline, root = 0, time.monotonic() + SECONDS_MAX, psutil.Process(process.pid)
    processor[root] = 0.0
    while process.poll() is None:
        total = 0
        with suppress(psutil.NoSuchProcess):
            for each in (root, *root.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    processor[each] = sum(each.cpu_times()[:2])
                    total += each.memory_info().rss
        peak = max(peak, total)
        if time.monotonic() > deadline:
            raise TimeoutError(f"not done after {SECONDS_MAX:.0f} s")
        time.sleep(SAMPLE_SECONDS)
    return peak
