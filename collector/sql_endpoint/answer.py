"""An answer on its way to a client: its body, its summary, and the mark of a failure after it began."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol, TypeVar

from starlette.types import Send

from collector.sql_endpoint.compression import compressor
from collector.sql_endpoint.execution import Piece

T = TypeVar("T")


class InThread(Protocol):
    """Runs blocking work in a worker thread."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


class Progress:
    """What `X-ClickHouse-Summary` tells."""

    def __init__(self) -> None:
        self._began = time.monotonic_ns()
        self._read_rows = self._read_bytes = self._result_rows = self._result_bytes = 0

    def add(self, piece: Piece) -> None:
        self._read_rows = max(self._read_rows, piece.read_rows)
        self._read_bytes = max(self._read_bytes, piece.read_bytes)
        self._result_rows += piece.result_rows
        self._result_bytes += len(piece.data)

    def summary(self) -> str:
        counts = {
            "read_rows": self._read_rows,
            "read_bytes": self._read_bytes,
            "written_rows": 0,
            "written_bytes": 0,
            "total_rows_to_read": 0,
            "result_rows": self._result_rows,
            "result_bytes": self._result_bytes,
            "elapsed_ns": time.monotonic_ns() - self._began,
        }
        return json.dumps({name: str(count) for name, count in counts.items()})


class StalledError(Exception):
    """The client takes nothing any more."""


class Body:
    """An answer's body on its way, compressed in a worker thread."""

    def __init__(self, send: Send, encoding: str | None, in_thread: InThread, send_s: float) -> None:
        self._send = send
        self._encode = compressor(encoding) if encoding else None
        self._in_thread = in_thread
        self._send_s = send_s

    async def start(self, headers: Mapping[str, str]) -> None:
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": raw})

    async def write(self, data: bytes) -> None:
        """Send a piece.

        Raises:
            StalledError: the client did not take it in time.
        """
        if self._encode is not None:
            data = await self._in_thread(partial(self._encode.compress, data))
        await self._part(data, more=True)

    async def end(self) -> None:
        await self._part(self._encode.flush() if self._encode else b"", more=False)

    async def _part(self, data: bytes, more: bool) -> None:
        sent = self._send({"type": "http.response.body", "body": data, "more_body": more})
        try:
            await asyncio.wait_for(sent, self._send_s)
        except TimeoutError as error:
            raise StalledError from error


def late_failure(message: str, tag: str) -> bytes:
    """How ClickHouse (25.11 and later) marks a failure in an answer that has begun."""
    text = message.encode()
    marker = b"__exception__"
    return b"\r\n%b\r\n%b\r\n%b%d %b\r\n%b\r\n" % (marker, tag.encode(), text, len(text), tag.encode(), marker)
