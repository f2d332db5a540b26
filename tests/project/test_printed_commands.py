"""What README and the how-tos print for copying is run here as printed, in order, on small data that fits it."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from daybreak.serving.embedded import EmbeddedServer

ROOT = Path(__file__).parents[2]
BOARDS = '[players]\nfilter = { match_type = ["ranked"] }\nseasons = ["spring-2026"]\n'
SEASONS = "[spring-2026]\nfrom = 2026-03-01\nto = 2026-05-31\n"
pytestmark = pytest.mark.slow


def printed(page: str, first: str = "", last: str = "") -> list[str]:
    """The commands of a page, or of a part of it between two headings, without where they are installed."""
    text = (ROOT / page).read_text(encoding="utf-8")
    part = text.partition(first)[2] if first else text
    part = part.partition(last)[0] if last else part
    lines = re.findall(r"^ {4}(?:\.venv/bin/)?(daybreak [^\n]+)$", part, re.MULTILINE)
    return [line for line in lines if "…" not in line]


class Folder:
    """A deployment as a reader has one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "conf").mkdir(parents=True)
        (folder / "docs").symlink_to(ROOT / "docs")

    def write(self, name: str, rows: list[dict[str, object]]) -> None:
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(self, typed: str) -> str:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("DAYBREAK_")}
        environ["PATH"] = os.pathsep.join([str(ROOT / ".venv" / "bin"), environ["PATH"]])
        done = subprocess.run(
            ["bash", "-c", typed], cwd=self.folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=200,
        )  # fmt: skip
        assert done.returncode == 0, (typed, done.stdout, done.stderr)
        return done.stderr + done.stdout


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path / "site")
    yield made
    EmbeddedServer(made.folder / ".daybreak").stop()


def score(event: str, player: str, points: int, day: str) -> dict[str, object]:
    shared = {"match_id": "m", "match_type": "ranked", "occurred_at": f"{day}T12:00:00Z"}
    return {"event_id": event, "player_id": player, "points": points} | shared


def test_items(site: Folder) -> None:
    hours = [f"2013-07-10T{hour:02}:30:00Z" for hour in range(24)]
    site.write("events.jsonl", [{"event_id": at, "item_id": f"item-{at[12]}", "occurred_at": at} for at in hours])
    used = printed("README.md", "## Use it", "## Boards and seasons")
    assert len(used) == 7
    for typed in used:
        said = site.run(typed)
        if typed.startswith("daybreak top"):
            assert "state=exact" in said
    asked = [*printed("docs/how-to/query.md"), *printed("docs/queries/README.md")]
    assert len(asked) >= 5
    for typed in asked:
        site.run(typed)
    of_report = printed("docs/how-to/read-the-report.md")
    assert of_report
    for typed in of_report:
        site.run(typed.replace("2026-03-01", "2013-07-10"))


def test_boards(site: Folder) -> None:
    (site.folder / "conf" / "boards.toml").write_text(BOARDS)
    (site.folder / "conf" / "seasons.toml").write_text(SEASONS)
    players = ("ana", "ben", "eve")
    rows = [
        score(f"{day}-{who}", who, n * 3 + 1, day)
        for day in ("2026-03-01", "2026-05-31")
        for n, who in enumerate(players)
    ]
    site.write("scores.jsonl", rows)
    ranked = printed("README.md", "## Boards and seasons", "## What you can rely on")
    assert len(ranked) == 6
    said = [site.run(typed) for typed in ranked]
    assert "state=exact" in said[2]
    assert "closed ones amended" in said[-1]
    assert "│ eve " not in site.run(ranked[2])
    late = [score("match-7", "ana", 9, "2026-05-31"), score("match-8", "ben", 9, "2026-05-31")]
    site.write("late.jsonl", late)
    site.run("daybreak ingest late.jsonl --kind scores")
    closing = printed("docs/how-to/close-a-season.md")
    assert len(closing) == 5
    assert [site.run(typed) for typed in closing]
    for typed in printed("docs/how-to/ban-a-player.md"):
        site.run(typed)
