"""The one seam for what a run says while it works: structlog, on standard error, a line an event.

An event is a sentence, its values are keywords: `log.warning("gave up a run", run_id=run_id)`. How lines look and where
they go is decided here alone. Rows and the summary of a command are not logged but printed, by `daybreak.cli.output`.
"""

import logging
import sys
from typing import Any

import structlog

structlog.configure(
    processors=[structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0)],
    wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # asked for at each line: bars redirect it
)

log: Any = structlog.get_logger()
