"""The content encodings of ClickHouse's HTTP protocol that clients use: gzip, deflate, lz4 (frames), zstd; and the
blocks of its own making that `compress=1` asks for, as ClickHouse's JDBC driver does unless told otherwise."""

import struct
import sys
import zlib
from collections.abc import Callable
from typing import Protocol

import lz4.block
import lz4.frame
from clickhouse_cityhash.cityhash import CityHash128

from collector.sql_endpoint.failures import QueryError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# ClickHouse's default, http_zlib_compression_level.
_ZLIB_LEVEL = 3

BLOCKS = "blocks"
"""What `compressor` knows ClickHouse's own blocks by."""
_BLOCK_BYTES = 1024**2
_LZ4_METHOD = 0x82
_BLOCK_HEAD_BYTES = 9


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


class _BlockCompressor:
    """ClickHouse's own: blocks of lz4, each under a checksum. They are no content encoding, and no header names them.

    Source: https://clickhouse.com/docs/en/native-protocol/compression/
    """

    def compress(self, data: bytes, /) -> bytes:
        return b"".join(_block(data[at : at + _BLOCK_BYTES]) for at in range(0, len(data), _BLOCK_BYTES))

    def flush(self) -> bytes:
        return b""


def _block(data: bytes) -> bytes:
    packed: bytes = lz4.block.compress(data, store_size=False)
    block = struct.pack("<BII", _LZ4_METHOD, _BLOCK_HEAD_BYTES + len(packed), len(data)) + packed
    checksum: int = CityHash128(block)
    return struct.pack("<QQ", checksum >> 64, checksum & (1 << 64) - 1) + block


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
    """A compressor for an encoding that `accepted_encoding` returned, or for `BLOCKS`."""
    return _BlockCompressor() if encoding == BLOCKS else _COMPRESSORS[encoding]()


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
