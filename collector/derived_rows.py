"""Rows that are computed from executions (replays, the history of alerts), stored beside them.

The SQL endpoint only reads; this is the one way to write, and only into the tables named here.
Why a door and not an open endpoint: docs/decisions/0008-a-door-for-derived-rows.md
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.acceptance import MalformedRequestError, StoreUnavailableError
from collector.errors import CollectorError
from collector.store.clickhouse import first_line
from collector.store.client import StoreClient
from collector.store.migrations import id_of

DERIVED_TABLES: Final[Mapping[str, str]] = {
    "replays": "090_replays.sql",
    "replay_decisions": "091_replay_decisions.sql",
    "alert_history": "095_alert_history.sql",
    "annotations": "096_annotations.sql",
}
"""The tables that take rows, each with the file of `collector/schema` that makes it."""

STORED_AT: Final = "stored_at"
"""The column that the store fills in by itself. Partitions and retention go by it, so no sender sets it."""

ROWS_MAX: Final = 100_000
"""Rows of one request. One insert, one block: all of them are stored or none."""

_INT64: Final = range(-(2**63), 2**63)
_INSERT_SETTINGS: Final[Mapping[str, Any]] = {
    # Set one by one, because their defaults changed between versions, and storing once hangs on them.
    "async_insert": 0,
    "insert_deduplicate": 1,
    "deduplicate_insert": "enable",
    "input_format_parallel_parsing": 0,
    "max_insert_block_size": 1_000_000,
    "min_insert_block_size_rows": 0,
    "min_insert_block_size_bytes": 0,
    # A value is never replaced by another one.
    "input_format_null_as_default": 0,
    "input_format_skip_unknown_fields": 0,
    "date_time_input_format": "best_effort",
    # On a cluster: stored on the shards when answered.
    "distributed_foreground_insert": 1,
}
_OF_A_ROW: Final = re.compile(r"\(at row (\d+)\)")
_OF_A_COLUMN: Final = re.compile(r"reading the value of key (\w+)")
_BAD_VALUES: Final = ("CANNOT_PARSE", "CANNOT_READ", "INCORRECT_DATA", "TYPE_MISMATCH", "ILLEGAL_TYPE", "VALUE_IS_OUT")
"""How ClickHouse's names of errors begin that are about a row and not about the store."""


class UnknownTableError(CollectorError):
    """No table of that name takes rows."""

    def __init__(self, table: str) -> None:
        super().__init__(f"no table {table[:80]!r} takes rows; these do: {', '.join(DERIVED_TABLES)}")


class OtherStoreError(CollectorError):
    """The rows are for another store than this one."""

    def __init__(self) -> None:
        super().__init__("the rows are for another store than this collector's")


class DerivedRows:
    """The derived tables of a store, for rows to be added; safe to use from several threads."""

    def __init__(self, store: StoreClient) -> None:
        self._store = store

    def store(self, table: str, lines: bytes, store_id: str = "") -> int:
        """Store rows, and return how many they are. The same bytes again are stored once, and told the same.

        Args:
            table: One of `DERIVED_TABLES`.
            lines: One JSON object a line: column to value. Columns with a default may be left out.
            store_id: Which store they are for, as `id_of` has it; '' is whichever this is.

        Raises:
            OtherStoreError: this is another one.
            UnknownTableError: no such table takes rows.
            MalformedRequestError: a line is no such object, or a column does not take its value; none are stored.
            StoreUnavailableError: ClickHouse does not answer, or fails; send it again.
        """
        if table not in DERIVED_TABLES:
            raise UnknownTableError(table)
        numbered = [(number, line) for number, line in enumerate(lines.splitlines(), 1) if line.strip()]
        if len(numbered) > ROWS_MAX:
            raise MalformedRequestError(f"{len(numbered)} rows: send at most {ROWS_MAX} at a time")
        with self._store.using() as client:
            if store_id and store_id != id_of(client):
                raise OtherStoreError
            _check(table, numbered, _columns(client, table))
            if numbered:
                _insert(client, table, numbered, token_of(lines))
        return len(numbered)


def _insert(client: Client, table: str, numbered: list[tuple[int, bytes]], token: str) -> None:
    settings = {name: value for name, value in _INSERT_SETTINGS.items() if name in client.server_settings}
    try:
        client.raw_insert(
            table,
            insert_block=b"\n".join(line for _, line in numbered),
            fmt="JSONEachRow",
            settings={**settings, "insert_deduplication_token": token},
        )
    except ClickHouseError as error:
        _explain(error, numbered)


def _columns(client: Client, table: str) -> dict[str, bool]:
    """The columns a row may have, and whether it must."""
    try:
        rows = client.query("DESCRIBE TABLE {table:Identifier}", parameters={"table": table}).result_rows
    except ClickHouseError as error:
        raise StoreUnavailableError(f"ClickHouse does not know {table} yet: {first_line(error)}") from error
    return {name: kind == "" for name, _, kind, *_ in rows if name != STORED_AT}


def token_of(lines: bytes) -> str:
    """What an insert is known by in its table, so that the same rows are stored once: a hash of the content."""
    return hashlib.blake2b(lines, digest_size=16).hexdigest()


def _check(table: str, numbered: list[tuple[int, bytes]], columns: Mapping[str, bool]) -> None:
    """Find the first line that is no row of that table."""
    required = {name for name, must in columns.items() if must}
    for number, line in numbered:
        row = _object(number, line)
        if unknown := row.keys() - columns.keys():
            raise MalformedRequestError(
                f"line {number}: {table} takes no column {min(unknown)[:80]!r}; its columns are {', '.join(columns)}"
            )
        if missing := required - row.keys():
            raise MalformedRequestError(f"line {number}: column {min(missing)} is missing")


def _object(number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line, parse_int=_integer, parse_constant=_no_number)
    except (ValueError, RecursionError) as wrong:
        raise MalformedRequestError(f"line {number} is not JSON: {first_line(wrong)}") from wrong
    if not isinstance(row, dict):
        raise MalformedRequestError(f"line {number} is no JSON object of columns and values")
    return row


def _integer(digits: str) -> int:
    """ClickHouse takes a longer one, and stores what remains of it."""
    if len(digits) > 20 or (value := int(digits)) not in _INT64:
        raise ValueError(f"{digits[:40]} does not fit into 64 bits")
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _explain(error: ClickHouseError, numbered: list[tuple[int, bytes]]) -> NoReturn:
    """Whose fault it is: a row's, with its line and column, or the store's."""
    text = str(error)
    name = str(getattr(error, "name", None) or "")
    if not name.startswith(_BAD_VALUES):
        raise StoreUnavailableError(f"ClickHouse did not store the rows: {first_line(error)}") from error
    row, column = _OF_A_ROW.search(text), _OF_A_COLUMN.search(text)
    line = numbered[min(int(row[1]), len(numbered)) - 1][0] if row else None
    place = ", ".join(
        part for part in (f"line {line}" if line else "", f"column {column[1]}" if column else "") if part
    )
    raise MalformedRequestError(f"{place or 'a line'}: ClickHouse cannot store the value ({name})") from error
