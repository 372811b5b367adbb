"""What the embedded engine keeps in memory, on the real engine: nothing that nobody wants again."""

import re

import pytest
from clickhouse_connect.driver.client import Client

from collector.acceptance import ReceivedRequest
from collector.allocator import AllocatorPurge
from collector.request_store import RequestStore
from collector.store_client import StoreClient
from tests.fixtures.contract_cases import STORED, request_of
from tests.fixtures.databases import SERVER_URL

PAGE_BYTES = 4096


def kept_bytes(client: Client) -> int:
    """What the allocator holds of freed memory, of all its arenas together."""
    stats = str(client.query("SELECT stats FROM system.jemalloc_stats").first_row[0])
    merged = stats[stats.index("Merged arenas stats") :]
    pages = re.search(r"dirty:\s+\S+\s+(\d+)", merged)
    assert pages, merged[:1000]
    return int(pages[1]) * PAGE_BYTES


@pytest.mark.skipif(bool(SERVER_URL), reason="a server gives memory back by itself")
def test_freed_memory_is_given_back(clickhouse: Client) -> None:
    clickhouse.query("SELECT count() FROM (SELECT number, count() FROM numbers(3000000) GROUP BY number)")
    AllocatorPurge(StoreClient(lambda: clickhouse)).see_to_it()
    assert kept_bytes(clickhouse) < 10e6


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
