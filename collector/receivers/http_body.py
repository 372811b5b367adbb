"""Reading the body of a request within limits, before and after decompression."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Final

from collector.acceptance import MalformedRequestError
from collector.receivers.answers import RequestTooLargeError, SlowBodyError
from collector.receivers.limits import DoorLimits

_GZIP: Final = 16 + zlib.MAX_WBITS
_DRAINED_MAX: Final = 8
"""An oversized body is read and thrown away up to this many times the limit: a client that still
sends when the connection closes never sees the answer."""


async def read_body(chunks: AsyncIterator[bytes], limit: int, within_s: float = DoorLimits().body_s) -> bytes:
    """All of a body.

    Raises:
        RequestTooLargeError: it is longer than `limit` bytes.
        SlowBodyError: it did not end within so many seconds.
    """
    try:
        async with asyncio.timeout(within_s) as clock:
            return await _all_of(chunks, limit)
    except TimeoutError as error:
        if not clock.expired():
            raise  # Another clock's.
        raise SlowBodyError(f"the body did not arrive within {within_s:g} s") from error


async def _all_of(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    kept: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            kept.clear()
        else:
            kept.append(chunk)
        if size > limit * _DRAINED_MAX:
            break
    if size > limit:
        raise too_large(limit)
    return b"".join(kept)


def too_large(limit: int) -> RequestTooLargeError:
    """What a sender of more bytes than the limit is told."""
    return RequestTooLargeError(f"the request is larger than {limit} bytes: export in smaller batches")


def gunzip(body: bytes, limit: int) -> bytes:
    """A gzipped body, decompressed; it may have several members.

    Raises:
        MalformedRequestError: it is no gzip, or is cut off.
        RequestTooLargeError: decompressed it is longer than `limit` bytes.
    """
    members: list[bytes] = []
    room = limit
    while body or not members:
        member = zlib.decompressobj(_GZIP)
        try:
            members.append(member.decompress(body, room + 1))
        except zlib.error as wrong:
            raise MalformedRequestError(f"the body is not gzip: {wrong}") from wrong
        room -= len(members[-1])
        if room < 0:
            raise too_large(limit)
        if not member.eof:
            raise MalformedRequestError("the body is cut off: its gzip data ends early")
        body = member.unused_data
    return b"".join(members)
