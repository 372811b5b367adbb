"""OTLP over HTTP, in protobuf and JSON; further doors share the port."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from collector.acceptance import (
    AcceptanceError,
    Acceptor,
    Outcome,
    QueueFullError,
    StoreUnavailableError,
    TryAgainLaterError,
)
from collector.decoding.otlp_json import protobuf_from_json
from collector.receivers.answers import (
    WrongContentTypeError,
    http_status,
    response_of,
    status_of,
)
from collector.receivers.encoding import JSON, PROTOBUF, content_type, encoded
from collector.receivers.http_body import gunzip, read_body
from collector.receivers.limits import DoorLimits
from collector.receivers.span_count import check_spans
from collector.telemetry.metrics import CollectorMetrics

_TRACES: Final = "/v1/traces"
_LONGEST_WAIT_S: Final = 60.0


class _Body(NamedTuple):
    """A request as it came over HTTP."""

    content: bytes
    is_json: bool
    is_gzip: bool


class HttpReceiver:
    """The ASGI application of the OTLP HTTP port.

    `routes` are further doors of the same port.
    """

    def __init__(
        self,
        acceptor: Acceptor,
        metrics: CollectorMetrics,
        routes: Sequence[Route] = (),
        limits: DoorLimits | None = None,
    ) -> None:
        self._acceptor = acceptor
        self._metrics = metrics
        self._limits = limits or DoorLimits()
        self._turns = asyncio.Semaphore(self._limits.requests_at_once)
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
                async with self._turn():
                    body = await self._body_of(request)
                    size = len(body.content)
                    stored = await asyncio.to_thread(self._accept, body)
                outcome = await asyncio.wrap_future(stored)
            response = encoded(request, response_of(outcome), 200)
        except AcceptanceError as error:
            response = _refusal(request, error)
        except TimeoutError:
            response = _refusal(request, StoreUnavailableError("the request is not stored yet"))
        except ClientDisconnect:
            response = Response(status_code=400)  # Nobody reads it; it is counted.
        except asyncio.CancelledError:  # The server stops, and cannot wait longer.
            response = _refusal(request, StoreUnavailableError("the collector is stopping"))
        self._metrics.count_request("http", str(response.status_code), size)
        return response

    def _accept(self, body: _Body) -> "Future[Outcome]":
        content = gunzip(body.content, self._limits.request_bytes) if body.is_gzip else body.content
        content = protobuf_from_json(content) if body.is_json else content
        check_spans(content, self._limits.request_spans)
        return self._acceptor.accept(content, "http")

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One of the requests that may be in memory at a time.

        Raises:
            QueueFullError: none became free in time.
        """
        try:
            await asyncio.wait_for(self._turns.acquire(), self._limits.wait_s)
        except TimeoutError as error:
            raise QueueFullError("too many requests at once") from error
        try:
            yield
        finally:
            self._turns.release()

    async def _body_of(self, request: Request) -> _Body:
        """The body, if it is of a kind that can be read.

        Raises:
            WrongContentTypeError: it is not.
            RequestTooLargeError: it exceeds the limit as it comes.
            SlowBodyError: it does not come.
        """
        kind, encoding = content_type(request), request.headers.get("content-encoding", "identity").strip().lower()
        # An unreadable body is read as well: a client that still sends would not see the answer.
        content = await read_body(request.stream(), self._limits.request_bytes, self._limits.body_s)
        if kind not in (PROTOBUF, JSON):
            raise WrongContentTypeError(f"content type {kind or 'missing'}: send {PROTOBUF} or {JSON}")
        if encoding not in ("identity", "gzip"):
            raise WrongContentTypeError(f"content encoding {encoding}: send gzip, or none")
        return _Body(content, kind == JSON, encoding == "gzip")

    async def _no_such_door(self, request: Request, error: Exception) -> Response:
        """404 and 405."""
        assert isinstance(error, HTTPException)  # noqa: S101 # the only kind it is registered for
        if request.url.path == _TRACES:
            self._metrics.count_request("http", str(error.status_code), 0)
        message = f"{request.method} {request.url.path}: {error.detail}; traces go to POST {_TRACES}"
        return JSONResponse({"code": 12, "message": message}, error.status_code, dict(error.headers or {}))


def _refusal(request: Request, error: AcceptanceError) -> Response:
    response = encoded(request, status_of(error), http_status(error))
    if isinstance(error, TryAgainLaterError):
        response.headers["Retry-After"] = str(error.retry_after_s)
    return response
