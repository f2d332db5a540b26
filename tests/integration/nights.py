"""A small world with everything real: a lake, a Redis, an engine, and the command as a subprocess."""

import json
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from daybreak import clock
from daybreak.events import Kind
from daybreak.rules import boards
from daybreak.serving.connection import connect
from daybreak.serving.lists import Lists
from daybreak.settings import Settings
from jobs.ingest import declare_complete, ingest_file
from jobs.night import Summary, nightly
from jobs.run.context import Context
from lakehouse.engines.engine import Engine
from lakehouse.opening import open_engine, open_store
from lakehouse.tables import registry as tables
from tests.engines import SHORT_LIVED
from tests.integration.commands import Command

D1, D2, D3 = date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 3)
Event = dict[str, object]
PATIENCE = 280
"""Seconds for a command; Apache Spark takes its time on a busy machine."""


def event(event_id: str, item_id: str, at: str, **more: object) -> Event:
    """One event; `at` is `2026-03-02T10:00`, UTC."""
    return {"event_id": event_id, "item_id": item_id, "occurred_at": f"{at}:00Z"} | more


def some_days() -> list[Event]:
    """Three days with ties, copies, a copy across midnight and two items told apart by case."""
    events = []
    for day, spread in ((D1, 7), (D2, 5), (D3, 3)):
        for n in range(400):
            item = f"item-{(n * n) % (spread * 5)}"
            at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=n * 3)
            events.append(event(f"{day}-{n}", item, f"{at:%Y-%m-%dT%H:%M}"))
    events += [event(f"{D2}-7", "item-4", f"{D2}T00:21"), event("copy", "Case", f"{D1}T23:30")]
    events += [event("copy", "Case", f"{D2}T00:10"), event("other", "case", f"{D2}T00:10")]
    return events


class World:
    """One home with its settings, store and lists."""

    def __init__(self, home: Path, engine: Engine | None = None, **overrides: object) -> None:
        self.home = home
        self.environ = {"DAYBREAK_HOME": str(home)}
        if engine:
            overrides |= {"engine": engine.name}
            self.environ |= {"DAYBREAK_ENGINE": engine.name, "DAYBREAK_SPARK__MASTER": "local[2]"}
            self.environ["DAYBREAK_SPARK__CONF"] = json.dumps(SHORT_LIVED)
        self.settings = Settings.model_validate({"home": home} | overrides)
        self.engine = engine or open_engine(self.settings)
        self.store = open_store(self.settings, self.engine)
        self.boards = boards.load(self.settings.boards_folder)
        self.environ["DAYBREAK_BOARDS_FOLDER"] = str(self.settings.boards_folder)

    def beside(self, home: Path | None = None, **overrides: object) -> "World":
        """A world on the same engine, with other settings or in another home."""
        return World(home or self.home, self.engine, **overrides)

    @property
    def lists(self) -> Lists:
        return Lists(connect(self.settings), self.settings.redis)

    @property
    def context(self) -> Context:
        return Context(self.settings, self.store, self.lists, clock.now, self.engine, self.boards)

    def file(self, name: str, events: Iterable[Mapping[str, object]]) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(each) + "\n" for each in events))
        return path

    def ingest(self, name: str, events: Iterable[Mapping[str, object]], through: date | None = None) -> None:
        ingest_file(
            self.store,
            self.settings,
            clock.now,
            self.file(name, events),
            kind=Kind.ITEMS,
            mapping={},
            default_timezone=None,
        )
        if through:
            declare_complete(self.store, clock.now, Kind.ITEMS, through)

    def stream(self, name: str) -> None:
        """Replay a file into sketches so small that they err."""
        self.command("stream", str(self.home / name), "--until-idle", "--relative-error", "0.2", "--force-cells")

    def night(self, first: date, last: date | None = None, **options: bool) -> Summary:
        return nightly(self.context, first, last or first, progress=lambda _: None, **options)

    def start(self, *words: str, **environ: str) -> Command:
        return Command(words, os.environ | self.environ | environ, Path(__file__).parents[2])

    def command(self, *words: str, code: int = 0, **environ: str) -> tuple[str, str]:
        """(standard output, standard error) of the real command, which must end with `code`."""
        process = self.start(*words, **environ)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        assert process.returncode == code, f"{words}: exit {process.returncode}\n{out}\n{err}"
        return out, err

    def makers(self) -> set[str]:
        """The engines that committed what is in the derived tables, as their commits say."""
        found = [commit for table in tables.DERIVED for commit in self.store.commits_after(table, -1)]
        return {commit.engine.partition("/")[0].partition(":")[0] for commit in found if commit.run_id}

    def served(self, day: date) -> dict[str, tuple[tuple[str, int], ...]]:
        """Every list of a day that Redis serves, minutes left out."""
        served = {each.bucket.label: each.entries for each in self.lists.served(day)}
        return {label: entries for label, entries in served.items() if not label.startswith("minute")}
