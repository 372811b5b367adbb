"""What tests share: one embedded engine for each pytest process, a fresh database for each test, the labelled cases."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from collector.clickhouse import connect, open_store
from collector.migrations import apply_schema

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def cases() -> Path:
    """The inputs with right values beside the checkout."""
    path = ROOT.parent / "shared" / "cases"
    if not path.is_dir():
        pytest.skip(f"the labelled cases are not at {path}")
    return path


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The engine under test: embedded in this process, or the server that TACHOGRAPH_TEST_CLICKHOUSE_URL names.

    A process can open one embedded engine at a time: a test that needs another runs it in a process of its own.
    """
    url = os.environ.get("TACHOGRAPH_TEST_CLICKHOUSE_URL")
    client = connect(url) if url else open_store(tmp_path_factory.mktemp("store"))
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
