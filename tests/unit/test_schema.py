"""The schema on the real engine."""

from clickhouse_connect.driver.client import Client

from collector.migrations import apply_schema, schema_files
from engine_hooks.contract.execution import EngineResource, GraphExecution


def test_the_columns_of_graph_executions_are_the_contract(clickhouse: Client) -> None:
    columns = clickhouse.query(
        "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'graph_executions'"
    ).result_columns[0]
    expected = {*GraphExecution._fields, *EngineResource._fields, "received_at", "trace_id", "span_id", "cell"}
    assert set(columns) == expected
    assert len(columns) == len(expected)


def test_applying_again_does_nothing(clickhouse: Client) -> None:
    assert apply_schema(clickhouse) == []
    recorded = clickhouse.query("SELECT file_name FROM schema_changes ORDER BY file_name").result_columns[0]
    assert list(recorded) == [change.name for change in schema_files()]
