"""Settings: defaults live here, `conf/base.toml` shows them, an overlay and `DAYBREAK_…` change them.

Read once, in the command line, and passed down frozen. An unknown key is an error that names the key and
where it stands.
"""

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from daybreak.errors import UsageError, did_you_mean

NO_SETTINGS = ("DAYBREAK_ENV", "DAYBREAK_CRASH_AT")
VARIABLES = "the environment"
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_span(value: Any) -> Any:
    """A time span from `90s`, `5m`, `36h` or `14d`."""
    if isinstance(value, str) and value[-1:] in UNITS and value[:-1].isdigit():
        try:
            return timedelta(**{UNITS[value[-1]]: int(value[:-1])})
        except OverflowError:
            raise ValueError("a span ends at 999999999d") from None
    if isinstance(value, timedelta):
        return value
    raise ValueError("a span is a whole number and s, m, h or d, as in '90s' or '14d'")


def parse_folder(value: Any) -> Any:
    """A folder; an empty text would be the current one."""
    if value == "":
        raise ValueError("it is empty; name a folder, '.' for the current one, or leave the setting out")
    return value


Span = Annotated[timedelta, BeforeValidator(parse_span)]
Folder = Annotated[Path, BeforeValidator(parse_folder)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class Lake(_Model):
    root: Folder | None = Field(None, description="Folder of the Delta tables; default: DAYBREAK_HOME/lake.")
    retention: Span = Field(timedelta(days=30), description="How long replaced files and versions are kept.")
    staging: Folder | None = Field(
        None,
        description="Folder that runs stage in, reached by a cluster's workers too; default: HOME/staging.",
    )
    staging_keep: Span = Field(timedelta(days=2), description="How long a finished run's staging is kept.")


class Redis(_Model):
    url: str | None = Field(None, description="A Redis 7+ or Valkey server; default: the embedded one.")
    provisional_ttl: Span = Field(timedelta(days=3), description="How long provisional lists live.")
    minute_ttl: Span = Field(timedelta(days=1), description="How long provisional minute lists live.")
    exact_ttl: Span = Field(timedelta(days=400), description="How long exact lists live; the fence outlives them.")
    previous_ttl: Span = Field(timedelta(days=2), description="How long the generation before is kept.")


class Intake(_Model):
    future_tolerance: Span = Field(timedelta(minutes=5), description="occurred_at may be this much after received_at.")


class WindowTarget(_Model):
    relative_error: float = Field(gt=0, lt=1, description="error_bound / total_weight")
    grace: Span = Field(description="Events this much after a bucket's end still count in it.")


class Stream(_Model):
    confidence: float = Field(0.99, gt=0, lt=1, description="How often the error bound holds, per estimate.")
    seed: int = Field(42, description="Seed of the rows' hash constants; sketches of other seeds never merge.")
    list_depth: int = Field(1000, gt=0, description="Entries of a published list; K is a slice of it.")
    candidate_factor: int = Field(4, gt=0, description="Candidates kept, as a multiple of list_depth.")
    publish_every: Span = Field(timedelta(seconds=5), description="Time between two publications.")
    max_jump: Span = Field(
        timedelta(hours=26),
        description="The watermark ignores a jump above this until later events confirm it.",
    )
    force_cells: bool = Field(False, description="Use sketch cells from the first event (trials).")
    memory_limit: int = Field(2 * 2**30, description="Bytes that all live buckets may take together.")
    minute: WindowTarget = WindowTarget(relative_error=1e-3, grace=timedelta(minutes=2))
    hour: WindowTarget = WindowTarget(relative_error=1e-4, grace=timedelta(minutes=10))
    day: WindowTarget = WindowTarget(relative_error=2e-5, grace=timedelta(minutes=30))


class Night(_Model):
    dedup_lookback: Span = Field(
        timedelta(minutes=60),
        le=timedelta(days=1),
        description="A copy of an event this long before the day makes it a duplicate; at most 1d.",
    )
    complete_grace: Span = Field(
        timedelta(minutes=30), description="A log's progress must pass the day's end by this much."
    )
    lease: Span = Field(timedelta(seconds=30), description="Time to live of the night's lease; renewed while it runs.")
    breaker_ratio: float = Field(
        10.0,
        gt=1,
        description="Stop when a day has this many times more or fewer rows than the last day with rows.",
    )
    breaker_min_rows: int = Field(100_000, description="The breaker ignores days below this many rows.")
    recount_full_below: int = Field(
        20_000_000,
        description="Up to this many rows DuckDB recounts everything, above it totals and 1/64 of the items.",
    )
    report_k: int = Field(20, gt=0, description="K of the report's recall and precision.")
    memory_pool: int = Field(6 * 2**30, description="Bytes of Sail's memory pool; it spills beyond.")
    part_rows: int = Field(
        25_000_000, gt=0, description="Above this many events a run counts part by part of about that size."
    )


class Spark(_Model):
    master: str | None = Field(None, description="Where Spark runs; default: local[*], or what spark-submit says.")
    remote: str | None = Field(None, description="Spark Connect URL of engine connect, as in sc://host:15002.")
    driver_memory: str = Field("4g", description="Heap of the driver, which on a local master does all the work.")
    shuffle_partitions: int | None = Field(
        None, gt=0, description="Parts of a shuffle; default: twice the cores of a local master, else Spark's own."
    )
    conf: dict[str, str] = Field(
        {}, description="Further settings of Spark itself; they win over ours. As a variable: one JSON object."
    )


class Settings(_Model):
    """All settings. `home` holds everything that the embedded default writes."""

    home: Folder = Field(Path(".daybreak"), description="Folder of all that has no place of its own.")
    engine: Literal["sail", "spark", "connect"] = Field(
        "sail", description="sail (embedded), spark (Apache Spark, local or a cluster) or connect (remote Spark)."
    )
    boards_folder: Folder = Field(Path("conf"), description="Folder of boards.toml and seasons.toml.")
    lake: Lake = Lake()
    redis: Redis = Redis()
    intake: Intake = Intake()
    stream: Stream = Stream()
    night: Night = Night()
    spark: Spark = Spark()

    @property
    def lake_root(self) -> Path:
        return (self.lake.root or self.home / "lake").absolute()

    @property
    def staging_root(self) -> Path:
        return (self.lake.staging or self.home / "staging").absolute()


def load(environ: Mapping[str, str] = os.environ, conf: Path = Path("conf")) -> Settings:
    """The settings of this process: defaults, `base.toml`, the overlay `$DAYBREAK_ENV.toml`, variables.

    Variables are `DAYBREAK_HOME`, `DAYBREAK_ENGINE` and `DAYBREAK_SECTION__KEY`, as in `DAYBREAK_LAKE__ROOT`;
    that of `spark.conf` holds a JSON object. Folders are taken from the current one, and absolute from then on.

    Raises:
        UsageError: an unknown key, a value that does not fit, a missing overlay.
    """
    files = [conf / "base.toml"] if (conf / "base.toml").exists() else []
    if overlay := environ.get("DAYBREAK_ENV"):
        files.append(conf / f"{overlay}.toml")
    layers = [(str(file), _read_toml(file)) for file in files]
    layers.append((VARIABLES, _variables(environ)))
    merged = Settings().model_dump()
    found = Settings()
    for where, values in layers:
        _merge(merged, values)
        found = _validated(merged, where)
    return found.model_copy(
        update={
            "home": found.home.absolute(),
            "boards_folder": found.boards_folder.absolute(),
            "lake": found.lake.model_copy(update={"root": found.lake_root, "staging": found.staging_root}),
        }
    )


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except FileNotFoundError:
        near = did_you_mean(file.stem, (each.stem for each in file.parent.glob("*.toml")))
        raise UsageError(
            f"DAYBREAK_ENV names {file}, which is not there{near}; create it or unset DAYBREAK_ENV"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from None


def _validated(values: dict[str, Any], where: str) -> Settings:
    """`where` is the layer that was merged last, so what fails is in it."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        path = [str(part) for part in first["loc"]]
        key = ".".join(path)
        if first["type"] == "extra_forbidden":
            what = f"is not a setting{did_you_mean(path[-1], _keys(path[:-1]))}"
        else:
            what = f"does not fit: {first['msg'].removeprefix('Value error, ')}"
        if where == VARIABLES:
            where = f"DAYBREAK_{'__'.join(path[:2] if key.startswith('spark.conf.') else path).upper()}"
        raise UsageError(
            f"{where}: {key} = {_written(values, first)!r} {what}; docs/reference/settings.md lists the settings"
        ) from None


def _keys(section: Sequence[str]) -> list[str]:
    """The settings of a section."""
    model: Any = Settings()
    for part in section:
        model = getattr(model, part, None)
    return [*type(model).model_fields] if isinstance(model, BaseModel) else []


def _written(values: dict[str, Any], error: ErrorDetails) -> Any:
    """What stands at the place of an error, which may have been read as something else."""
    found: Any = values
    for part in error["loc"]:
        if not isinstance(found, dict) or part not in found:
            return error["input"]
        found = found[part]
    return found


def _variables(environ: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in sorted(environ.items()):
        if not name.startswith("DAYBREAK_") or name in NO_SETTINGS:
            continue
        if not value:
            raise UsageError(f"{name} is empty; unset it, or give it a value")
        path = name.removeprefix("DAYBREAK_").lower().split("__")
        if path[:2] == ["spark", "conf"] and path[2:]:
            raise UsageError(f"{name} is not a setting; DAYBREAK_SPARK__CONF holds all of them as one JSON object")
        if not _put(tree, path, _json_object(name, value) if path == ["spark", "conf"] else value):
            raise UsageError(f"{name} cannot be set beside a variable that it is a part of; unset one of them")
    return tree


def _json_object(name: str, value: str) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UsageError(f'{name} = {value!r} is not a JSON object; write it as {{"spark.key": "value"}}')
    return found


def _merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _put(tree: dict[str, Any], path: list[str], value: Any) -> bool:
    """Whether it had its place: a key is a section or a value."""
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            return False
    return tree.setdefault(path[-1], value) is value
