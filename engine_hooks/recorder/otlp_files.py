"""Files of length-delimited OTLP requests, each message after its length as a varint; gzipped where named `.gz`."""

import gzip
from collections.abc import Iterable
from pathlib import Path

from engine_hooks.recorder.encoder import Request
from engine_hooks.recorder.wire import varint
from engine_hooks.whole_file import write_whole


def write_requests(file: Path, requests: Iterable[Request]) -> None:
    """Write a file whole or not at all. The same requests give the same bytes.

    Raises `OSError` where it cannot be written.
    """
    body = b"".join([varint(len(request.body)) + request.body for request in requests])
    write_whole(file, gzip.compress(body, mtime=0) if file.suffix == ".gz" else body)
