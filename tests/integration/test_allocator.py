"""What the embedded engine keeps in memory, on the real engine: nothing that nobody wants again."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client

from collector.acceptance import ReceivedRequest
from collector.store.allocator import OPTIONS, give_back_soon
from collector.store.request_store import RequestStore
from tests.fixtures.contract_cases import STORED, request_of
from tests.fixtures.databases import SERVER_URL
from tests.fixtures.running import ROOT, running_collector


@pytest.mark.skipif(bool(SERVER_URL), reason="a server has options of its own")
def test_a_collectors_engine_gives_freed_pages_back_soon(tmp_path: Path) -> None:
    """Its allocator's own word: it reads options once, from the environment, as the engine is loaded."""
    with (
        running_collector(tmp_path) as addresses,
        clickhouse_connect.get_client(dsn=addresses.clickhouse_url) as reader,
    ):
        stats = str(reader.query("SELECT stats FROM system.jemalloc_stats").first_row[0])
    assert "arenas.dirty_decay_ms: 500)" in stats
    assert "opt.tcache_max: 4096" in stats
    assert "opt.tcache_nslots_small_max: 20" in stats


_KEEPS_NO_LARGE_PIECE = """
import ctypes
from collector.store.allocator import give_back_soon

class Books(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

give_back_soon()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
libc.mallinfo2.restype = Books
libc.free(libc.malloc(2_000_000))
before = libc.mallinfo2().hblks
libc.malloc(1_000_000)
print(libc.mallinfo2().hblks - before)
"""
"""Whether a piece is mapped for itself although a larger one was freed before."""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="not glibc, or one older than 2.33")
@pytest.mark.parametrize(("options", "mapped"), [({}, "1"), ({"MALLOC_MMAP_THRESHOLD_": "16000000"}, "0")])
def test_large_pieces_go_back_at_once(options: dict[str, str], mapped: str) -> None:
    """glibc's own word. With options of the user's it does as they say."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", _KEEPS_NO_LARGE_PIECE]
    told = subprocess.run(command, env=environment | options, cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == mapped


def test_whoever_has_set_options_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPTIONS, "dirty_decay_ms:10000")
    give_back_soon()
    assert os.environ[OPTIONS] == "dirty_decay_ms:10000"


@pytest.mark.skipif(bool(SERVER_URL), reason="a server's configuration is its own")
@pytest.mark.parametrize(
    ("setting", "value"),
    [("max_compress_block_size", "65536"), ("merge_max_block_size", "1024"), ("auto_statistics_types", "")],
)
def test_merges_take_and_leave_little(clickhouse: Client, setting: str, value: str) -> None:
    """By ClickHouse's defaults one of rollups has 70 columns open at once, with 1.25 MB each, and the states of 8,192 rows;
    and each leaves statistics of all columns, which stay in memory with the part."""
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
