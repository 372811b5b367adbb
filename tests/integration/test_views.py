"""The views as they stand in the store: the doctor names one that is not the schema's, and the embedded store's are made anew."""

import json
import subprocess
import sys
from pathlib import Path

from clickhouse_connect.driver.client import Client

from collector.doctor.check import Check, Verdict
from collector.doctor.store import reading
from collector.doctor.view_checks import check_views
from collector.store.migrations import SchemaFile, all_schema_files, apply_schema
from collector.store.views import make_anew, views_astray
from tests.fixtures.running import ROOT, running_collector, tachograph

ALL = all_schema_files()
OTHERWISE = "SELECT toDate(received_at) AS received_on, service_instance_id, graph_name FROM graph_executions"


def checked(url: str, *, is_embedded: bool = True) -> Check:
    """As the doctor does, who only reads."""
    with reading(url) as client:
        return check_views(client, ALL, is_embedded=is_embedded)


def test_the_schemas_own_views_are_no_fault(clickhouse: Client, clickhouse_url: str) -> None:
    assert checked(clickhouse_url) == Check("views", Verdict.OK, "as the schema has them")
    apply_schema(clickhouse, ALL)
    assert checked(clickhouse_url).verdict is Verdict.OK


def test_a_view_that_was_replaced_is_named_with_what_to_do(clickhouse: Client, clickhouse_url: str) -> None:
    clickhouse.command(f"ALTER TABLE fill_cell_graphs MODIFY QUERY {OTHERWISE}")
    own = checked(clickhouse_url)
    assert (own.verdict, own.finding) == (
        Verdict.FAULT,
        "fill_cell_graphs is not what 081_fill_cell_graphs.sql made",
    )
    assert own.advice.startswith("restart the collector: it makes them anew at its start; ")
    of_a_server = checked(clickhouse_url, is_embedded=False)
    assert of_a_server.verdict is Verdict.WARNING, "it may write a statement otherwise than it was told"
    assert "run the statements of these files" in of_a_server.advice


def test_a_view_that_writes_elsewhere_and_one_that_is_gone_are_named(clickhouse: Client, clickhouse_url: str) -> None:
    clickhouse.command("CREATE TABLE elsewhere AS engine_seconds")
    (made,) = [file.statement for file in ALL if file.name == "085_fill_engine_seconds.sql"]
    clickhouse.command("DROP VIEW fill_engine_seconds")
    clickhouse.command(made.replace("TO engine_seconds", "TO elsewhere"))
    clickhouse.command("DROP VIEW store_executions")
    assert checked(clickhouse_url, is_embedded=False).verdict is Verdict.FAULT
    assert checked(clickhouse_url).finding == (
        "store_executions is gone, which 050_store_executions.sql made; "
        "fill_engine_seconds is not what 085_fill_engine_seconds.sql made"
    )


def test_of_a_newer_versions_store_nothing_is_said(clickhouse: Client, clickhouse_url: str) -> None:
    """Its files may have changed views, and `schema` tells of them."""
    apply_schema(clickhouse, [SchemaFile("999_newer.sql", f"ALTER TABLE fill_cell_graphs MODIFY QUERY {OTHERWISE}")])
    assert checked(clickhouse_url).verdict is Verdict.OK


def test_of_a_view_whose_file_was_another_one_nothing_is_said(clickhouse: Client) -> None:
    changed = [
        file._replace(statement=file.statement.replace("AS executions", "AS runs"))
        if "fill_cell_graphs" in file.name
        else file
        for file in ALL
    ]
    assert changed != ALL
    assert views_astray(clickhouse, changed) == []


def test_made_anew_they_are_the_schemas_again(clickhouse: Client) -> None:
    clickhouse.command(f"ALTER TABLE fill_cell_graphs MODIFY QUERY {OTHERWISE}")
    clickhouse.command("DROP VIEW store_executions")
    make_anew(clickhouse, views_astray(clickhouse, ALL))
    assert views_astray(clickhouse, ALL) == []


def test_each_file_that_makes_or_changes_a_view_is_one_that_can_be_compared() -> None:
    """Whoever changes a view by a new file has to teach `collector.store.views` what it is then."""
    about_views = [file for file in ALL if "VIEW" in file.statement or "MODIFY QUERY" in file.statement]
    assert len(about_views) >= 14
    assert all(file.statement.count("\nCREATE MATERIALIZED VIEW IF NOT EXISTS ") == 1 for file in about_views)


REPLACED = f"""
import sys
from pathlib import Path
from collector.store.clickhouse import open_store
with open_store(Path(sys.argv[1])) as client:
    client.command("DROP VIEW store_executions")
    client.command("ALTER TABLE fill_cell_graphs MODIFY QUERY {OTHERWISE}")
"""


def test_the_collector_makes_them_anew_at_its_start(tmp_path: Path) -> None:
    with running_collector(tmp_path):
        pass
    subprocess.run([sys.executable, "-c", REPLACED, str(tmp_path)], cwd=ROOT, timeout=180, check=True)
    with running_collector(tmp_path) as collector:
        told = {
            check["name"]: check for check in json.loads(tachograph(collector, "doctor", "--json").stdout)["checks"]
        }
    assert told["views"]["verdict"] == "ok"
