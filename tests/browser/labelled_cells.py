"""The labelled cells as a store has them, for pages to show."""

import gzip
import time
from collections.abc import Iterator
from pathlib import Path

from clickhouse_connect.driver.client import Client

from collector.decoding.wire import request_id_of
from collector.request_store import ReceivedRequest, RequestStore

FEW = ("r001", "r008", "r014", "r043", "r049")
"""Stuck and rightly so, healthy, stuck by inflation, no speculative graph, inflated but not stuck."""


def requests_in(path: Path) -> Iterator[bytes]:
    """The length-delimited requests of a file."""
    body = gzip.decompress(path.read_bytes())
    at = 0
    while at < len(body):
        length, shift = 0, 0
        while True:
            byte = body[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield body[at : at + length]
        at += length


def store_cells(client: Client, cases: Path, names: tuple[str, ...] = FEW) -> None:
    """Put these cells into the client's database, as the collector would."""
    now_ms = time.time_ns() // 1_000_000
    requests = [request for name in names for request in requests_in(cases / "cells" / f"{name}.otlp.gz")]
    RequestStore(client).insert([ReceivedRequest(request_id_of(body), body, now_ms) for body in requests])
