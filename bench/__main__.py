"""Runs every measurement and writes `bench/RESULTS.md`: `python -m bench`."""

import tempfile
import time
from pathlib import Path

from bench import boards, daily_counts, night, publication, sketch, worker
from bench.harness import Result, show
from bench.page import write_page

PAGE = Path(__file__).parent / "RESULTS.md"

NOT_MEASURED = """
## Not measured here

The 100 M-event day and both engines side by side: [LARGE.md](LARGE.md), by `make bench-large`.
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
        "Boards": boards.run,
    }
    found = {}
    for title, part in parts.items():
        found[title] = part()
        show(found[title])
    return found


def main() -> None:
    """Measure and write the page."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder))
    write_page(PAGE, "python -m bench", time.perf_counter() - began, found, NOT_MEASURED)


if __name__ == "__main__":
    main()
