"""Real vLLM in processes of its own interpreter, and a real collector that it sends to.

Not among the paths that the main run collects: `make test-vllm` makes the interpreter and runs these.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import clickhouse_connect
import pytest

from tests.fixtures.running import ROOT, running_collector
from tests.vllm.driven import VLLM_PYTHON, Vllm


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Writes a measured figure into the run's output."""

    def write(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}\n")

    return write


@pytest.fixture(scope="session")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vllm]:
    """Real vLLM with a tiny model, and a real collector to send to."""
    if not VLLM_PYTHON.exists():
        pytest.skip(f"vLLM is not installed at {VLLM_PYTHON}: make test-vllm does that")
    directory = tmp_path_factory.mktemp("vllm")
    model = directory / "model"
    subprocess.run(
        [VLLM_PYTHON, ROOT / "tests/vllm/tiny_model.py", model], check=True, capture_output=True, timeout=120
    )
    with running_collector(directory / "data") as addresses:
        client = clickhouse_connect.get_client(dsn=addresses.clickhouse_url)
        yield Vllm(model, directory, addresses, client)
        client.close()


@pytest.fixture(scope="session")
def alone(vllm: Vllm) -> dict[str, Any]:
    """vLLM without an endpoint: the plugin is installed, and silent."""
    return vllm.run("plain_and_ngram", hooks=False)["plain_and_ngram"]  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def recorded(vllm: Vllm) -> dict[str, Any]:
    """The same and more, recorded; every engine core in one process."""
    return vllm.run("plain_and_ngram", "queued", "faults", "overhead", "corners")
