"""Running one admitted query on a connection of its own, piece by piece."""

import threading
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from chdb.state.sqlitelike import Connection

from collector.sql_endpoint.connections import assign, quoted
from collector.sql_endpoint.failures import QueryError, engine_failure
from collector.sql_endpoint.guard import Guard, Statement
from collector.sql_endpoint.limits import QueryLimits

# Merging expressions costs a long statement an eighth of its planning, and comparing what is joined by AND with each other up
# to a fourth; they gain nothing here.
_PLANNING = {
    "implicit_select": "0",
    "query_plan_merge_expressions": "0",
    "optimize_and_compare_chain": "0",
    "asterisk_include_alias_columns": "1",
}
# Each piece the engine streams is a whole output of its own: only formats without head and tail can be joined.
_STREAMED = frozenset({"Native", "RowBinary", "TabSeparated", "TSV", "TabSeparatedRaw", "TSVRaw", "CSV", "JSONEachRow"})
_BINARY = frozenset(
    {"Arrow", "ArrowStream", "Parquet", "ORC", "Avro", "Native", "RowBinary", "RowBinaryWithNamesAndTypes"}
)
# Settings that give such a format a head or a tail.
_FRAMING = ("extremes", "output_format_json_array_of_rows", "output_format_csv_")


class Query(NamedTuple):
    """What a client asks."""

    sql: str
    database: str
    parameters: Mapping[str, str] = {}
    """Values of `{name:Type}` as ClickHouse's HTTP protocol escapes them."""
    settings: Mapping[str, str] = {}
    """Checked already."""
    default_format: str = "TabSeparated"


class Piece(NamedTuple):
    """A part of a result, and what was read so far."""

    data: bytes
    read_rows: int
    read_bytes: int
    result_rows: int


class _Stream(Protocol):
    """The engine's streamed result."""

    def fetch(self) -> Any: ...


class Execution:
    """One query under way. Opening a connection costs 0.4 ms, so each query has its own, and nothing that a client
    sets can outlive it.

    `begin`, `next` and `close` block and belong to worker threads; `kill` may come from any thread at any time.
    """

    def __init__(self, connection_string: str, guard: Guard, limits: QueryLimits) -> None:
        self._connection_string = connection_string
        self._guard = guard
        self._limits = limits
        self._lock = threading.Lock()
        self._mark = f"/* {uuid.uuid4().hex} */"
        self._killed = threading.Event()
        self._connection: Connection | None = None
        self._stream: _Stream | None = None
        self._streamed_bytes = 0
        self.format = ""

    def begin(self, query: Query) -> Piece | None:
        """Check and start it, and return the first piece; None when the result is empty.

        Raises:
            QueryError: refused, or failed.
        """
        with self._lock:
            try:
                statement = self._guard.admit(query.sql, query.database, query.parameters.values())
                connection = self._connection = Connection(self._connection_string)
                connection.query(f"USE {quoted(query.database, '`')}", "TSV")
                self.format = self._output_format(statement, query)
                streamed = statement.can_be_streamed and self.format in _STREAMED and not _is_framed(query)
                self._settle(connection, query, streamed)
                return self._start(connection, query, streamed)
            except (RuntimeError, ValueError) as error:
                raise engine_failure(error) from error

    def next(self) -> Piece | None:
        """The next piece, None at the end.

        Raises:
            QueryError: it failed on the way, or was killed.
        """
        with self._lock:
            if self._killed.is_set():
                raise QueryError("QUERY_WAS_CANCELLED", "Query was cancelled")
            if self._stream is None:
                return None
            try:
                piece = _piece(self._stream.fetch())
            except (RuntimeError, ValueError) as error:
                raise engine_failure(error) from error
            self._count(piece)
            return piece

    def _count(self, piece: Piece | None) -> None:
        self._streamed_bytes += len(piece.data) if piece else 0
        if self._streamed_bytes > (limit := self._limits.streamed_bytes):
            raise QueryError("TOO_MANY_ROWS_OR_BYTES", f"Limit for result exceeded, max bytes: {limit}")

    def kill(self) -> None:
        """Make the engine give it up, wherever it is."""
        self._killed.set()
        with Connection(self._connection_string) as other:
            other.query(f"KILL QUERY WHERE startsWith(query, '{self._mark}') ASYNC", "TSV")

    def close(self) -> None:
        """Give its connection back, after the piece under way. Closing again does nothing."""
        with self._lock:
            connection, self._connection, self._stream = self._connection, None, None
            if connection is not None:
                connection.close()

    def _settle(self, connection: Connection, query: Query, streamed: bool) -> None:
        """Bound what it may take, and freeze: read-only 2 lets a statement tighten what the guard lets it."""
        if streamed:
            bounds = self._limits.settings()
        elif self.format in _BINARY:
            bounds = self._limits.settings_of_whole_result()
        else:
            bounds = self._limits.settings_of_whole_text()
        assign(connection, {**_PLANNING, **bounds, "readonly": "2", **query.settings})

    def _output_format(self, statement: Statement, query: Query) -> str:
        named = statement.format or query.default_format
        if named not in self._guard.formats:
            raise QueryError("UNKNOWN_FORMAT", f"Unknown format {named}")
        return named

    def _start(self, connection: Connection, query: Query, streamed: bool) -> Piece | None:
        if self._killed.is_set():
            raise QueryError("QUERY_WAS_CANCELLED", "Query was cancelled")
        sql, parameters = f"{self._mark} {query.sql}", dict(query.parameters)
        if not streamed:
            return _piece(connection.query(sql, self.format, params=parameters))
        stream: _Stream = connection.send_query(sql, self.format, params=parameters)
        self._stream = stream
        return _piece(stream.fetch())


def _is_framed(query: Query) -> bool:
    """Whether a format without head and tail gets one this time."""
    return any(name.startswith(_FRAMING) for name in query.settings)


def _piece(result: Any) -> Piece | None:
    if result is None:
        return None
    return Piece(result.bytes(), result.storage_rows_read(), result.storage_bytes_read(), result.rows_read())
