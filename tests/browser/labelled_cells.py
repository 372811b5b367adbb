"""The labelled cells in a store that pages can read."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clickhouse_connect.driver.client import Client

from collector.acceptance import ReceivedRequest
from collector.decoding.wire import request_id_of
from collector.store.request_store import RequestStore
from tests.fixtures.databases import database, read_only_url
from tests.fixtures.otlp_files import requests_in

FEW = ("r001", "r008", "r014", "r043", "r049")
"""Stuck and rightly so, healthy, stuck by inflation, no speculative graph, inflated but not stuck."""
STUCK_CELL = "bench-r014"
STUCK_INSTANCE = "73a6748e-5b83-4a73-9ce5-2c0275bde263"


def store_cells(client: Client, cases: Path, names: tuple[str, ...] = FEW) -> None:
    """Put these cells into the client's database, as the collector would."""
    now_ms = time.time_ns() // 1_000_000
    requests = [request for name in names for request in requests_in(cases / "cells" / f"{name}.otlp.gz")]
    RequestStore(client).insert([ReceivedRequest.of(request_id_of(body), body, now_ms) for body in requests])


@contextmanager
def labelled_store(store: Client, data_dir: Path, cases: Path, names: tuple[str, ...] = FEW) -> Iterator[str]:
    """The URL of a fresh database with labelled cells in it."""
    with database(store) as name:
        store_cells(store, cases, names)
        with read_only_url(name, data_dir) as url:
            yield url
