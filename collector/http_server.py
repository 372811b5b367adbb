"""An ASGI application served by uvicorn in a thread of its own, on a socket bound beforehand."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final, NamedTuple, cast

import h11
import uvicorn
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from collector.access.certificate import Certificate
from collector.errors import CollectorError

_START_TIMEOUT_S = 10.0
_NO_ROOM: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)

_STOPPING: Final = {"error": "the collector is stopping"}


class ConnectionLimits(NamedTuple):
    """What connections may take before a request of theirs is read."""

    connections: int = 512
    """At once; a further one is told to come back (503) and closed."""
    spare: int = 64
    """Beside them, where a server has paths that are `always` answered, each for one request."""
    spare_head_s: float = 2.0
    """From opening a spare connection to the end of its headers."""
    spare_s: float = 10.0
    """From opening it to its end, whether its answer was read or not."""
    turned_away_s: float = 2.0
    """From turning a connection away to its end: over TLS, a client that does not agree to its close keeps it so long."""
    head_bytes: int = 64 * 1024
    """Request line and headers."""
    head_s: float = 10.0
    """From opening a connection, or from the first byte of a further request, to the end of its headers."""
    idle_s: float = 75.0
    """Between two requests of a kept connection: longer than exporters pause."""


def count_nothing(_reason: str) -> None:
    """Hears of closed connections for a server that nobody watches."""


class HttpServer:
    """One server. `start` it once, `stop` it once; the socket is closed with it.

    Whoever asks (GET) for a path of `always` is answered though there are as many connections as may be: a supervisor
    restarts what does not answer. `count` hears why a connection was closed before it asked anything: `connections`, `slow_head`.
    """

    def __init__(
        self,
        app: Any,
        listening: socket.socket,
        name: str,
        *,
        certificate: Certificate | None = None,
        limits: ConnectionLimits | None = None,
        count: Callable[[str], object] = count_nothing,
        always: Collection[str] = (),
    ) -> None:
        self._socket = listening
        limits = limits or ConnectionLimits()
        connection = cast("type[asyncio.Protocol]", partial(_Connection, limits=limits, count=count, always=always))
        config = uvicorn.Config(
            _AnsweredAtStop(app),
            http=connection,
            ws="none",
            log_config=None,
            log_level="error",  # Whatever a scanner sends would be a line each.
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=limits.head_bytes,
            timeout_keep_alive=cast("int", limits.idle_s),
            timeout_graceful_shutdown=1,
            ssl_context_factory=(lambda _config, _default: certificate.server_context()) if certificate else None,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, name=name, daemon=True
        )

    def start(self) -> None:
        """Serve; returns once connections are answered.

        Raises:
            CollectorError: it did not come up.
        """
        self._thread.start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise CollectorError(f"the HTTP server on {self._socket.getsockname()} did not start")
            time.sleep(0.005)

    def stop(self) -> None:
        """Take no new requests; those under way have a second to be answered, and are told to come back (503) after it."""
        self._server.should_exit = True
        self._thread.join(5.0)
        self._socket.close()


class _AnsweredAtStop:
    """An application whose requests are answered though the server stops under them: to come back (503), and why."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def sending(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except asyncio.CancelledError:
            if scope["type"] != "http":
                raise
            if not is_begun:
                await JSONResponse(_STOPPING, 503, {"Retry-After": "1"})(scope, receive, send)


class _Spare:
    """The application on a connection too many: paths that are always answered, once; all else is told to come back."""

    def __init__(self, app: ASGIApp, always: Collection[str], count: Callable[[str], object]) -> None:
        self._app = app
        self._always = always
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        if scope["path"] in self._always and scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, closing)
            return
        self._count("connections")
        await Response(status_code=503, headers={"Retry-After": "1"})(scope, receive, closing)


class _Connection(H11Protocol):
    """uvicorn's HTTP/1.1, less its patience: it waits for ever for the headers of a request, on any number of connections."""

    def __init__(
        self,
        *args: Any,
        limits: ConnectionLimits,
        count: Callable[[str], object],
        always: Collection[str],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits
        self._count = count
        self._always = always
        self._is_spare = False
        self._head_due: asyncio.TimerHandle | None = None
        self._end_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        too_many = len(self.connections) - self._limits.connections
        if too_many > (self._limits.spare if self._always else 0):
            self._turn_away()
            return
        if too_many > 0:
            self._is_spare = True
            self.app = _Spare(self.app, self._always, self._count)
            self._end_due = self.loop.call_later(self._limits.spare_s, transport.abort)
        self._time_head()

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():
            super().data_received(data)
            self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timing()
        if self._end_due is not None:
            self._end_due.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        super().shutdown()
        # Over TLS a close waits for the client to agree, which a client that keeps its connection does late.
        if self.transport.is_closing() and not self.transport.get_write_buffer_size():
            self.transport.abort()

    def _time_head(self) -> None:
        """The clock runs while headers are incomplete, however slowly they come, or the rest of a body that was
        answered before its end."""
        if self.conn.their_state is not h11.IDLE and self.conn.our_state is not h11.DONE:
            self._stop_timing()
        elif self._head_due is None:
            within_s = min(self._limits.head_s, self._limits.spare_head_s) if self._is_spare else self._limits.head_s
            self._head_due = self.loop.call_later(within_s, self._turn_away if self._is_spare else self._give_up)

    def _stop_timing(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _give_up(self) -> None:
        self._count("slow_head")
        self.transport.abort()

    def _turn_away(self) -> None:
        self._count("connections")
        self.transport.write(_NO_ROOM)
        self.transport.close()
        if self._end_due is not None:
            self._end_due.cancel()
        self._end_due = self.loop.call_later(self._limits.turned_away_s, self.transport.abort)
