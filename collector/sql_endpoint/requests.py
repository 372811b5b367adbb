"""Reading a query out of an HTTP request, as ClickHouse does.

The statement is the parameter `query` followed by the body, whatever content type the body claims (curl and urllib
call any body a form); only `multipart/form-data` is a form. Sessions are accepted and hold nothing, because nothing
can be changed in one.
"""

import asyncio
import re
import uuid
from collections.abc import Mapping
from typing import NamedTuple

from starlette.requests import ClientDisconnect, Request

from collector.sql_endpoint.compression import BLOCKS, accepted_encoding, decompressed
from collector.sql_endpoint.execution import Query
from collector.sql_endpoint.failures import QueryError
from collector.sql_endpoint.limits import QueryLimits, check_setting

_SETTING_NAME = re.compile(r"[A-Za-z_]\w*")
_QUERY_ID = re.compile(r"[ -~]{1,256}")
# Parameters that are no settings. What a client of this endpoint cannot mean by them is refused below.
_PROTOCOL = frozenset(
    {
        "query",
        "database",
        "default_format",
        "query_id",
        "user",
        "password",
        "session_id",
        "session_timeout",
        "session_check",
        "wait_end_of_query",
        # Asks for a newer Native format; a client looks whether the answer has it.
        "client_protocol_version",
        "compress",
        "decompress",
    }
)


class QueryRequest(NamedTuple):
    """A query, and how its answer is wanted."""

    query: Query
    query_id: str
    encoding: str | None
    """The Content-Encoding of the answer, or `BLOCKS`."""
    wait_end_of_query: bool
    """Rather answer late than begin an answer that may fail on the way."""


async def read_request(request: Request, database: str, limits: QueryLimits) -> QueryRequest:
    """Read and check everything but the statement.

    Raises:
        QueryError: a request ClickHouse would refuse, or one for something that this endpoint does not do.
    """
    fields = dict(request.query_params)
    body = decompressed(
        await _body(request, limits),
        request.headers.get("content-encoding", "").strip().lower(),
        limits.request_bytes,
    )
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        form = await _form(request, body)
        if form.keys() & {"user", "password"}:
            raise QueryError(
                "AUTHENTICATION_FAILED", "User and password belong into headers or the URL, not into a form"
            )
        fields |= form
        body = b""
    _check_protocol(fields)
    settings = {name: value for name, value in fields.items() if _is_setting(name)}
    for name, value in settings.items():
        check_setting(name, value, limits)
    query = Query(
        sql=_statement(fields.get("query", ""), body),
        database=fields.get("database") or request.headers.get("x-clickhouse-database") or database,
        parameters={name.removeprefix("param_"): value for name, value in fields.items() if name.startswith("param_")},
        settings=settings,
        default_format=fields.get("default_format") or request.headers.get("x-clickhouse-format") or "TabSeparated",
    )
    return QueryRequest(
        query=query,
        query_id=_query_id(fields),
        encoding=_encoding(request, fields),
        wait_end_of_query=fields.get("wait_end_of_query", "0") not in ("0", "false"),
    )


def _encoding(request: Request, fields: Mapping[str, str]) -> str | None:
    if fields.get("compress", "0") not in ("0", "false"):
        return BLOCKS
    if fields.get("enable_http_compression", "1") in ("0", "false"):
        return None
    return accepted_encoding(request.headers.get("accept-encoding", ""))


def _is_setting(name: str) -> bool:
    if name in _PROTOCOL or name.startswith("param_"):
        return False
    if not _SETTING_NAME.fullmatch(name):
        raise QueryError("BAD_ARGUMENTS", f"{name!r} is no name of a setting")
    return True


async def _body(request: Request, limits: QueryLimits) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.request_bytes:
                    raise QueryError(
                        "QUERY_IS_TOO_LARGE", f"The request body is larger than {limits.request_bytes} bytes"
                    )
    except TimeoutError as error:
        raise QueryError("SOCKET_TIMEOUT", f"The request body did not arrive within {limits.body_s:g} s") from error
    except ClientDisconnect as error:
        raise QueryError("QUERY_WAS_CANCELLED", "The client left before its request was complete") from error
    return bytes(body)


async def _form(request: Request, body: bytes) -> dict[str, str]:
    """The fields of a multipart body, which clients use for parameters too long for a URL."""

    async def replay() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    async with Request(request.scope, replay).form(max_part_size=max(len(body), 1)) as form:
        fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
        if len(fields) < len(form.multi_items()):
            raise QueryError("NOT_IMPLEMENTED", "External data is not supported by this endpoint")
    return fields


def _statement(query: str, body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise QueryError("BAD_ARGUMENTS", f"The query is not valid UTF-8 at byte {error.start}") from error
    sql = f"{query}\n{text}" if query and text else query or text
    if "\0" in sql:
        raise QueryError("BAD_ARGUMENTS", "The query has a NUL byte in it: write it as \\0 in a string")
    return sql


def _query_id(fields: Mapping[str, str]) -> str:
    query_id = fields.get("query_id") or str(uuid.uuid4())
    if not _QUERY_ID.fullmatch(query_id):
        raise QueryError("BAD_ARGUMENTS", "query_id must be printable ASCII of at most 256 characters")
    return query_id


def _check_protocol(fields: Mapping[str, str]) -> None:
    if fields.get("decompress", "0") != "0":
        raise QueryError("NOT_IMPLEMENTED", "decompress=1 is not supported: use Content-Encoding")
    if fields.get("session_check", "0") != "0":
        raise QueryError("SESSION_NOT_FOUND", "Session not found: sessions hold nothing at a read-only endpoint")
