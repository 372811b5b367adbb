"""How many inserts the embedded engine's store remembers, also one that was made when it was ten times as many."""

from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.httpclient import HttpClient

from collector.acceptance import ReceivedRequest
from collector.store.clickhouse import open_store
from collector.store.migrations import applied_changes, schema_files
from collector.store.opening import StoreOpening, prepare_embedded, schema_for
from collector.store.request_store import RequestStore
from collector.store.table_rules import rules_found
from tests.fixtures.contract_cases import STORED, request_of
from tests.fixtures.databases import SERVER_URL

FILLED_BY_EACH_INSERT = {"graph_executions", "request_outcomes", "cell_graphs", "cell_windows", "engine_seconds"}
ARRIVED_UNIX_MS = 4_000_000_000_000


@pytest.mark.skipif(bool(SERVER_URL), reason="a server remembers as many as before")
def test_an_older_store_remembers_fewer_from_now_on_and_those_that_it_knows(clickhouse: Client, data_dir: Path) -> None:
    before = rules_found(clickhouse)
    assert {before[table].window for table in FILLED_BY_EACH_INSERT} == {10_000}
    batch = [ReceivedRequest.of("one", request_of(STORED[:1]), ARRIVED_UNIX_MS)]
    RequestStore(clickhouse).insert(batch, "token")
    opening = StoreOpening(lambda: open_store(data_dir, str(clickhouse.database)))
    for _ in range(2):
        opening().insert(batch, "token")
        found = rules_found(clickhouse)
        assert {table for table in found if found[table] != before[table]} == FILLED_BY_EACH_INSERT
        assert {found[table].window for table in FILLED_BY_EACH_INSERT} == {1_000}
    opening.close()
    assert clickhouse.query("SELECT count(), sum(stored) FROM request_outcomes").first_row == (1, 1)


@pytest.mark.skipif(bool(SERVER_URL), reason="a server is prepared by whoever opens it")
def test_the_embedded_store_is_prepared_at_once(clickhouse: Client) -> None:
    prepare_embedded(clickhouse)
    found = rules_found(clickhouse)
    assert {found[table].window for table in FILLED_BY_EACH_INSERT} == {1_000}
    assert applied_changes(clickhouse).keys() == {file.name for file in schema_files(embedded=True)}


def test_a_server_remembers_as_many_as_before() -> None:
    """Several collectors write to it."""
    assert schema_for(HttpClient.__new__(HttpClient)) == schema_files()
