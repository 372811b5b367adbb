"""Only single statements that read, and read nothing but the store.

Three independent fences. The engine's own user has no right to files, sockets or other sources
(`collector.store.clickhouse`). The engine's own classifier names the kind of a statement. And the statement, written
anew by the engine's own parser, so that comments, quoting and escapes hide nothing, is searched for functions that
reach out of the engine and for settings that a client may not change. Decision record 0005 says why readonly
alone does not do.
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from chdb.agents.safety import SAFE_TABLE_FUNCTIONS
from chdb.state.sqlitelike import Connection

from collector.sql_endpoint.connections import connected
from collector.sql_endpoint.failures import QueryError, engine_failure
from collector.sql_endpoint.limits import QueryLimits, check_setting

# Strings of SQL that run, and scalar functions that open files and connections or write to the process's log.
_REACHING_FUNCTIONS = re.compile(
    r"file|eval|python|executable|ai[a-z]+|zookeeper\w*|logtrace|showcertificate|catboostevaluate"
)
_HARMLESS_TABLE_FUNCTIONS = SAFE_TABLE_FUNCTIONS | {"sqlstandardvalues"}

# They show the process, not the store; one interrupts its threads, others open files. Rights do not hold there: the engine
# gives its system tables to everybody.
_TABLES_OF_THE_PROCESS = frozenset(
    {
        "stack_trace",
        "symbols",
        "jemalloc_profile_text",
        "jemalloc_sampled_allocations",
        "named_collections",
        "certificates",
        "schema_inference_cache",
        "user_directories",
    }
)

_TOKEN = re.compile(
    r"""
    (?P<string>'(?:[^'\\]|\\.|'')*')
    | (?P<quoted>`(?:[^`\\]|\\.|``)*` | "(?:[^"\\]|\\.|"")*")
    | (?P<word>[^\W\d]\w*)
    | (?P<number>-?\d[\w.]*)
    | (?P<other>\S)
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")

_REMEMBERED = 256
_REMEMBERED_CHARACTERS_MAX = 64 * 1024
"""Pages and alert rules ask the same statements again and again, the longest of 30,000 characters. To judge one of those
takes 10 ms and more, as long as the engine needs for its answer."""


class Token(NamedTuple):
    kind: str
    text: str


class Statement(NamedTuple):
    """A statement that may run."""

    format: str | None
    """The output format it names, if it does."""
    can_be_streamed: bool
    """A SELECT without totals: the engine streams no other statement, and leaves totals out of a stream."""


class Guard:
    """Judges statements, each text once as long as it is remembered. Holds what the engine knows of its table functions
    and output formats, which never change while it runs."""

    def __init__(self, connection_string: str, limits: QueryLimits) -> None:
        self._connection_string = connection_string
        self._limits = limits
        with Connection(connection_string) as connection:
            named = _column(connection, "SELECT lower(name) FROM system.table_functions")
            self.formats = _column(connection, "SELECT name FROM system.formats WHERE is_output")
        self._sources = named - _HARMLESS_TABLE_FUNCTIONS
        self._remembered = lru_cache(_REMEMBERED)(self._judged)

    def admit(self, sql: str, database: str, parameters: Collection[str] = ()) -> Statement:
        """Let a statement through; `parameters` are the values that its placeholders take.

        Raises:
            QueryError: it is not one statement, does not parse, would change or control
                something, or would reach out of the engine.
        """
        judge = self._remembered if len(sql) <= _REMEMBERED_CHARACTERS_MAX else self._judged
        statement = judge(sql, database)
        _check_names({*parameters})
        return statement

    def _judged(self, sql: str, database: str) -> Statement:
        """By its text alone. What is refused is not remembered."""
        with connected(self._connection_string, {"implicit_select": "0", **self._limits.settings()}) as connection:
            _admit_kind(connection, sql, database)
            tokens = list(_tokens(_rewritten(connection, sql)))
        for name in _functions(tokens):
            if name.lower() in self._sources or _REACHING_FUNCTIONS.fullmatch(name.lower()):
                raise QueryError("FUNCTION_NOT_ALLOWED", f"Function {name} reaches out of the store: not allowed here")
        _check_tables(tokens, database)
        for name, value in _settings(tokens):
            check_setting(name, value, self._limits)
        selects = bool(tokens) and tokens[0].text in ("SELECT", "WITH", "(")
        return Statement(_format(tokens), selects and Token("word", "TOTALS") not in tokens)


def _check_names(names: set[str]) -> None:
    """No table that shows the process."""
    if hidden := names & _TABLES_OF_THE_PROCESS:
        raise QueryError("ACCESS_DENIED", f"Not enough privileges: {', '.join(sorted(hidden))} is not shown here")


def _check_tables(tokens: list[Token], database: str) -> None:
    """Keep to the store: no table that shows the process, by its name or by a pattern that may match it."""
    _check_names({token.text.strip('`"') for token in tokens if token.kind in ("word", "quoted")})
    for at, token in enumerate(tokens):
        if token.text.strip('`"') == "merge" and _is(tokens, at + 1, "(") and not _is_plain(tokens, at + 2, database):
            raise QueryError("FUNCTION_NOT_ALLOWED", "Function merge takes a database by its name here, and not system")


def _is_plain(tokens: list[Token], at: int, database: str) -> bool:
    """Whether this first argument of `merge` names a database of the store, as it stands or as the present one."""
    arguments = "".join(token.text for token in tokens[at : at + 4])
    named = tokens[at].text.strip("'`\"").lower() if at < len(tokens) else "system"
    if _is(tokens, at + 1, ")") or arguments.startswith("currentDatabase(),"):
        named = database.lower()
    elif not _is(tokens, at + 1, ",") or tokens[at].kind == "other":
        return False
    return named not in ("system", "information_schema")


def _column(connection: Connection, sql: str) -> frozenset[str]:
    return frozenset(connection.query(sql, "TSV").bytes().decode().split())


def _admit_kind(connection: Connection, sql: str, database: str) -> None:
    try:
        report = connection._conn.classify_query(sql, database)
    except RuntimeError as error:
        raise engine_failure(error) from error
    kind, count = report["query_class"].name, report["statement_count"]
    if kind == "UNKNOWN" and not sql.strip():
        raise QueryError("SYNTAX_ERROR", "Empty query")
    if kind not in ("READ_ONLY", "UNKNOWN"):
        raise QueryError("READONLY", f"Cannot execute query in readonly mode: this endpoint only reads ({kind})")
    if count > 1:
        raise QueryError("SYNTAX_ERROR", "Syntax error (Multi-statements are not allowed)")
    if kind == "UNKNOWN":
        _rewritten(connection, sql)  # Says what is wrong with it.
        raise QueryError("READONLY", "Cannot execute query in readonly mode: a statement of unknown kind")


def _rewritten(connection: Connection, sql: str) -> str:
    """The statement as the engine's parser understands it: no comments, one way of quoting. Runs nothing."""
    try:
        # Hexadecimal, because a parameter's text would be unescaped.
        text = connection.query(
            "SELECT formatQuery(unhex({sql:String}))", "RawBLOB", params={"sql": sql.encode().hex()}
        )
    except Exception as error:
        failure = engine_failure(error)
        message = str(failure).split(": In scope SELECT formatQuery(")[0]
        raise QueryError(failure.name, message, failure.code) from error
    rewritten: bytes = text.bytes()
    return rewritten.decode(errors="replace")


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        yield Token(str(match.lastgroup), match[0])


def _functions(tokens: list[Token]) -> Iterator[str]:
    """Names that are called, and keywords that look like it: before a parenthesis, or after APPLY."""
    for before, token, after in zip([Token("", ""), *tokens], tokens, [*tokens[1:], Token("", "")], strict=False):
        if token.kind in ("word", "quoted") and (after.text == "(" or before.text == "APPLY"):
            yield token.text.strip('`"')


def _settings(tokens: list[Token]) -> Iterator[tuple[str, str]]:
    """Every name = value of every SETTINGS clause.

    Raises:
        QueryError: a clause that cannot be read to its end.
    """
    for start, token in enumerate(tokens):
        at = start + 1
        more = token == Token("word", "SETTINGS") and not _is(tokens, start - 1, "SHOW") and _is_name(tokens, at)
        while more:
            if not _is(tokens, at + 1, "="):
                raise QueryError("READONLY", f"Cannot modify '{tokens[at].text}' setting in readonly mode")
            end = _value_end(tokens, at + 2)
            yield tokens[at].text.strip('`"'), "".join(each.text for each in tokens[at + 2 : end]).strip("'")
            more = _is(tokens, end, ",")
            at = end + 1


def _is(tokens: list[Token], at: int, text: str) -> bool:
    return 0 <= at < len(tokens) and tokens[at].text == text


def _is_name(tokens: list[Token], at: int) -> bool:
    return at < len(tokens) and tokens[at].kind in ("word", "quoted")


def _value_end(tokens: list[Token], at: int) -> int:
    """Where the value that begins here ends: one token, or all up to its closing bracket."""
    depth = 0
    for end in range(at, len(tokens)):
        depth += (tokens[end].text in _OPENING) - (tokens[end].text in _CLOSING)
        follows = tokens[end + 1].text if end + 1 < len(tokens) else ""
        if depth <= 0 and follows not in _OPENING and tokens[end].text != "-":
            return end + 1
    return len(tokens)


def _format(tokens: list[Token]) -> str | None:
    """The format that the statement names outside of any bracket."""
    depth, named = 0, None
    for token, after in pairwise(tokens):
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth == 0 and token == Token("word", "FORMAT") and after.kind == "word":
            named = after.text
    return named
