"""The endpoint as an ASGI application: `/ping`, and queries at `/`."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple, TypeVar

from chdb.state.sqlitelike import Connection
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from collector.access.access import Access, Count, count_nothing
from collector.sql_endpoint.admission import NotAdmittedError, admit
from collector.sql_endpoint.answer import Body, Progress, StalledError, late_failure
from collector.sql_endpoint.compression import BLOCKS
from collector.sql_endpoint.execution import Execution
from collector.sql_endpoint.failures import QueryError
from collector.sql_endpoint.guard import Guard
from collector.sql_endpoint.limits import QueryLimits
from collector.sql_endpoint.requests import QueryRequest, read_request

T = TypeVar("T")


# What is held back, so that a query failing early is answered by a status. ClickHouse holds back 1 MiB too; with
# wait_end_of_query it holds back all, here so much: then the answer begins, and a failure ends it as it does there.
_HELD_BACK_BYTES = 1024**2
_HELD_BACK_WAITING_BYTES = 16 * 1024**2
_CLOSE_S = 3
_KILL_AGAIN_S = 0.5
_CONTENT_TYPES = {
    "CSV": "text/csv; charset=UTF-8; header=absent",
    "CSVWithNames": "text/csv; charset=UTF-8; header=present",
    "TabSeparated": "text/tab-separated-values; charset=UTF-8",
    "TSV": "text/tab-separated-values; charset=UTF-8",
    "JSON": "application/json; charset=UTF-8",
    "JSONCompact": "application/json; charset=UTF-8",
    "JSONEachRow": "application/x-ndjson; charset=UTF-8",
    "Native": "application/octet-stream",
    "RowBinary": "application/octet-stream",
    "Arrow": "application/octet-stream",
    "ArrowStream": "application/octet-stream",
    "Parquet": "application/octet-stream",
}


class _Identity(NamedTuple):
    """What every answer tells of the engine."""

    version: str
    timezone: str
    host_name: str


class SqlEndpoint:
    """Runs queries, a bounded number at once, each in worker threads.

    Reads the engine that is open on the connection string; a database that a request does not name is the one given.
    """

    def __init__(
        self,
        connection_string: str,
        database: str,
        limits: QueryLimits,
        access: Access | None = None,
        count: Count = count_nothing,
        *,
        observe_s: Callable[[float], object] | None = None,
    ) -> None:
        self.database = database
        self._observe_s = observe_s or (lambda _: None)
        self.limits = limits
        self._access = access or Access()
        self._count = count
        with Connection(connection_string) as connection:
            guard = Guard(connection_string, limits)
            told = connection.query("SELECT version(), timezone(), hostName()", "TSV").bytes().decode().strip()
        self._identity = _Identity(*told.split("\t"))
        self._begin_execution = partial(Execution, connection_string, guard, limits)
        self._turns = asyncio.Semaphore(limits.queries_at_once)
        # Two more than queries, so that a kill never waits behind what it kills.
        self._threads = ThreadPoolExecutor(limits.queries_at_once + 2, thread_name_prefix="sql-endpoint")
        self._running: set[Execution] = set()

    def kill_all(self) -> None:
        """Make every query under way fail soon. May be called from any thread."""
        for execution in list(self._running):
            execution.kill()

    async def close(self) -> None:
        """Wait until what was killed has given its connection back."""
        deadline = time.monotonic() + _CLOSE_S
        while self._running and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        self._threads.shutdown(wait=not self._running)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one query request."""
        # An answer that is left incomplete makes the server close the connection.
        began = time.monotonic()
        try:
            with suppress(StalledError):
                await self._answer(scope, receive, send)
        finally:
            self._observe_s(time.monotonic() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        query_id = ""
        try:
            request = Request(scope, receive)
            self._admit(request)
            asked = await read_request(request, self.database, self.limits)
            query_id = asked.query_id
            async with self._turn():
                await self._run_while_connected(asked, receive, send)
        except QueryError as failure:
            response = PlainTextResponse(
                failure.body(self._identity.version),
                status_code=failure.status,
                headers={**self._headers(query_id), "X-ClickHouse-Exception-Code": str(failure.code)},
            )
            await response(scope, receive, send)

    def _admit(self, request: Request) -> None:
        try:
            admit(request, self._access)
        except NotAdmittedError as refused:
            self._count("sql", refused.reason)
            raise

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        try:
            await asyncio.wait_for(self._turns.acquire(), self.limits.wait_s)
        except TimeoutError as error:
            raise QueryError(
                "TOO_MANY_SIMULTANEOUS_QUERIES",
                f"Too many simultaneous queries. Maximum: {self.limits.queries_at_once}",
            ) from error
        try:
            yield
        finally:
            self._turns.release()

    async def _run_while_connected(self, asked: QueryRequest, receive: Receive, send: Send) -> None:
        """Run it; when the client leaves, kill it. Its turn ends when its connection is given back."""
        execution = self._begin_execution()
        self._running.add(execution)
        running = asyncio.ensure_future(self._run(execution, asked, send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            try:
                # Again, because a kill does not meet a query that is about to start.
                while not running.done():
                    await self._in_thread(execution.kill)
                    await asyncio.wait({running}, timeout=_KILL_AGAIN_S)
                await running
            finally:
                await self._in_thread(execution.close)
                self._running.discard(execution)

    async def _run(self, execution: Execution, asked: QueryRequest, send: Send) -> None:
        progress = Progress()
        held, more = await self._first_pieces(execution, asked, progress)
        tag = secrets.token_hex(8)
        headers = {
            **self._headers(asked.query_id),
            "X-ClickHouse-Format": execution.format,
            "X-ClickHouse-Summary": progress.summary(),
            "X-ClickHouse-Exception-Tag": tag,
            "Content-Type": _CONTENT_TYPES.get(execution.format, "text/plain; charset=UTF-8"),
            **({"Content-Encoding": asked.encoding} if asked.encoding not in (None, BLOCKS) else {}),
        }
        body = Body(send, asked.encoding, self._in_thread, self.limits.send_s)
        await body.start(headers)
        await body.write(b"".join(held))
        try:
            while more and (piece := await self._in_thread(execution.next)) is not None:
                await body.write(piece.data)
        except QueryError as failure:
            await body.write(late_failure(failure.body(self._identity.version), tag))
        await body.end()

    async def _first_pieces(
        self, execution: Execution, asked: QueryRequest, progress: Progress
    ) -> tuple[list[bytes], bool]:
        """What is held back before the answer begins, and whether there is more."""
        held: list[bytes] = []
        bound = _HELD_BACK_WAITING_BYTES if asked.wait_end_of_query else _HELD_BACK_BYTES
        piece = await self._in_thread(partial(execution.begin, asked.query))
        while piece is not None:
            progress.add(piece)
            held.append(piece.data)
            if sum(map(len, held)) >= bound:
                return held, True
            piece = await self._in_thread(execution.next)
        return held, False

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _headers(self, query_id: str) -> dict[str, str]:
        return {
            "X-ClickHouse-Query-Id": query_id,
            "X-ClickHouse-Timezone": self._identity.timezone,
            "X-ClickHouse-Server-Display-Name": self._identity.host_name,
        }


async def _left(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def application(endpoint: SqlEndpoint) -> Starlette:
    """The ASGI application that answers from an endpoint."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(endpoint.kill_all)
        await endpoint.close()

    return Starlette(
        routes=[
            Route("/ping", _ping, methods=["GET", "HEAD"]),
            Route("/", _Answering(endpoint), methods=["GET", "POST"]),
        ],
        lifespan=lifespan,
    )


class _Answering:
    """An ASGI application of its own class, so that the router takes it as one."""

    def __init__(self, endpoint: SqlEndpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint.answer(scope, receive, send)


async def _ping(_: Request) -> Response:
    return PlainTextResponse("Ok.\n")
