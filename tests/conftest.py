"""What tests share: one embedded engine for each pytest process, a fresh database for each test, the labelled cases."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from collector.store.clickhouse import connect, open_store
from tests.fixtures.databases import SERVER_URL, database, read_only_url

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
    with database(store):
        yield store


@pytest.fixture
def clickhouse_url(clickhouse: Client, data_dir: Path) -> Iterator[str]:
    """The URL of that database: of the read-only endpoint over the embedded engine, or of the server."""
    with read_only_url(str(clickhouse.database), data_dir) as url:
        yield url
