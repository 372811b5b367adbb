"""Requests compressed, each a frame of LZ4: OTLP names every attribute of every span, and shrinks to a tenth and less.

Compressing takes a fifth of the time of parsing, and less than what it saves where a request is written to disk, and
again where it is sent to a ClickHouse server, which reads frames one after another as it reads one (`Content-Encoding: lz4`).
"""

from typing import Final

import lz4.frame

ENCODING: Final = "lz4"
"""How HTTP names it."""
_MAGIC: Final = b"\x04\x22\x4d\x18"
"""What a frame begins with, and no message of protobuf: there is no field 0."""


def packed(data: bytes) -> bytes:
    """One frame."""
    frame: bytes = lz4.frame.compress(data, store_size=True)
    return frame


def unpacked(frame: bytes) -> bytes:
    """What is in a frame of `packed`."""
    data: bytes = lz4.frame.decompress(frame)
    return data


def is_packed(data: bytes) -> bool:
    """Whether these bytes, a frame or a message of protobuf, are a frame."""
    return data.startswith(_MAGIC)
