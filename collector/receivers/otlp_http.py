"""OTLP over HTTP, in protobuf and JSON; further doors share the port."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final, NamedTuple

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from collector.acceptance import AcceptanceError, Acceptor, Outcome, StoreUnavailableError, TryAgainLaterError
from collector.decoding.otlp_json import protobuf_from_json
from collector.metrics import CollectorMetrics
from collector.receivers.answers import (
    REQUEST_BYTES_MAX,
    WrongContentTypeError,
    http_status,
    response_of,
    status_of,
)
from collector.receivers.http_body import gunzip, read_body

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
_TRACES: Final = "/v1/traces"
_LONGEST_WAIT_S: Final = 60.0
_BODIES_MAX: Final = 16
"""Bodies in memory at a time, so that they have a bound; further senders wait, unread."""


class _Body(NamedTuple):
    """A request as it came over HTTP."""

    content: bytes
    is_json: bool
    is_gzip: bool


class HttpReceiver:
    """The ASGI application of the OTLP HTTP port.

    `routes` are further doors of the same port.
    """

    def __init__(self, acceptor: Acceptor, metrics: CollectorMetrics, routes: Sequence[Route] = ()) -> None:
        self._acceptor = acceptor
        self._metrics = metrics
        self._bodies = asyncio.Semaphore(_BODIES_MAX)
        self.app = Starlette(
            routes=[
                Route(_TRACES, self._export, methods=["POST"]),
                *routes,
            ],
            exception_handlers={HTTPException: self._no_such_door},
        )

    async def _export(self, request: Request) -> Response:
        size = 0
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S):
                async with self._bodies:
                    body = await _body_of(request)
                    size = len(body.content)
                    stored = await asyncio.to_thread(self._accept, body)
                outcome = await asyncio.wrap_future(stored)
            response = _encoded(request, response_of(outcome), 200)
        except AcceptanceError as error:
            response = _refusal(request, error)
        except TimeoutError:
            response = _refusal(request, StoreUnavailableError("the request is not stored yet"))
        except ClientDisconnect:
            response = Response(status_code=400)  # Nobody reads it; it is counted.
        self._metrics.count_request("http", str(response.status_code), size)
        return response

    def _accept(self, body: _Body) -> "Future[Outcome]":
        content = gunzip(body.content, REQUEST_BYTES_MAX) if body.is_gzip else body.content
        return self._acceptor.accept(protobuf_from_json(content) if body.is_json else content, "http")

    async def _no_such_door(self, request: Request, error: Exception) -> Response:
        """404 and 405."""
        assert isinstance(error, HTTPException)  # noqa: S101 # the only kind it is registered for
        if request.url.path == _TRACES:
            self._metrics.count_request("http", str(error.status_code), 0)
        message = f"{request.method} {request.url.path}: {error.detail}; traces go to POST {_TRACES}"
        return JSONResponse({"code": 12, "message": message}, error.status_code, dict(error.headers or {}))


async def _body_of(request: Request) -> _Body:
    """The body, if it is of a kind that can be read.

    Raises:
        WrongContentTypeError: it is not.
        RequestTooLargeError: it exceeds the limit as it comes.
    """
    kind, encoding = _content_type(request), request.headers.get("content-encoding", "identity").strip().lower()
    # An unreadable body is read as well: a client that still sends would not see the answer.
    content = await read_body(request.stream(), REQUEST_BYTES_MAX)
    if kind not in (PROTOBUF, JSON):
        raise WrongContentTypeError(f"content type {kind or 'missing'}: send {PROTOBUF} or {JSON}")
    if encoding not in ("identity", "gzip"):
        raise WrongContentTypeError(f"content encoding {encoding}: send gzip, or none")
    return _Body(content, kind == JSON, encoding == "gzip")


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _refusal(request: Request, error: AcceptanceError) -> Response:
    response = _encoded(request, status_of(error), http_status(error))
    if isinstance(error, TryAgainLaterError):
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response


def _encoded(request: Request, message: Message, status: int) -> Response:
    """An answer in the content type of the request; in JSON, which people can read, where that is another."""
    if _content_type(request) == PROTOBUF:
        return Response(message.SerializeToString(), status, media_type=PROTOBUF)
    return Response(MessageToJson(message, indent=None), status, media_type=JSON)
