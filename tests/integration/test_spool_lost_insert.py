"""An insert whose token ClickHouse noted and whose rows it lost, on the real engine: it is noticed, and made again."""

from clickhouse_connect.driver.client import Client

from collector.acceptance import ReceivedRequest
from collector.request_store import RequestStore
from tests.fixtures.contract_cases import STORED, request_of

ARRIVED_UNIX_MS = 4_000_000_000_000


def count(client: Client) -> int:
    return int(str(client.command("SELECT count() FROM graph_executions")))


def test_what_was_noted_and_lost_is_noticed_and_stored(clickhouse: Client) -> None:
    store = RequestStore(clickhouse)
    batch = [ReceivedRequest.of("one", request_of(STORED[:1]), ARRIVED_UNIX_MS)]
    store.insert(batch, "token")
    assert not store.has_lost(batch)
    clickhouse.command("ALTER TABLE graph_executions DELETE WHERE true SETTINGS mutations_sync = 2")
    assert count(clickhouse) == 0
    store.insert(batch, "token")
    assert count(clickhouse) == 0, "the token passes for a repetition"
    assert store.has_lost(batch)
    store.insert(batch, "another token")
    assert count(clickhouse) == 1
