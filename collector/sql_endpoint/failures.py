"""What a query can fail with, as ClickHouse says it: a code, a name, a line of text, an HTTP status.

CollectorError
└── QueryError
"""

import re

from collector.errors import CollectorError

_CODE = re.compile(r"Code: (\d+)\. DB::Exception: ")
_NAME = re.compile(r"\s*\(([A-Z][A-Z0-9_]+)\)\s*$")
_VERSION = re.compile(r"\s*\(version [^)]*\)\.?\s*$")

# ClickHouse's own table: src/Server/HTTP/exceptionCodeToHTTPStatus.cpp. Everything else is 500.
_STATUS_OF_NAME = {
    "REQUIRED_PASSWORD": 401,
    **dict.fromkeys(("UNKNOWN_USER", "WRONG_PASSWORD", "AUTHENTICATION_FAILED", "ACCESS_DENIED"), 403),
    **dict.fromkeys(
        (
            "BAD_ARGUMENTS",
            "CANNOT_COMPILE_REGEXP",
            "CANNOT_PARSE_DATE",
            "CANNOT_PARSE_DATETIME",
            "CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING",
            "CANNOT_PARSE_ESCAPE_SEQUENCE",
            "CANNOT_PARSE_INPUT_ASSERTION_FAILED",
            "CANNOT_PARSE_IPV4",
            "CANNOT_PARSE_IPV6",
            "CANNOT_PARSE_NUMBER",
            "CANNOT_PARSE_QUOTED_STRING",
            "CANNOT_PARSE_TEXT",
            "CANNOT_PARSE_UUID",
            "DUPLICATE_COLUMN",
            "ILLEGAL_COLUMN",
            "INCORRECT_DATA",
            "SYNTAX_ERROR",
            "THERE_IS_NO_COLUMN",
            "TOO_BIG_AST",
            "TOO_DEEP_AST",
            "TYPE_MISMATCH",
            "UNEXPECTED_AST_STRUCTURE",
            "UNKNOWN_ELEMENT_IN_AST",
            "UNKNOWN_TYPE_OF_AST_NODE",
            "VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE",
        ),
        400,
    ),
    **dict.fromkeys(
        (
            "UNKNOWN_AGGREGATE_FUNCTION",
            "UNKNOWN_DATABASE",
            "UNKNOWN_DATABASE_ENGINE",
            "UNKNOWN_DIRECTION_OF_SORTING",
            "UNKNOWN_FORMAT",
            "UNKNOWN_FUNCTION",
            "UNKNOWN_IDENTIFIER",
            "UNKNOWN_ROLE",
            "UNKNOWN_SETTING",
            "UNKNOWN_STORAGE",
            "UNKNOWN_TABLE",
            "UNKNOWN_TYPE",
            "UNKNOWN_TYPE_OF_QUERY",
        ),
        404,
    ),
    "TIMEOUT_EXCEEDED": 408,
    "QUERY_IS_TOO_LARGE": 413,
    "NOT_IMPLEMENTED": 501,
    "SOCKET_TIMEOUT": 503,
    "CANNOT_OPEN_FILE": 503,
    "CANNOT_SCHEDULE_TASK": 503,
    # Not in ClickHouse's table (500 there); 503 is what clients take for "later".
    "TOO_MANY_SIMULTANEOUS_QUERIES": 503,
}

_CODE_OF_NAME = {
    "BAD_ARGUMENTS": 36,
    "NOT_IMPLEMENTED": 48,
    "SYNTAX_ERROR": 62,
    "UNKNOWN_FORMAT": 73,
    "UNKNOWN_COMPRESSION_METHOD": 89,
    "READONLY": 164,
    "TOO_MANY_SIMULTANEOUS_QUERIES": 202,
    "QUERY_IS_TOO_LARGE": 229,
    "CANNOT_DECOMPRESS": 271,
    "SOCKET_TIMEOUT": 209,
    "SESSION_NOT_FOUND": 372,
    "QUERY_WAS_CANCELLED": 394,
    "TOO_MANY_ROWS_OR_BYTES": 396,
    "FUNCTION_NOT_ALLOWED": 446,
    "SETTING_CONSTRAINT_VIOLATION": 452,
    "ACCESS_DENIED": 497,
    "AUTHENTICATION_FAILED": 516,
    "UNKNOWN_EXCEPTION": 1002,
}


class QueryError(CollectorError):
    """A query that is refused, or that the engine gave up on."""

    def __init__(self, name: str, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.name = name
        self.code = _CODE_OF_NAME[name] if code is None else code

    @property
    def status(self) -> int:
        """The HTTP status a ClickHouse server would answer with."""
        return _STATUS_OF_NAME.get(self.name, 500)

    def body(self, version: str) -> str:
        """The text a ClickHouse server would answer with."""
        return f"Code: {self.code}. DB::Exception: {self} ({self.name}) (version {version})\n"


def engine_failure(error: Exception) -> QueryError:
    """The failure in an error of the embedded engine, which repeats code and name when it wraps its own errors."""
    text = str(error)
    codes = list(_CODE.finditer(text))
    if not codes:
        return QueryError("UNKNOWN_EXCEPTION", text.strip() or type(error).__name__)
    message, name = text[codes[-1].end() :].strip(), ""
    while found := _NAME.search(message) or _VERSION.search(message):
        name = found[1] if found.re is _NAME else name
        message = message[: found.start()]
    return QueryError(name or "UNKNOWN_EXCEPTION", message, int(codes[-1][1]))
