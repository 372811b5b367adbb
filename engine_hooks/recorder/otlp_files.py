"""Files of length-delimited OTLP requests, each message after its length as a varint; gzipped where named `.gz`."""

import gzip
import os
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from google.protobuf.proto import serialize_length_prefixed
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def write_requests(file: Path, requests: Iterable[ExportTraceServiceRequest]) -> None:
    """Write a file whole or not at all. The same requests give the same bytes.

    Raises `OSError` where it cannot be written.
    """
    content = BytesIO()
    for request in requests:
        serialize_length_prefixed(request, content)
    body = content.getvalue()
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_bytes(gzip.compress(body, mtime=0) if file.suffix == ".gz" else body)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
