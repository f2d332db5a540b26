"""The worker end to end, up to the call that would write to Redis, per core: `python -m bench.worker`."""

import json
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.harness import Result, interleaved, show
from bench.sketch import zipf_ids
from daybreak import clock
from daybreak.serving.lists import Meta, ServedList
from daybreak.settings import Settings
from daybreak.windows import Bucket
from streaming.sources.files import stream_files
from streaming.worker import Worker

EVENTS = 2_500_000
BATCH = 262_144

WHY_REPLAY = (
    "Profiled on two cores (2026-12-01): counting takes a fifth. The rest is publishing 1,465 lists of up to 1,000 at "
    "once: their content hash, made entry by entry in Python, is the largest part, then the sketches' compression. "
    "A day that is streamed as it happens publishes few lists per event."
)
WHY_LINES = (
    "Profiled on two cores (2026-12-01), lines of three fields, 1.2 M events/s: half of the time is Arrow's "
    "JSON parser (0.38 of 0.75 s a million), a fifth is cutting the file into blocks of whole lines and "
    "counting them; the windows and the sketch take less than a tenth. More fields a line cost the parser more."
)
START = 1_772_323_200_000_000  # 2026-03-01


class Nowhere:
    """Takes every list and keeps none: what is measured is the worker."""

    def publish_provisional(
        self,
        bucket: Bucket,
        entries: Sequence[tuple[str, int]],
        meta: Meta,
        sketch: bytes | None = None,
        late_sketch: bytes | None = None,
    ) -> bool:
        return True

    def read(self, bucket: Bucket) -> ServedList | None:
        return None

    def read_sketch(self, bucket: Bucket) -> tuple[bytes | None, bytes | None]:
        return None, None


def events(hours: float) -> pa.Table:
    """Item events in the order of their time, spread over some hours of one day."""
    times = np.sort(np.random.default_rng(2).integers(0, int(hours * 3_600_000_000), EVENTS)) + START
    return pa.table(
        {
            "item_id": zipf_ids(EVENTS),
            "occurred_at": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            "weight": np.ones(EVENTS, np.int64),
        }
    )


def count(table: pa.Table) -> None:
    worker = Worker(Settings().stream, Nowhere(), clock.now)
    for start in range(0, EVENTS, BATCH):
        worker.feed(table.slice(start, BATCH))
    worker.close()


def count_file(file: Path) -> None:
    worker = Worker(Settings().stream, Nowhere(), clock.now)
    for taken in stream_files([file], Settings(), clock.now):
        worker.feed(taken.accepted, taken.refused.num_rows)
    worker.close()


def write_lines(file: Path, table: pa.Table) -> None:
    """The events as JSON lines."""
    times = table["occurred_at"].to_pylist()
    with file.open("w") as out:
        for n, (item, at) in enumerate(zip(table["item_id"].to_pylist(), times, strict=True)):
            row = {"event_id": f"e{n:032x}", "item_id": item, "occurred_at": at.isoformat()}
            out.write(json.dumps(row) + "\n")


def run() -> list[Result]:
    busy, replay = events(1), events(24)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events.jsonl"
        write_lines(file, busy)
        count(busy)
        seconds = interleaved(
            {
                "Arrow batches, an hour of 2.5 M": partial(count, busy),
                "Arrow batches, a day of 2.5 M replayed at once (1,465 lists)": partial(count, replay),
                "JSON lines, an hour of 2.5 M": partial(count_file, file),
            },
            rounds=3,
            timer=time.process_time,
        )
    return [
        Result(
            f"worker, {name}",
            EVENTS / taken / 1e6,
            "M events/s/core",
            target=">= 1" if "JSON" in name else ">= 3",
            why=WHY_LINES if "JSON" in name else WHY_REPLAY,
        )
        for name, taken in seconds.items()
    ]


if __name__ == "__main__":
    show(run())
