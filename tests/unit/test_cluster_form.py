"""The schema on a cluster: what of it differs from the plain one, and nothing else does."""

import re
from collections.abc import Callable

import pytest
from clickhouse_connect.driver.client import Client

from collector.cluster.form import ClusterForm, ClusterFormError
from collector.store.migrations import SchemaFile, schema_files, script_of

FILES = schema_files(otel_traces=True)


@pytest.fixture(scope="module")
def form() -> ClusterForm:
    return ClusterForm("fleet", "night", [file.statement for file in FILES])


@pytest.fixture(scope="module")
def formatted(store: Client) -> Callable[[str], str]:
    """A statement as the engine's parser writes it: without comments, spaces and quotes that mean nothing."""

    def format_query(statement: str) -> str:
        return str(store.query("SELECT formatQuery({sql:String})", parameters={"sql": statement}).first_row[0])

    return format_query


def only_where_it_must(cluster_statement: str) -> str:
    """The cluster's form, less all that may differ."""
    for what, plain in (
        (r" ON CLUSTER fleet", ""),
        (r"\bnight\.", ""),
        (r"_local\b", ""),
        (r"Replicated(\w*MergeTree)\('/clickhouse/tables/\{shard\}/\{database\}/\{table\}', '\{replica\}'\)", r"\1"),
        (r"Replicated(\w*MergeTree)\('/clickhouse/tables/\{shard\}/\{database\}/\{table\}', '\{replica\}', ", r"\1("),
        (r"\breplicated_deduplication_window\b", "non_replicated_deduplication_window"),
    ):
        cluster_statement = re.sub(what, plain, cluster_statement)
    return cluster_statement


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_differs_only_where_it_must(
    file: SchemaFile, form: ClusterForm, formatted: Callable[[str], str]
) -> None:
    own, *further = [formatted(statement) for statement in form.of(file.statement)]
    assert only_where_it_must(own) == formatted(file.statement)
    assert "ON CLUSTER fleet" in own
    for statement in further:
        assert re.fullmatch(
            r"CREATE TABLE IF NOT EXISTS night\.(\w+) ON CLUSTER fleet AS night\.\1_local\n"
            r"ENGINE = Distributed\('fleet', 'night', '\1_local', sipHash64\(\w+\)\)"
            r"|ALTER TABLE night\.\w+ ON CLUSTER fleet\n[\s\S]* COLUMN [\s\S]*|DROP [\s\S]*",
            statement,
        )


def test_what_keeps_rows_is_replicated_and_distributed_and_what_keeps_none_is_not(form: ClusterForm) -> None:
    for file in FILES:
        statements = form.of(file.statement)
        if re.search(r"^ENGINE = \w*MergeTree", file.statement, re.MULTILINE):
            assert "ENGINE = Replicated" in statements[0], file.name
            assert "ENGINE = Distributed" in statements[1], file.name
        else:
            assert "Replicated" not in statements[0], file.name


def test_executions_and_their_rollups_are_divided_by_engine_instance(form: ClusterForm) -> None:
    by_name = {file.name: form.of(file.statement) for file in FILES}
    for name in ("010_graph_executions.sql", "030_decoded_spans.sql", "080_cell_graphs.sql"):
        assert "sipHash64(service_instance_id))" in by_name[name][1]
    # Divided once, where a request is decoded; from there on all of it happens on the shard.
    assert "TO night.decoded_spans AS" in by_name["040_decode_otlp.sql"][0]
    assert "FROM night.decoded_spans_local" in by_name["044_check_spans.sql"][0]
    assert "TO night.new_executions AS" in by_name["050_store_executions.sql"][0]
    assert "TO night.graph_executions_local AS" in by_name["014_store_new_executions.sql"][0]
    assert "FROM night.new_executions" in by_name["014_store_new_executions.sql"][0]
    assert "FROM night.graph_executions_local" in by_name["081_fill_cell_graphs.sql"][0]
    assert "TO night.cell_graphs_local AS" in by_name["081_fill_cell_graphs.sql"][0]


def test_what_is_changed_later_is_changed_in_both_tables(form: ClusterForm) -> None:
    assert form.of("ALTER TABLE graph_executions ADD COLUMN x Int64") == [
        "ALTER TABLE night.graph_executions_local ON CLUSTER 'fleet' ADD COLUMN x Int64",
        "ALTER TABLE night.graph_executions ON CLUSTER 'fleet' ADD COLUMN x Int64",
    ]
    assert form.of("ALTER TABLE graph_executions MODIFY TTL toDateTime(received_at) + INTERVAL 3 DAY;") == [
        "ALTER TABLE night.graph_executions_local ON CLUSTER 'fleet' MODIFY TTL toDateTime(received_at) + INTERVAL 3 DAY"
    ]
    assert form.of("ALTER TABLE fill_cell_graphs MODIFY QUERY SELECT 1 FROM graph_executions") == [
        "ALTER TABLE night.fill_cell_graphs ON CLUSTER 'fleet' MODIFY QUERY SELECT 1 FROM night.graph_executions_local"
    ]
    assert form.of("DROP VIEW IF EXISTS fill_cell_graphs") == [
        "DROP VIEW IF EXISTS night.fill_cell_graphs ON CLUSTER 'fleet'"
    ]
    assert form.of("DROP TABLE cell_graphs") == [
        "DROP TABLE night.cell_graphs_local ON CLUSTER 'fleet'",
        "DROP TABLE night.cell_graphs ON CLUSTER 'fleet'",
    ]


def test_strings_and_comments_are_no_sql() -> None:
    kept = "CREATE TABLE t -- FROM t TO t (\n(x String DEFAULT 'ENGINE = MergeTree FROM t' /* JOIN t */) ENGINE = Null"
    assert ClusterForm("c", "d", [kept]).of(kept) == [kept.replace("TABLE t", "TABLE d.t ON CLUSTER 'c'", 1)]


def test_arguments_of_an_engine_stay() -> None:
    kept = "CREATE TABLE t (x Int64, v Int64) ENGINE = ReplacingMergeTree(v) ORDER BY (x, v)"
    local, distributed = ClusterForm("c", "d", [kept]).of(kept)
    assert (
        "ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', v)"
        in local
    )
    assert "sipHash64(x)" in distributed


def test_two_views_that_would_write_through_one_distributed_table_by_one_insert_are_refused() -> None:
    """Each shard would take the second for a repetition of the first: they bear the insert's token."""
    statements = [
        "CREATE TABLE raw (x Int64) ENGINE = Null",
        "CREATE TABLE kept (service_instance_id String) ENGINE = MergeTree ORDER BY service_instance_id",
        "CREATE MATERIALIZED VIEW one TO kept AS SELECT 'a' AS service_instance_id FROM raw",
        "CREATE MATERIALIZED VIEW two TO kept AS SELECT 'b' AS service_instance_id FROM raw",
    ]
    ClusterForm("c", "d", statements[:3])
    with pytest.raises(ClusterFormError, match="two views of raw write to kept"):
        ClusterForm("c", "d", statements)


@pytest.mark.parametrize("statement", ["SYSTEM RELOAD CONFIG", "RENAME TABLE a TO b", "INSERT INTO replays VALUES (1)"])
def test_a_statement_whose_form_nobody_thought_of_is_refused(form: ClusterForm, statement: str) -> None:
    with pytest.raises(ClusterFormError, match="no form for a cluster is known"):
        form.of(statement)


@pytest.mark.parametrize("name", ["", "a-b", "x' ON", "1st"])
def test_a_name_that_cannot_stand_in_a_statement_is_refused(name: str) -> None:
    with pytest.raises(ClusterFormError, match="cannot be used as a name"):
        ClusterForm(name, "d", [])


@pytest.mark.parametrize("cluster", ["", "fleet"])
def test_the_whole_schema_as_a_script(cluster: str, formatted: Callable[[str], str]) -> None:
    script = script_of(FILES, "night", cluster)
    statements = script.split(";\n\n")
    assert statements.pop() == ""
    assert sum("INSERT INTO schema_changes" in statement for statement in statements) == len(FILES)
    for statement in statements:
        assert formatted(statement)
    assert ("ON CLUSTER" in script) == bool(cluster)
