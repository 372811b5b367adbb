"""An insert whose token ClickHouse noted and whose rows it lost, on the real engine: it is noticed, and made again."""

import pytest
from clickhouse_connect.driver.client import Client

from collector.acceptance import ReceivedRequest
from collector.store.request_store import RequestStore
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


def test_made_anew_it_counts_once(clickhouse: Client) -> None:
    """Its outcome was recorded with the executions that were lost, and is again with those that are stored now."""
    store = RequestStore(clickhouse)
    batch = [ReceivedRequest.of(f"{n}", request_of([case]), ARRIVED_UNIX_MS + n) for n, case in enumerate(STORED[:3])]
    store.insert(batch, "token")
    first = store.outcomes(one.request_id for one in batch)
    clickhouse.command("ALTER TABLE graph_executions DELETE WHERE true SETTINGS mutations_sync = 2")
    assert store.forget(batch[:2])
    store.insert(batch[:2], "another token")
    assert store.outcomes(one.request_id for one in batch) == first
    assert count(clickhouse) == sum(first[one.request_id].stored for one in batch[:2]) > 0


def test_what_is_there_after_all_is_not_stored_again(clickhouse: Client) -> None:
    store = RequestStore(clickhouse)
    batch = [ReceivedRequest.of("one", request_of(STORED[:3]), ARRIVED_UNIX_MS)]
    store.insert(batch, "token")
    stored, outcomes = count(clickhouse), store.outcomes(["one"])
    clickhouse.command("ALTER TABLE request_outcomes DELETE WHERE true SETTINGS mutations_sync = 2")
    store.insert(batch, "token")
    assert store.outcomes(["one"]) == {}, "the token passes for a repetition"
    assert store.forget(batch)
    store.insert(batch, "another token")
    assert (count(clickhouse), store.outcomes(["one"])) == (stored, outcomes)


ROLLUPS = ("cell_graphs", "cell_windows", "engine_seconds")


def rolled_up(client: Client) -> list[int]:
    total = "SELECT sum(executions) FROM {rollup:Identifier}"
    return [int(str(client.command(total, parameters={"rollup": rollup}))) for rollup in ROLLUPS]


@pytest.mark.parametrize(
    ("cut_off", "mended"),
    [
        (["fill_cell_graphs"], ["cell_graphs", "cell_windows"]),
        (["fill_cell_windows"], ["cell_windows"]),
        (["fill_engine_seconds", "fill_cell_graphs"], list(ROLLUPS)),
    ],
)
def test_what_views_had_no_time_for_is_made_up_for(clickhouse: Client, cut_off: list[str], mended: list[str]) -> None:
    """The views that were not reached when ClickHouse went down are away for the first attempt."""
    store = RequestStore(clickhouse)
    batch = [ReceivedRequest.of("one", request_of(STORED[:1]), ARRIVED_UNIX_MS)]
    made_by = clickhouse.query(
        "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name IN {views:Array(String)}",
        parameters={"views": cut_off},
    ).result_columns
    for view in cut_off:
        clickhouse.command("DROP VIEW {view:Identifier}", parameters={"view": view})
    store.insert(batch, "token")
    for statement in made_by[0]:
        clickhouse.command(statement)
    store.insert(batch, "token")
    stored = count(clickhouse)
    assert rolled_up(clickhouse) != [stored] * 3
    assert store.mend(batch, "token") == mended
    assert rolled_up(clickhouse) == [stored] * 3
    assert store.mend(batch, "token") == []
    assert rolled_up(clickhouse) == [stored] * 3
