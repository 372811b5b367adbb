"""What the embedded engine has freed goes back to the system, on the real engine."""

import re

import pytest
from clickhouse_connect.driver.client import Client

from collector.allocator import AllocatorPurge
from collector.store_client import StoreClient
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
