"""What tests share: one embedded engine for each pytest process, a fresh database for each test, the labelled cases."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from clickhouse_connect.driver.client import Client

from collector.clickhouse import connect, connection_string, open_store
from collector.migrations import apply_schema
from collector.sql_endpoint.server import serving_sql

SERVER_URL = os.environ.get("TACHOGRAPH_TEST_CLICKHOUSE_URL", "")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def cases() -> Path:
    """The inputs with right values beside the checkout."""
    path = ROOT.parent / "shared" / "cases"
    if not path.is_dir():
        pytest.skip(f"the labelled cases are not at {path}")
    return path


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this process's embedded engine lies."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="session")
def store(data_dir: Path) -> Iterator[Client]:
    """The engine under test: embedded in this process, or the server that TACHOGRAPH_TEST_CLICKHOUSE_URL names.

    A process can open one embedded engine at a time: a test that needs another runs it in a process of its own.
    """
    client = connect(SERVER_URL) if SERVER_URL else open_store(data_dir)
    yield client
    client.close()


@pytest.fixture
def clickhouse(store: Client) -> Iterator[Client]:
    """A client on a fresh database with the schema applied."""
    kept = store.database
    name = f"test_{uuid.uuid4().hex[:12]}"
    store.command(f"CREATE DATABASE {name}")
    store.database = name
    try:
        apply_schema(store)
        yield store
    finally:
        store.database = kept
        store.command(f"DROP DATABASE {name} SYNC")


@pytest.fixture
def clickhouse_url(clickhouse: Client, data_dir: Path) -> Iterator[str]:
    """The URL of that database: of the read-only endpoint over the embedded engine, or of the server."""
    if SERVER_URL:
        yield urlunsplit(urlsplit(SERVER_URL)._replace(path=f"/{clickhouse.database}"))
        return
    with serving_sql(connection_string(data_dir), str(clickhouse.database)) as url:
        yield url
