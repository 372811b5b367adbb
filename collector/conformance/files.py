"""Files of OTLP requests, however they were written.

- OTLP/JSON: one document, or one a line as the OpenTelemetry Collector's file exporter writes them;
- protobuf: one request, requests after their length as a varint (`tachograph simulate cell --output`),
  or after their length in four bytes (the file exporter's `format: proto`);
- any of them gzipped.

Read in pieces: no more than one request is held at a time.
"""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from collector.acceptance import MalformedRequestError
from collector.conformance.errors import ConformanceError
from collector.conformance.json_faults import fault_of
from collector.decoding.otlp_json import protobuf_from_json
from collector.decoding.wire import spans_of

REQUEST_BYTES_MAX: Final = 64 * 1024**2
_GZIP: Final = b"\x1f\x8b"
_PEEKED: Final = 64 * 1024
_KINETO: Final = re.compile(rb'"traceEvents"\s*:')
_SQLITE: Final = b"SQLite format 3\x00"
_RESOURCE_SPANS: Final = b"\x0a"
"""What a request in protobuf begins with: the tag of its first field."""


class FileRequest(NamedTuple):
    """One request of a file, in protobuf."""

    where: str
    request: bytes


def check_readable(file: Path) -> None:
    """Whether a file is there, and may be read.

    Raises:
        ConformanceError: it is not.
    """
    with _speaking_of(file):
        file.open("rb").close()


def requests_in(file: Path) -> Iterator[FileRequest]:
    """Every request of a file.

    Raises:
        ConformanceError: it cannot be opened, or what is in it is no OTLP. Requests before that were given out.
    """
    with _speaking_of(file), file.open("rb") as opened:
        yield from _read(file, opened)


@contextmanager
def _speaking_of(file: Path) -> Iterator[None]:
    """What goes wrong with the file within becomes one line that names it."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConformanceError(f"{file}: {why}") from error


def _read(file: Path, opened: BinaryIO) -> Iterator[FileRequest]:
    is_gzip = opened.read(2) == _GZIP
    opened.seek(0)
    content = cast("BinaryIO", gzip.GzipFile(fileobj=opened)) if is_gzip else opened
    beginning = content.read(_PEEKED)
    content.seek(0)
    if not beginning:
        raise ConformanceError(f"{file} is empty")
    if beginning.startswith(_SQLITE) or (_is_json(beginning) and _KINETO.search(beginning)):
        raise ConformanceError(f"{file} is a profiler's trace, no OTLP: `tachograph import` reads it")
    try:
        for place, request in _pieces(content, beginning):
            yield FileRequest(f"{file}{place}", request)
    except MalformedRequestError as error:
        raise ConformanceError(f"{file}{error}") from error


def _pieces(content: BinaryIO, beginning: bytes) -> Iterator[tuple[str, bytes]]:
    """Each request with its place in the file; a `MalformedRequestError` begins with the place."""
    if _is_json(beginning):
        return _json(content)
    if beginning[0] == 0:
        return _prefixed(content, _big_endian)
    if beginning[:1] == _RESOURCE_SPANS and beginning[1:2] != _RESOURCE_SPANS:
        return _whole(content)
    if _after_varint(beginning) == _RESOURCE_SPANS:
        return _prefixed(content, _varint)
    raise MalformedRequestError(" is neither OTLP/JSON nor OTLP in protobuf, plain or gzipped")


def _is_json(beginning: bytes) -> bool:
    """A brace alone may be a length in protobuf: a quote or another brace follows it in JSON."""
    text = beginning.lstrip()
    return text[:1] == b"{" and text[1:].lstrip()[:1] in (b'"', b"}", b"")


def _after_varint(beginning: bytes) -> bytes:
    last = next((at for at, byte in enumerate(beginning[:10]) if byte < 0x80), 10)
    return beginning[last + 1 : last + 2]


def _json(content: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """A document a line; a first line that is none by itself begins one that is the whole file."""
    number = 0
    while line := content.readline(REQUEST_BYTES_MAX + 1):
        number += 1
        _check_size(len(line), f" line {number}")
        if not line.strip():
            continue
        try:
            request = protobuf_from_json(line)
        except MalformedRequestError as error:
            if number > 1 or not content.peek(1):  # type: ignore[attr-defined]
                raise MalformedRequestError(_fault(line, number, error)) from error
            rest = content.read(REQUEST_BYTES_MAX + 1)
            _check_size(len(rest), "")
            yield "", _whole_json(line + rest)
            return
        yield f" line {number}", request


def _whole_json(document: bytes) -> bytes:
    try:
        return protobuf_from_json(document)
    except MalformedRequestError as error:
        raise MalformedRequestError(_fault(document, 1, error)) from error


def _fault(document: bytes, first_line: int, error: MalformedRequestError) -> str:
    """What is wrong with a document that begins in this line of its file, and where in the file."""
    fault = fault_of(document)
    if fault is None:  # It is JSON, of another content.
        return f" line {first_line}: {error}"
    return f" line {first_line + fault.line - 1} column {fault.column}: {fault.what}"


def _whole(content: BinaryIO) -> Iterator[tuple[str, bytes]]:
    request = content.read(REQUEST_BYTES_MAX + 1)
    _check_size(len(request), "")
    _check(request, "")
    yield "", request


def _prefixed(content: BinaryIO, length_of: Callable[[BinaryIO], int | None]) -> Iterator[tuple[str, bytes]]:
    number = 0
    while (size := length_of(content)) is not None:
        number += 1
        place = f" request {number}"
        _check_size(size, place)
        request = content.read(size)
        if len(request) < size:
            raise MalformedRequestError(f"{place}: the file is cut off")
        _check(request, place)
        yield place, request


def _big_endian(content: BinaryIO) -> int | None:
    """The next length in four bytes; none at the end of the file."""
    length = content.read(4)
    if length and len(length) < 4:
        raise MalformedRequestError(": the file is cut off")
    return int.from_bytes(length, "big") if length else None


def _varint(content: BinaryIO) -> int | None:
    """The next length as a varint; none at the end of the file."""
    length = 0
    for shift in range(0, 70, 7):
        byte = content.read(1)
        if not byte:
            break
        length |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return length
    if shift == 0:
        return None
    raise MalformedRequestError(": the file is cut off, or holds something else in between")


def _check(request: bytes, place: str) -> None:
    try:
        spans_of(request)
    except MalformedRequestError as error:
        raise MalformedRequestError(f"{place}: {str(error).replace('the body', 'it')}") from error


def _check_size(size: int, place: str) -> None:
    if size > REQUEST_BYTES_MAX:
        raise MalformedRequestError(f"{place}: a request of more than {REQUEST_BYTES_MAX // 1024**2} MiB")
