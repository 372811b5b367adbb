"""The schema on the real engine: it is the contract, it is applied once, and a change to it is noticed."""

import re

import pytest
from clickhouse_connect.driver.client import Client

from collector.store.migrations import SchemaError, SchemaFile, apply_schema, schema_files
from engine_hooks.contract.execution import EngineResource, GraphExecution
from tests.fixtures.databases import database
from tests.fixtures.query_rows import insert, round_of

FIRST = SchemaFile("900_first.sql", "CREATE TABLE IF NOT EXISTS first (x Int64) ENGINE = MergeTree ORDER BY x")
SECOND = SchemaFile("910_second.sql", "CREATE VIEW IF NOT EXISTS second AS SELECT x FROM first")


def test_the_columns_of_graph_executions_are_the_contract(clickhouse: Client) -> None:
    columns = clickhouse.query(
        "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'graph_executions'"
        " AND NOT startsWith(name, 'stored_')"
    ).result_columns[0]
    expected = {*GraphExecution._fields, *EngineResource._fields, "received_at", "trace_id", "span_id", "cell"}
    assert set(columns) == expected
    assert len(columns) == len(expected)


def test_every_file_makes_one_object_and_names_no_database(clickhouse: Client) -> None:
    made = clickhouse.query("SELECT name FROM system.tables WHERE database = currentDatabase()").result_columns[0]
    named = [re.findall(r"^CREATE .*?IF NOT EXISTS (\S+)", change.statement, re.MULTILINE) for change in schema_files()]
    assert all(len(names) == 1 for names in named)
    assert {*(name for names in named for name in names), "schema_changes"} == set(made)


def test_no_type_hangs_on_a_default_of_the_newest_clickhouse(store: Client) -> None:
    """Since 26.1 types without a common one become a Variant, unless this is set; before, they were refused."""
    store.command("SET use_variant_as_common_type = 0")
    try:
        with database(store):
            insert(store, [round_of(n, 13 * n, "decode", 13, batch_lanes=lanes) for n, lanes in enumerate((4, None))])
            assert store.command("SELECT sum(executions) FROM cell_windows") == 2
    finally:
        store.command("SET use_variant_as_common_type = 1")


def test_the_files_are_applied_in_the_order_of_their_names() -> None:
    names = [change.name for change in schema_files()]
    assert names == sorted(names)
    assert len({name.partition("_")[0] for name in names}) == len(names)


def test_applying_again_does_nothing(clickhouse: Client) -> None:
    assert apply_schema(clickhouse) == []
    recorded = clickhouse.query("SELECT file_name, sha256 FROM schema_changes ORDER BY file_name").result_rows
    assert [name for name, _ in recorded] == [change.name for change in schema_files()]


def test_a_file_added_later_is_applied_alone(clickhouse: Client) -> None:
    assert apply_schema(clickhouse, [FIRST]) == [FIRST.name]
    clickhouse.insert("first", [[1]])
    assert apply_schema(clickhouse, [FIRST, SECOND]) == [SECOND.name]
    assert clickhouse.query("SELECT x FROM second").result_rows == [(1,)]


def test_a_file_that_changed_after_it_was_applied_is_named(clickhouse: Client) -> None:
    apply_schema(clickhouse, [FIRST])
    changed = FIRST._replace(statement=FIRST.statement.replace("Int64", "Int32"))
    with pytest.raises(SchemaError, match=r"^900_first\.sql changed after it was applied to database test_\w+: "):
        apply_schema(clickhouse, [changed, SECOND])
    assert clickhouse.query("SELECT count() FROM system.tables WHERE name = 'second'").first_row == (0,)


def test_a_statement_that_the_engine_refuses_is_named_in_one_line(clickhouse: Client) -> None:
    with pytest.raises(
        SchemaError, match=r"^920_bad\.sql cannot be applied to database test_\w+: .*SYNTAX_ERROR"
    ) as bad:
        apply_schema(clickhouse, [SchemaFile("920_bad.sql", "CREATE TABEL x")])
    assert "\n" not in str(bad.value)
    assert apply_schema(clickhouse, [FIRST]) == [FIRST.name]


def test_two_that_apply_at_once_leave_one_schema(clickhouse: Client) -> None:
    """The loser of a race finds no record yet, and every object made: it repeats what is harmless to repeat."""
    apply_schema(clickhouse, [FIRST])
    clickhouse.command("TRUNCATE TABLE schema_changes")
    assert apply_schema(clickhouse, [FIRST]) == [FIRST.name]
    assert apply_schema(clickhouse, [FIRST]) == []
