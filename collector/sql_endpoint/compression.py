"""The content encodings of ClickHouse's HTTP protocol that clients use: gzip, deflate, lz4 (frames), zstd."""

import sys
import zlib
from collections.abc import Callable
from typing import Protocol

import lz4.frame

from collector.sql_endpoint.failures import QueryError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# ClickHouse's default, http_zlib_compression_level.
_ZLIB_LEVEL = 3


class Compressor(Protocol):
    """Compresses a body piece by piece."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class Decompressor(Protocol):
    """Decompresses a body, at most so many bytes of it a call."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, /, max_length: int) -> bytes: ...


class _Lz4Compressor:
    """lz4 frames, with the head that the library leaves to its caller."""

    def __init__(self) -> None:
        self._frame = lz4.frame.LZ4FrameCompressor()
        self._head: bytes = self._frame.begin()

    def compress(self, data: bytes, /) -> bytes:
        head, self._head = self._head, b""
        return head + bytes(self._frame.compress(data))

    def flush(self) -> bytes:
        head, self._head = self._head, b""
        return head + bytes(self._frame.flush())


_COMPRESSORS: dict[str, Callable[[], Compressor]] = {
    "gzip": lambda: zlib.compressobj(_ZLIB_LEVEL, wbits=31),
    "deflate": lambda: zlib.compressobj(_ZLIB_LEVEL),
    "lz4": _Lz4Compressor,
    "zstd": zstd.ZstdCompressor,
}
_DECOMPRESSORS: dict[str, Callable[[], Decompressor]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "deflate": zlib.decompressobj,
    "lz4": lz4.frame.LZ4FrameDecompressor,
    "zstd": zstd.ZstdDecompressor,
}


def accepted_encoding(accept_encoding: str) -> str | None:
    """The first encoding of an Accept-Encoding header that can be served."""
    wanted = (part.partition(";")[0].strip().lower() for part in accept_encoding.split(","))
    return next((name for name in wanted if name in _COMPRESSORS), None)


def compressor(encoding: str) -> Compressor:
    """A compressor for an encoding that `accepted_encoding` returned."""
    return _COMPRESSORS[encoding]()


def decompressed(body: bytes, encoding: str, bytes_max: int) -> bytes:
    """A request body without its Content-Encoding.

    Raises:
        QueryError: an unknown encoding, a broken body, or more than so many bytes.
    """
    if encoding in ("", "identity"):
        return body
    if encoding not in _DECOMPRESSORS:
        raise QueryError("UNKNOWN_COMPRESSION_METHOD", f"Unknown compression method {encoding}")
    decompressor = _DECOMPRESSORS[encoding]()
    try:
        plain = decompressor.decompress(body, bytes_max + 1)
    except (zlib.error, RuntimeError, ValueError, EOFError, zstd.ZstdError) as error:
        raise QueryError("CANNOT_DECOMPRESS", f"The body is not {encoding}: {error}") from error
    if len(plain) > bytes_max:
        raise QueryError("QUERY_IS_TOO_LARGE", f"The request body is larger than {bytes_max} bytes")
    if not decompressor.eof:
        raise QueryError("CANNOT_DECOMPRESS", f"The {encoding} body is cut short")
    return plain
