"""What the embedded engine keeps in memory, on the real engine: nothing that nobody wants again."""

import os
from pathlib import Path

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client

from collector.acceptance import ReceivedRequest
from collector.store.allocator import OPTIONS, give_back_soon
from collector.store.request_store import RequestStore
from tests.fixtures.contract_cases import STORED, request_of
from tests.fixtures.databases import SERVER_URL
from tests.fixtures.running import running_collector


@pytest.mark.skipif(bool(SERVER_URL), reason="a server has options of its own")
def test_a_collectors_engine_gives_freed_pages_back_soon(tmp_path: Path) -> None:
    """Its allocator's own word: it reads options once, from the environment, as the engine is loaded."""
    with (
        running_collector(tmp_path) as addresses,
        clickhouse_connect.get_client(dsn=addresses.clickhouse_url) as reader,
    ):
        stats = str(reader.query("SELECT stats FROM system.jemalloc_stats").first_row[0])
    assert "arenas.dirty_decay_ms: 500)" in stats


def test_whoever_has_set_options_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPTIONS, "dirty_decay_ms:10000")
    give_back_soon()
    assert os.environ[OPTIONS] == "dirty_decay_ms:10000"


@pytest.mark.skipif(bool(SERVER_URL), reason="a server's configuration is its own")
@pytest.mark.parametrize(("setting", "value"), [("max_compress_block_size", "65536"), ("merge_max_block_size", "1024")])
def test_merges_of_rollups_take_little(clickhouse: Client, setting: str, value: str) -> None:
    """By ClickHouse's defaults one has 70 columns open at once, with 1.25 MB each, and the states of 8,192 rows."""
    parameters = {"name": setting}
    statement = "SELECT value FROM system.merge_tree_settings WHERE name = {name:String}"
    assert clickhouse.query(statement, parameters=parameters).first_row == (value,)


@pytest.mark.skipif(bool(SERVER_URL), reason="others ask the server as well")
def test_storing_a_batch_and_asking_for_its_outcomes_is_not_remembered(clickhouse: Client) -> None:
    def remembered() -> list[int]:
        query = "SELECT value FROM system.metrics WHERE metric = 'QueryConditionCacheEntries'"
        return [int(value) for (value,) in clickhouse.query(query).result_rows]

    store, before = RequestStore(clickhouse), remembered()
    for number in range(3):
        store.insert([ReceivedRequest.of(f"request {number}", request_of(STORED[:1]), 4_000_000_000_000 + number)])
        assert store.outcomes([f"request {number}"])
    assert remembered() == before
