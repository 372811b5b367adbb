"""SQL that somebody wrote just now, read-only and bounded, whatever server is asked."""

from typing import Any, Final, NamedTuple

from queries.client import connected, one_line
from queries.errors import CallError

ROWS_MAX: Final = 1000
TIME_MAX_S: Final = 30


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
    if not sql.strip():
        raise CallError("there is no statement: SELECT … FROM graph_executions is one")
    bounds = {
        "readonly": 2,
        "max_execution_time": TIME_MAX_S,
        # The engine cuts at whole blocks; one row more than wanted tells that there are more.
        "max_result_rows": rows_max + 1,
        "result_overflow_mode": "break",
    }
    client = connected(url)
    with one_line(url):
        result = client.query(sql, settings=bounds)
    types = tuple(kind.name for kind in result.column_types)
    rows = [tuple(row) for row in result.result_rows]
    return Answer(tuple(result.column_names), types, rows[:rows_max], len(rows) > rows_max)
