"""The schema on a server that is reached by URL: a real one where one is named, else a stand-in."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.store import clickhouse
from collector.store.clickhouse import connect
from collector.store.migrations import apply_schema, schema_files
from tests.conftest import ROOT
from tests.fixtures.databases import SERVER_URL


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The URL of a server, without a database."""
    if SERVER_URL:
        yield SERVER_URL.rpartition("/")[0] if SERVER_URL.count("/") > 2 else SERVER_URL
        return
    command = [sys.executable, "-m", "tests.fixtures.stand_in_server", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def test_the_schema_is_made_in_the_database_the_url_names(server: str) -> None:
    name = f"fleet_{uuid.uuid4().hex[:8]}"
    with connect(f"{server}/{name}") as client:
        assert apply_schema(client) == [change.name for change in schema_files()]
        assert client.query("SELECT currentDatabase(), count() FROM graph_executions").first_row == (name, 0)
    with connect(f"{server}/{name}") as client:
        assert apply_schema(client) == []
        client.insert(
            "graph_executions",
            [["a", b"0" * 16, b"1" * 8]],
            column_names=["service_instance_id", "trace_id", "span_id"],
        )
        assert client.query("SELECT service_instance_id FROM graph_executions").result_rows == [("a",)]
        client.command(f"DROP DATABASE {name} SYNC")


def test_a_statement_may_take_longer_than_a_first_answer(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that works on one sends nothing meanwhile."""
    monkeypatch.setattr(clickhouse, "FIRST_ANSWER_S", 1)
    with connect(f"{server}/default") as client:
        assert client.command("SELECT sleep(1.5)") == 0
