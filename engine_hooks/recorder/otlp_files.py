"""Files of length-delimited OTLP requests, each message after its length as a varint; gzipped where named `.gz`."""

import gzip
import os
from collections.abc import Iterable
from pathlib import Path

from engine_hooks.recorder.encoder import Request
from engine_hooks.recorder.wire import varint


def write_requests(file: Path, requests: Iterable[Request]) -> None:
    """Write a file whole or not at all. The same requests give the same bytes.

    Raises `OSError` where it cannot be written.
    """
    body = b"".join([varint(len(request.body)) + request.body for request in requests])
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_bytes(gzip.compress(body, mtime=0) if file.suffix == ".gz" else body)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
