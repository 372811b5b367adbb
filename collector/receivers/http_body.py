"""Reading the body of a request within limits, before and after decompression."""

import zlib
from collections.abc import AsyncIterator
from typing import Final

from collector.acceptance import MalformedRequestError
from collector.receivers.answers import RequestTooLargeError

_GZIP: Final = 16 + zlib.MAX_WBITS
_DRAINED_MAX: Final = 8
"""An oversized body is read and thrown away up to this many times the limit: a client that still
sends when the connection closes never sees the answer."""


async def read_body(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    """All of a body.

    Raises:
        RequestTooLargeError: it is longer than `limit` bytes.
    """
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
        raise RequestTooLargeError
    return b"".join(kept)


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
            raise RequestTooLargeError
        if not member.eof:
            raise MalformedRequestError("the body is cut off: its gzip data ends early")
        body = member.unused_data
    return b"".join(members)
