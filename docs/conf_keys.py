"""The keys of settings, boards and seasons as Markdown tables; docs/generate.py puts them into pages."""

import builtins
import json
import textwrap
import types
import typing
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from daybreak.rules.boards import Board, Filter, Prize
from daybreak.rules.seasons import SeasonGiven
from daybreak.settings import Settings

BOARD_FILES = (
    ("`boards.toml`: `[BOARD]`", Board),
    ("`boards.toml`: `[BOARD.filter]`", Filter),
    ("`boards.toml`: `[[BOARD.prizes]]`", Prize),
    ("`seasons.toml`: `[SEASON]`", SeasonGiven),
)
TOML_TYPES = {str: "string", int: "integer", float: "float", date: "date", timedelta: "span"}
SPANS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def span(value: timedelta) -> str:
    """The span as settings write it: `90s`, `30m`, `26h`, `14d`.

    >>> span(timedelta(hours=26)), span(timedelta(hours=1)), span(timedelta(days=30))
    ('26h', '1h', '30d')
    """
    seconds = int(value.total_seconds())
    return next(f"{seconds // size}{unit}" for unit, size in SPANS if seconds % size == 0)


def settings_rows(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """(key, default, meaning) of every setting, in the model's order; sections follow the plain keys."""
    sections = []
    for name, field in model.model_fields.items():
        if isinstance(field.default, BaseModel):
            sections.append((name, field.default))
        else:
            yield f"{prefix}{name}", field.get_default(), field.description or ""
    for name, default in sections:
        for key, _, meaning in settings_rows(type(default), f"{prefix}{name}."):
            yield key, value_at(default, key.removeprefix(f"{prefix}{name}.")), meaning


def value_at(model: BaseModel, key: str) -> Any:
    """The value that `key` (with dots) has in `model`."""
    value: Any = model
    for part in key.split("."):
        value = getattr(value, part)
    return value


def shown(value: Any) -> str:
    """A default as a reader would write it in TOML; a dash where there is none."""
    match value:
        case None | BaseModel():
            return "-"
        case _ if value is PydanticUndefined:
            return "must be given"
        case bool():
            return f"`{str(value).lower()}`"
        case tuple():
            return f"`{json.dumps(value)}`"
        case dict():
            return "`{}`" if not value else f"`{value}`"
        case timedelta():
            return f'`"{span(value)}"`'
        case int() | float():
            return f"`{value:_}`" if isinstance(value, int) else f"`{value:g}`"
        case _:
            return f'`"{value}"`'


def settings_table() -> str:
    """Markdown table of all settings."""
    rows = [
        f"| `{key}` | `DAYBREAK_{key.upper().replace('.', '__')}` | {shown(default)} | {cell(meaning)} |"
        for key, default, meaning in settings_rows()
    ]
    return "\n".join(["| setting | variable | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def board_tables() -> str:
    """A heading and a table for each model of boards.toml and seasons.toml."""
    return "\n".join(f"## {title}\n\n{_model_table(model)}" for title, model in BOARD_FILES)


def _model_table(model: type[BaseModel]) -> str:
    """Markdown table of a model's keys; `name` is no key but the heading in the file."""
    rows = [
        f"| `{field.alias or name}` | {values(field.annotation)} | {shown(field.default)} "
        f"| {cell(field.description or '')} |"
        for name, field in model.model_fields.items()
        if name != "name"
    ]
    return "\n".join(["| key | values | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def values(kind: Any) -> str:
    """What a key takes, in the words of TOML.

    >>> values(tuple[typing.Literal["day", "week"], ...]), values(tuple[int, int] | None)
    ('list of `day`, `week`', '[integer, integer]')
    """
    arguments = get_args(kind)
    match get_origin(kind):
        case typing.Literal:
            return ", ".join(f"`{each}`" for each in arguments)
        case typing.Annotated:
            return values(arguments[0])
        case types.UnionType | typing.Union:
            return values(arguments[0])
        case builtins.tuple if Ellipsis in arguments:
            return f"list of {values(arguments[0])}"
        case builtins.tuple:
            return f"[{', '.join(map(values, arguments))}]"
    return TOML_TYPES.get(kind, "table")


def cell(text: str) -> str:
    """The text as one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


EXAMPLES = {
    "lake.root": "/data/lake",
    "lake.staging": "/data/staging",
    "redis.url": "redis://localhost:6379/0",
    "spark.master": "local[*]",
    "spark.remote": "sc://localhost:15002",
    "spark.shuffle_partitions": 200,
}
"""What stands in a fresh deployment for a setting that has no default of its own."""
WIDTH = 118


def base_template() -> str:
    """base.toml of a fresh deployment: every setting with its meaning and default, commented out."""
    parts = [
        "## Settings of this deployment. All are commented out: what stands here is the default, or an example where",
        "## there is none. Take `# ` away from a line to change it. `daybreak doctor` says whether it works.",
        "## An overlay conf/NAME.toml wins over this file when DAYBREAK_ENV=NAME, a variable DAYBREAK_SECTION__KEY",
        "## (as in DAYBREAK_LAKE__ROOT=/data/lake) over both. Folders are taken from where `daybreak` is run.",
    ]
    section = ""
    for key, default, meaning in settings_rows():
        above, _, name = key.rpartition(".")
        if above != section:
            parts += ["", f"[{above}]"]
            section = above
        parts += ["", *comment(meaning), f"# {name} = {written(EXAMPLES[key] if default is None else default)}"]
    return "\n".join(parts) + "\n"


def written(value: Any) -> str:
    """A value in TOML."""
    text = shown(value)
    return text.strip("`") if text != "-" else "{}"


def comment(text: str) -> list[str]:
    """Text as lines of a comment that is no commented-out key."""
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent="## ", subsequent_indent="## ")


def board_template(examples: str, *models: tuple[str, type[BaseModel]]) -> str:
    """boards.toml or seasons.toml of a fresh deployment: the examples of conf/, and every key with its meaning."""
    text = examples.replace("docs/reference/boards.md lists every key.", "The keys are listed below.")
    parts = [text.rstrip()]
    for title, model in models:
        parts += ["", f"## Keys of {title}:"]
        for name, field in model.model_fields.items():
            if name == "name":
                continue
            given = shown(field.default).strip("`")
            default = "; must be given" if field.default is PydanticUndefined else f"; default {given}"
            default = "" if given == "-" else default
            parts += comment(
                f"{field.alias or name}: {cell(field.description or '')} ({values(field.annotation)}{default})"
            )
    return "\n".join(parts) + "\n"
