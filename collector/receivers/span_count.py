"""Counting a request's spans without making objects of them: a span of two bytes takes a hundred once it is parsed."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from collector.acceptance import MalformedRequestError
from collector.receivers.answers import RequestTooLargeError

_PATH: Final = (1, 2, 2)
"""Field numbers from the request to its spans: resource_spans, scope_spans, spans."""
_SPAN_BYTES_MIN: Final = 2
_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
_SPAN_TAG: Final = _PATH[-1] << 3 | _LENGTH_DELIMITED


def check_spans(request: bytes, limit: int) -> None:
    """Refuse more spans than so many.

    Raises:
        RequestTooLargeError: there are more.
        MalformedRequestError: this is no message of protobuf, where it has to be looked into. What passes may still be none.
    """
    if len(request) <= limit * _SPAN_BYTES_MIN or _spans_at_most(request) <= limit:
        return
    count = 0
    try:
        for _ in _nested(request, 0, len(request), _PATH):
            count += 1
            if count > limit:
                raise RequestTooLargeError(f"the request holds more than {limit} spans: export in smaller batches")
    except IndexError as error:
        raise MalformedRequestError("the body is not a protobuf ExportTraceServiceRequest") from error


def _spans_at_most(request: bytes) -> int:
    """As many bytes as a span could begin with: a quarter of the time of finding the spans. The highest bit says only
    that a number goes on, which that of a tag may do for nothing."""
    return int(np.count_nonzero((np.frombuffer(request, np.uint8) & 0x7F) == _SPAN_TAG))


def _nested(data: bytes, at: int, end: int, path: tuple[int, ...]) -> Iterator[None]:
    """One item for each field that this path of field numbers leads to."""
    while at < end:
        tag, at = _varint(data, at)
        start, at = _value(data, at, tag & 7)
        if at > end:
            raise IndexError
        if tag == path[0] << 3 | _LENGTH_DELIMITED:
            if len(path) == 1:
                yield
            else:
                yield from _nested(data, start, at, path[1:])


def _value(data: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """Where the value of a field begins and ends."""
    if wire_type == _LENGTH_DELIMITED:
        length, at = _varint(data, at)
        return at, at + length
    if wire_type == _VARINT:
        return at, _varint(data, at)[1]
    if wire_type in (_FIXED32, _FIXED64):
        return at, at + (4 if wire_type == _FIXED32 else 8)
    raise IndexError  # Groups, which OTLP has none of.


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    number = byte & 0x7F
    for shift in range(7, 70, 7):
        at += 1
        byte = data[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at + 1
    raise IndexError
