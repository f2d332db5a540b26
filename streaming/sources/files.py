"""Files as a source of events: read, decoded and taken in, batch by batch."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from daybreak.clock import Clock
from daybreak.events import Kind
from daybreak.intake.contract import Intake, Taken
from daybreak.intake.files import read_file
from daybreak.settings import Settings

NO_MAPPING: Final[Mapping[str, str]] = MappingProxyType({})


def stream_files(
    files: Sequence[Path],
    settings: Settings,
    clock: Clock,
    *,
    mapping: Mapping[str, str] = NO_MAPPING,
    default_timezone: str | None = None,
) -> Iterator[Taken]:
    """The item events of the files, in their order, as the intake took them.

    `source` of each event is its file's name; `received_at` is the time its file was opened, where the file
    has none.

    Raises:
        UnreadableInputError: a file that cannot be read; what was taken from those before it stays.
    """
    for file in files:
        intake = Intake(
            Kind.ITEMS,
            source=Path(file).name,
            received_at=clock(),
            default_timezone=default_timezone,
            future_tolerance=settings.intake.future_tolerance,
        )
        for batch in read_file(Path(file), mapping=mapping):
            yield intake.take(batch)
