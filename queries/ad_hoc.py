"""SQL that somebody wrote just now, read-only and bounded, whatever server is asked."""

import re
from typing import Any, Final, NamedTuple

from queries.client import connected, one_line
from queries.errors import CallError
from queries.runner import RawFormat

ROWS_MAX: Final = 1000
FILE_ROWS_MAX: Final = 1_000_000
TIME_MAX_S: Final = 30
FORMAT: Final = re.compile(r"\s+FORMAT\s+\w+[\s;]*$", re.IGNORECASE)


class Answer(NamedTuple):
    """What came back."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """ClickHouse types."""
    rows: list[tuple[Any, ...]]
    cut_off: bool
    """There are more rows than were asked for."""


def ask(url: str, sql: str, rows_max: int = 200) -> Answer:
    """The first rows of one statement's answer.

    A server of one's own is told to read only and to stop after `TIME_MAX_S`; the embedded store does so by itself.

    Args:
        url: ClickHouse.
        sql: One statement that reads.
        rows_max: How many rows to return, 1 to `ROWS_MAX`.

    Raises:
        CallError: `rows_max` is out of range, or there is no statement.
        UnreachableError: no ClickHouse answers at the URL.
        RefusedError: ClickHouse refused or failed the statement.
    """
    if not 1 <= rows_max <= ROWS_MAX:
        raise CallError(f"{rows_max} rows: 1 to {ROWS_MAX} can be asked for")
    check_statement(sql)
    client = connected(url)
    with one_line(url):
        # One row more than wanted tells that there are more.
        result = client.query(without_format(sql), settings=bounds(rows_max + 1))
    types = tuple(kind.name for kind in result.column_types)
    rows = [tuple(row) for row in result.result_rows]
    return Answer(tuple(result.column_names), types, rows[:rows_max], len(rows) > rows_max)


def ask_raw(url: str, sql: str, format: RawFormat) -> bytes:
    """The answer as the server writes it, exact: `FILE_ROWS_MAX` rows of it, and the rest of the last block.

    Raises:
        QueriesError: as `ask`.
    """
    check_statement(sql)
    client = connected(url)
    with one_line(url):
        return bytes(client.raw_query(without_format(sql), settings=bounds(FILE_ROWS_MAX), fmt=format))


def check_statement(sql: str) -> None:
    """Refuse an empty one.

    Raises:
        CallError: it is.
    """
    if not sql.strip():
        raise CallError("there is no statement: SELECT … FROM graph_executions is one")


def without_format(sql: str) -> str:
    """A statement without the FORMAT that ends it: in which one it is answered is for us to say."""
    return FORMAT.sub("", sql)


def bounds(rows_max: int) -> dict[str, str | int]:
    """Settings of the server that make it read only, and stop. The engine cuts at whole blocks."""
    return {
        "readonly": 2,
        "max_execution_time": TIME_MAX_S,
        "max_result_rows": rows_max,
        "result_overflow_mode": "break",
    }
