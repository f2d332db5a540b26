"""Pages say what the code says: generated ones are fresh, README names only what exists."""

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from daybreak.rules import boards
from daybreak.settings import Settings, load

ROOT = Path(__file__).parents[2]
WRITTEN = sorted(
    page
    for page in [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *(ROOT / "docs").rglob("*.md")]
    if not page.relative_to(ROOT).parts[0].startswith(".")
)


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        spec.loader.exec_module(module)
    return module


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def test_generated_pages_are_fresh(generate):
    assert [page.relative_to(ROOT) for page in generate.stale(generate.pages())] == [], "run `make docs`"


def test_a_page_that_differs_or_is_missing_is_stale(generate, tmp_path):
    page = tmp_path / "page.md"
    assert generate.stale({page: "new"}) == [page]
    page.write_text("old")
    assert generate.stale({page: "new"}) == [page]
    page.write_text("new")
    assert generate.stale({page: "new"}) == []


def test_base_toml_shows_every_setting_with_its_default(generate):
    text = (ROOT / "conf" / "base.toml").read_text(encoding="utf-8")
    values = tomllib.loads(text)
    assert Settings.model_validate(values) == Settings()
    for key, default, _ in generate.conf_keys.settings_rows():
        *sections, name = key.split(".")
        section = values
        for part in sections:
            section = section[part]
        if default is None:
            assert re.search(rf"^# {name} =", text, re.MULTILINE), f"{key} is not shown"
        else:
            assert name in section, f"{key} is not shown"


def test_what_init_lays_down_says_every_setting_with_its_meaning_and_default(generate, tmp_path):
    template = ROOT / "daybreak" / "cli" / "setup" / "template"
    text = (template / "base.toml").read_text(encoding="utf-8")
    assert load({}, template) == load({}, tmp_path), "as it is laid down it changes nothing"
    words = " ".join(text.replace("\n## ", " ").split())
    keys = [*generate.conf_keys.settings_rows()]
    for key, _, meaning in keys:
        assert f"{meaning} # {key.rpartition('.')[2]} = " in words, key
    examples = "|".join(key.rpartition(".")[2] for key, default, _ in keys if default is None)
    (tmp_path / "base.toml").write_text(re.sub(rf"^# (?!({examples}) =)", "", text, flags=re.MULTILINE))
    assert (tmp_path / "base.toml").read_text().count("\n# ") == examples.count("|") + 1
    assert load({}, tmp_path) == load({}, template), "what stands there is the default"
    (tmp_path / "base.toml").write_text(re.sub("^# ", "", text, flags=re.MULTILINE))
    assert load({}, tmp_path).redis.url == "redis://localhost:6379/0"


@pytest.mark.parametrize("name", ["boards.toml", "seasons.toml"])
def test_the_examples_that_init_lays_down_are_valid(tmp_path, name):
    for each in ("boards.toml", "seasons.toml"):
        text = (ROOT / "daybreak" / "cli" / "setup" / "template" / each).read_text(encoding="utf-8")
        tomllib.loads(text)
        (tmp_path / each).write_text(re.sub(r"^# ?", "", text, flags=re.MULTILINE))
    found = boards.load(tmp_path)
    assert [*found.boards] == ["players", "laps"]
    assert [*found.seasons] == ["spring-2026", "world-cup", "world-cup-2026"]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_make_targets_that_a_page_names_exist(page):
    named = set(re.findall(r"(?:`|^ {4})make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= make_targets()


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_a_page_names_exist(page):
    import typer.main

    from daybreak.cli.main import app

    commands = typer.main.get_command(app).commands
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^ {4}|[A-Z]=\S+ )(?:\.venv/bin/)?daybreak ([a-z][a-z-]*)", text, re.MULTILINE))
    assert named <= set(commands)
    of_boards = set(re.findall(r"(?:`|^ {4})(?:\.venv/bin/)?daybreak board ([a-z][a-z-]*)", text, re.MULTILINE))
    assert of_boards <= set(commands["board"].commands)


def test_the_makefile_has_the_agreed_targets_and_helps_by_default():
    agreed = "help setup demo test test-fast lint types fmt bench docs clean"
    assert set(agreed.split()) <= make_targets()
    assert ".DEFAULT_GOAL := help" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_command_lines_that_a_page_prints_are_taken_with_all_their_options(page):
    import typer.main

    from daybreak.cli.main import app

    typed = r"^ {4}(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?daybreak ([^\n]+)$"
    lines = re.findall(typed, page.read_text("utf-8"), re.MULTILINE)
    for line in (each for each in lines if "…" not in each and "[" not in each):
        command, words = typer.main.get_command(app), shlex.split(line, comments=True)
        while hasattr(command, "commands") and words:
            command, words = command.commands[words[0]], words[1:]
        command.make_context(line, words)
