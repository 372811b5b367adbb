"""`tachograph query`: ask a question of the catalogue from a terminal or a script."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Protocol

import typer

from queries.catalogue import Query, find, load
from queries.commands.output import format_of, write
from queries.errors import CallError
from queries.terminal import answer_table, catalogue_json, catalogue_table

OutputFormat = Literal["table", "csv", "json", "parquet"]
SUFFIXES: dict[str, OutputFormat] = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".txt": "table"}


class Settings(Protocol):
    """What these commands need to know."""

    @property
    def clickhouse_url(self) -> str: ...


def query(
    settings: Settings,
    name: Annotated[str | None, typer.Argument(help="Which query; without it, the catalogue is listed.")] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter; may be repeated.")
    ] = None,
    format: Annotated[
        OutputFormat | None,
        typer.Option("--format", "-f", help="Default: by the suffix of --output; without it, table."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Ask a question of the stored executions; without a name, list the questions.

    Exit codes: 0 answered (an empty answer says so on standard error); 2 a wrong call; 3 no ClickHouse
    answers; 4 ClickHouse refused the query. Tables round for the eye; csv, json and parquet are exact.
    """
    chosen = format_of(format, output, SUFFIXES, "table")
    content = catalogue(chosen, param) if name is None else answer(settings, find(name), pairs(param or []), chosen)
    write(content, output)


def pairs(arguments: list[str]) -> dict[str, str]:
    """`NAME=VALUE` arguments as a dict.

    Raises:
        CallError: one without `=`, or a name given twice.
    """
    values: dict[str, str] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals or name in values:
            raise CallError(f"--param {argument}: " + ("given twice" if equals else "it is written NAME=VALUE"))
        values[name] = value
    return values


def catalogue(chosen: OutputFormat, param: list[str] | None) -> bytes:
    """The list of queries."""
    if param:
        raise CallError("--param needs the name of a query")
    if chosen == "json":
        return catalogue_json(load().values())
    if chosen == "table":
        return catalogue_table(load().values())
    raise CallError(f"the catalogue is listed as table or json, not {chosen}")


def answer(
    settings: Settings, asked: Query, values: Mapping[str, object], chosen: OutputFormat, empty: str = ""
) -> bytes:
    """The answer to one query, in the format chosen. Where it has no rows, standard error says so, by `empty`."""
    from queries.runner import run, run_raw  # noqa: PLC0415 (clickhouse-connect slows the start)

    url = settings.clickhouse_url
    if chosen == "csv":
        content = run_raw(asked.name, url, "CSVWithNames", values)
        is_empty = content.count(b"\n") <= 1
    elif chosen == "json":
        lines = run_raw(asked.name, url, "JSONEachRow", values).splitlines()
        content, is_empty = b"[" + b",\n ".join(lines) + b"]\n", not lines
    elif chosen == "parquet":
        content = run_raw(asked.name, url, "Parquet", values)
        is_empty = parquet_rows(content) == 0
    else:
        rows = run(asked.name, url, "rows", **values)
        content, is_empty = answer_table(asked, rows) if rows else b"", not rows
    if is_empty:
        typer.echo(empty or f"query {asked.name}: no rows for these parameters", err=True)
    return content


def parquet_rows(content: bytes) -> int:
    """How many rows a Parquet file holds."""
    import pyarrow.parquet  # noqa: PLC0415 (slows the start)

    return int(pyarrow.parquet.read_metadata(pyarrow.BufferReader(content)).num_rows)
