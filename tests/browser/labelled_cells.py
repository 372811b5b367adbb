"""The labelled cells in a store that pages can read."""

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from clickhouse_connect.driver.client import Client

from collector.clickhouse import connection_string
from collector.decoding.wire import request_id_of
from collector.migrations import apply_schema
from collector.request_store import ReceivedRequest, RequestStore
from collector.sql_endpoint.server import serving_sql
from tests.fixtures.otlp_files import requests_in

FEW = ("r001", "r008", "r014", "r043", "r049")
"""Stuck and rightly so, healthy, stuck by inflation, no speculative graph, inflated but not stuck."""
STUCK_CELL = "bench-r014"
STUCK_INSTANCE = "73a6748e-5b83-4a73-9ce5-2c0275bde263"


def store_cells(client: Client, cases: Path, names: tuple[str, ...] = FEW) -> None:
    """Put these cells into the client's database, as the collector would."""
    now_ms = time.time_ns() // 1_000_000
    requests = [request for name in names for request in requests_in(cases / "cells" / f"{name}.otlp.gz")]
    RequestStore(client).insert([ReceivedRequest(request_id_of(body), body, now_ms) for body in requests])


@contextmanager
def database(store: Client) -> Iterator[str]:
    """A fresh database with the schema, which the client uses meanwhile; its name."""
    kept = store.database
    name = f"test_{uuid.uuid4().hex[:12]}"
    store.command(f"CREATE DATABASE {name}")
    store.database = name
    try:
        apply_schema(store)
        yield name
    finally:
        store.database = kept
        store.command(f"DROP DATABASE {name} SYNC")


@contextmanager
def read_only_url(name: str, data_dir: Path) -> Iterator[str]:
    """The URL of a database: of the endpoint over the embedded engine, or of the server that tests run against."""
    if server := os.environ.get("TACHOGRAPH_TEST_CLICKHOUSE_URL"):
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        return
    with serving_sql(connection_string(data_dir), name) as url:
        yield url


@contextmanager
def labelled_store(store: Client, data_dir: Path, cases: Path, names: tuple[str, ...] = FEW) -> Iterator[str]:
    """The URL of a fresh database with labelled cells in it."""
    with database(store) as name:
        store_cells(store, cases, names)
        with read_only_url(name, data_dir) as url:
            yield url
