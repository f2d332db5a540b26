"""What analysts type: queries over the lake's views, singly or at a prompt."""

import cmd
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from daybreak import settings
from daybreak.cli.options import Format, parse_instant
from daybreak.cli.output import say, show
from daybreak.errors import DaybreakError, UsageError

AsOf = Annotated[str | None, typer.Option("--as-of", help="Look back: everything as it was at this time, UTC.")]
HELP = """Type SQL and end it with a semicolon. The views are the lake's tables, at the newest manifest.
.tables          every view and what it holds
.columns VIEW    its columns
.macros          the questions that have a name
.quit            (or Ctrl-D) ends"""


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `app`."""
    app.command(epilog='Example: daybreak sql "select * from daily_counts order by count desc limit 5"')(sql)
    app.command(epilog="Example: daybreak shell --as-of 2026-03-02T08:00")(shell)


def sql(
    query: Annotated[str | None, typer.Argument(help="A DuckDB query over the lake's views.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="Read the query from a file instead.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the rows to a .csv or .parquet file.")] = None,
    as_of: AsOf = None,
    format_: Format = "table",
) -> None:
    """Query the exact tables with DuckDB, as the newest manifest shows them."""
    from lakehouse.reading import analyst

    if (query is None) == (file is None):
        raise UsageError("say what to query: a query, or a file with --file, and not both")
    text = query if file is None else read_query(file)
    connection = connected(as_of)
    if out:
        say(f"{analyst.export(connection, str(text), out)} rows in {out}")
        return
    names, rows = analyst.query(connection, str(text))
    show(names, (dict(zip(names, row, strict=True)) for row in rows), format_)


def shell(as_of: AsOf = None, format_: Format = "table") -> None:
    """A DuckDB prompt over the lake's views; reads from a pipe as well."""
    prompt = Prompt(connected(as_of), format_)
    try:
        prompt.cmdloop()
    except KeyboardInterrupt:
        say("")
    if prompt.failures and not prompt.is_asked:
        raise typer.Exit(2)


class Prompt(cmd.Cmd):
    """Reads statements up to their semicolon, and shows what they give."""

    def __init__(self, connection: Any, format_: str) -> None:
        super().__init__()
        self.connection, self.format = connection, format_
        self.is_asked = sys.stdin.isatty()
        self.prompt = "daybreak> " if self.is_asked else ""
        self.intro = f"{HELP}\n" if self.is_asked else None
        self.use_rawinput = self.is_asked
        self.failures = 0
        self.begun = ""

    def onecmd(self, line: str) -> bool:
        """One line: a part of a statement, or a word with a dot."""
        if line == "EOF":
            if self.begun.strip():
                self.run(self.begun)
            return True
        if not self.begun and line.startswith("."):
            return self.dotted(line[1:].split())
        self.begun += f"{line}\n"
        if self.begun.rstrip().endswith(";"):
            statement, self.begun = self.begun, ""
            self.run(statement)
        if self.is_asked:
            self.prompt = "     ...> " if self.begun.strip() else "daybreak> "
        return False

    def dotted(self, words: list[str]) -> bool:
        """A word with a dot; whether it ends the prompt."""
        match words:
            case ["quit" | "exit"]:
                return True
            case ["tables"]:
                self.run("select view_name as view, comment from duckdb_views() where not internal order by all")
            case ["columns", view]:
                self.connection.execute("set variable shown_view = $1", [view])
                self.run(
                    "select column_name as column, data_type as type, comment from duckdb_columns() "
                    "where table_name = getvariable('shown_view') order by column_index"
                )
            case ["macros"]:
                self.run(
                    "select function_name as macro, array_to_string(parameters, ', ') as parameters "
                    "from duckdb_functions() where function_type = 'table_macro' and not internal order by all"
                )
            case _:
                say(HELP)
        return False

    def run(self, statement: str) -> None:
        """Show what a statement gives; a refusal is shown and the prompt goes on."""
        from lakehouse.reading import analyst

        try:
            names, rows = analyst.query(self.connection, statement)
            show(names, (dict(zip(names, row, strict=True)) for row in rows), self.format)
        except DaybreakError as error:
            self.failures += 1
            say(f"daybreak: {error}")


def connected(as_of: str | None) -> Any:
    """A connection to the views."""
    from lakehouse.reading import analyst
    from lakehouse.stores.delta_rs import DeltaRsStore

    conf = settings.load()
    then: datetime | None = parse_instant(as_of, "--as-of") if as_of else None
    return analyst.connect(DeltaRsStore(conf.lake_root, conf.lake.retention), as_of=then)


def read_query(file: Path) -> str:
    """The text of a query file.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read as a query: {error}; give a text file with one query") from None
