"""Ask a query of the catalogue, in one call: as rows, pandas, Arrow, or a file.

from queries.runner import run, save
cells = run("cells", "http://127.0.0.1:8123/tachograph", host="gpu-node-024")
save("cells", "http://127.0.0.1:8123/tachograph", "cells.parquet", last_s=86400)
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from engine_hooks.whole_file import write_whole
from queries.catalogue import PLACEHOLDER, Query, find
from queries.client import connected, one_line
from queries.errors import CallError
from queries.parameters import bound, written

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from clickhouse_connect.driver.client import Client

Rows = list[dict[str, Any]]
"""One dict a row, keyed by column."""
Format = Literal["rows", "pandas", "arrow"]
RawFormat = Literal["CSVWithNames", "JSONEachRow", "Parquet"]

FILE_FORMATS: dict[str, RawFormat] = {".parquet": "Parquet", ".csv": "CSVWithNames", ".jsonl": "JSONEachRow"}


class Asked(NamedTuple):
    """A query as it goes to the server: what the values leave out is not sent."""

    sql: str
    values: dict[str, str]
    """Those that the text names."""


def asked(name: str, values: Mapping[str, object]) -> Asked:
    """A query with its values.

    Raises:
        UnknownQueryError: no query bears that name.
        ParameterError: a parameter is unknown or does not fit.
    """
    query = find(name)
    texts = bound(query, values)
    sql = query.sql_sent(given(query, texts))
    named = {found[1] for found in PLACEHOLDER.finditer(sql)}
    return Asked(sql, {name: text for name, text in texts.items() if name in named})


def given(query: Query, texts: Mapping[str, str]) -> set[str]:
    """The parameters that have another value than their default."""
    return {one.name for one in query.parameters if texts[one.name] != written(one, one.default)}


@overload
def run(name: str, url: str, format: Literal["rows"], **values: object) -> Rows: ...
@overload
def run(name: str, url: str, format: Literal["arrow"], **values: object) -> "pyarrow.Table": ...
@overload
def run(name: str, url: str, format: Literal["pandas"] = ..., **values: object) -> "pandas.DataFrame": ...
def run(name: str, url: str, format: Format = "pandas", **values: object) -> Any:
    """The answer to a query of the catalogue.

    Args:
        name: The query.
        url: ClickHouse, `http[s]://[user:password@]host[:port][/database]`.
        format: `rows` (dicts; times to the microsecond), `pandas` or `arrow` (times to the nanosecond).
            Times are UTC.
        values: Its parameters; `from` is written `**{"from": …}`. `None` is the default.

    Raises:
        UnknownQueryError: no query bears that name.
        ParameterError: a parameter is unknown or does not fit.
        UnreachableError: no ClickHouse answers at the URL.
        RefusedError: ClickHouse refused or failed the query.
    """
    sql, parameters = asked(name, values)
    client = connected(url)
    with one_line(url):
        if format == "pandas":
            return _frame(client, sql, parameters, [column.name for column in find(name).columns])
        if format == "arrow":
            return client.query_arrow(sql, parameters=parameters)
        return list(client.query(sql, parameters=parameters).named_results())


def _frame(client: "Client", sql: str, parameters: dict[str, str], columns: list[str]) -> "pandas.DataFrame":
    """The rows as one frame. Mostly they come in one block, whose frame it is: `query_df` would put each of its columns
    together anew, 2 ms for 25 of them."""
    import pandas as pd  # noqa: PLC0415  # Commands that ask for rows do without it.

    with client.query_df_stream(sql, parameters=parameters) as stream:
        blocks: list[pd.DataFrame] = [block for block in stream if len(block)]
    # An answer without rows comes without columns too.
    if not blocks:
        return pd.DataFrame(columns=columns)
    return blocks[0] if len(blocks) == 1 else pd.concat(blocks, ignore_index=True)


def run_raw(name: str, url: str, format: RawFormat, values: Mapping[str, object]) -> bytes:
    """The answer as the server writes it: exact, nothing rounded on the way.

    Raises:
        QueriesError: as `run`.
    """
    sql, parameters = asked(name, values)
    client = connected(url)
    with one_line(url):
        return bytes(client.raw_query(sql, parameters=parameters, fmt=format))


def save(name: str, url: str, path: Path | str, **values: object) -> Path:
    """Write the answer to a file, by its suffix Parquet, CSV or JSON lines: exact, nothing rounded.

    Args:
        name: The query.
        url: ClickHouse, as for `run`.
        path: The file; one that is there is overwritten.
        values: The query's parameters, as for `run`.

    Returns:
        The path.

    Raises:
        CallError: another suffix, or the file cannot be written.
        QueriesError: as `run`.
    """
    target = Path(path)
    if target.suffix not in FILE_FORMATS:
        raise CallError(f"{target}: the suffix says the format; it is one of {', '.join(FILE_FORMATS)}")
    content = run_raw(name, url, FILE_FORMATS[target.suffix], values)
    try:
        write_whole(target, content)
    except OSError as wrong:
        raise CallError(f"{target}: {wrong.strerror or wrong}") from wrong
    return target
