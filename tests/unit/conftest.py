"""What tests share: labelled cells in a store, what is ended after a test, and that no answer of one is shown in the next."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from tests.browser.labelled_cells import FEW, labelled_store


@pytest.fixture(scope="module")
def labelled_url(request: pytest.FixtureRequest, store: Client, data_dir: Path, cases: Path) -> Iterator[str]:
    """A store with the labelled cells that the module's `CELLS` names, or else with `FEW`."""
    with labelled_store(store, data_dir, cases, getattr(request.module, "CELLS", FEW)) as url:
        yield url


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    """What pages keep for all viewers is forgotten; where no page was opened, nothing is kept."""
    yield
    if "streamlit" in sys.modules:
        sys.modules["streamlit"].cache_data.clear()


@pytest.fixture
def running() -> Iterator[ExitStack]:
    """What a test started and has to end."""
    with ExitStack() as stack:
        yield stack
