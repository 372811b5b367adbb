"""Ask a query of the catalogue: `run("cells", url, "pandas", host="gpu-node-024")`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from queries.catalogue import find
from queries.client import connected, one_line
from queries.parameters import bound

if TYPE_CHECKING:
    import pandas
    import pyarrow

Rows = list[dict[str, Any]]
"""One dict a row, keyed by column."""
Format = Literal["rows", "pandas", "arrow"]
RawFormat = Literal["CSVWithNames", "JSONEachRow", "Parquet"]


class Asked(NamedTuple):
    """A query as it goes to the server."""

    sql: str
    values: dict[str, str]


def asked(name: str, values: Mapping[str, object]) -> Asked:
    """A query with its values.

    Raises:
        UnknownQueryError: no query bears that name.
        ParameterError: a parameter is unknown or does not fit.
    """
    query = find(name)
    return Asked(query.sql, bound(query, values))


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
            frame = client.query_df(sql, parameters=parameters)
            # An answer without rows comes without columns too.
            return (
                frame if len(frame.columns) else frame.reindex(columns=[column.name for column in find(name).columns])
            )
        if format == "arrow":
            return client.query_arrow(sql, parameters=parameters)
        return list(client.query(sql, parameters=parameters).named_results())


def run_raw(name: str, url: str, format: RawFormat, values: Mapping[str, object]) -> bytes:
    """The answer as the server writes it: exact, nothing rounded on the way.

    Raises:
        QueriesError: as `run`.
    """
    sql, parameters = asked(name, values)
    client = connected(url)
    with one_line(url):
        return bytes(client.raw_query(sql, parameters=parameters, fmt=format))
