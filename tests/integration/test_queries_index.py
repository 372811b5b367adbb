"""A question reads only the partitions, granules and columns that it needs: on a fleet over two days."""

import re
from collections.abc import Iterator

import pytest
from clickhouse_connect.driver.client import Client

from queries.catalogue import Query, load
from queries.runner import asked
from tests.fixtures.databases import database
from tests.fixtures.generated import generate

EXECUTIONS, ENGINES = 300_000, 5
GRANULE = 8192
OF_ROLLUPS = ("judgements", "live_seconds", "rollup_differences")
"""Asked about whole windows, not by cell; what they read is held in test_live_queries."""
OF_EXECUTIONS = [
    query for query in load().values() if query.topic not in ("alerts", "annotations") and query.name not in OF_ROLLUPS
]
"""Rules of alerts look at what is arriving now, and this fleet is of another day; what people noted is no execution."""
QUERIES = [query for query in OF_EXECUTIONS if "from" in {parameter.name for parameter in query.parameters}]


@pytest.fixture(scope="module")
def fleet(store: Client) -> Iterator[Client]:
    """Five engines with fifty cells each, in two partitions: noon to noon."""
    with database(store):
        generate(store, EXECUTIONS, ENGINES)
        yield store


def estimated(client: Client, name: str, **values: object) -> tuple[int, int]:
    """Parts and rows of `graph_executions` that each scan of it reads on average, by EXPLAIN ESTIMATE."""
    sql, parameters = asked(name, values)
    tables = client.query(f"EXPLAIN ESTIMATE {sql}", parameters=parameters).result_rows
    plan = client.query(f"EXPLAIN {sql}", parameters=parameters).result_columns[0]
    scans = max("\n".join(plan).count("graph_executions)"), 1)
    return next(((row[2] // scans, row[3] // scans) for row in tables if row[1] == "graph_executions"), (0, 0))


def parts(client: Client) -> dict[str, int]:
    """Parts of each partition."""
    rows = client.query(
        "SELECT partition, count() FROM system.parts"
        " WHERE active AND database = currentDatabase() AND table = 'graph_executions' GROUP BY partition"
    ).result_rows
    return {str(partition): int(count) for partition, count in rows}


def with_what_they_are_made_of(client: Client, named: set[str]) -> set[str]:
    """These names, and the columns that any of them is an ALIAS over, as `cell` is over `cell_id`."""
    made = client.query(
        "SELECT name, default_expression FROM system.columns WHERE database = currentDatabase()"
        " AND table = 'graph_executions' AND default_kind = 'ALIAS'"
    ).result_rows
    found = {word for name, expression in made if name in named for word in re.findall(r"\w+", expression)}
    return named if found <= named else with_what_they_are_made_of(client, named | found)


def test_who_cannot_be_told_a_time_reads_no_execution() -> None:
    timeless = [query for query in OF_EXECUTIONS if query not in QUERIES]
    assert [query.name for query in timeless if "graph_executions" in query.sql] == []


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_time_engine_and_cell_narrow_what_is_read(fleet: Client, query: Query) -> None:
    by_partition = parts(fleet)
    assert len(by_partition) == 2
    read_parts, rows = estimated(fleet, query.name)
    assert read_parts <= by_partition["20261102"], "the newest half hour lies in one partition"
    assert rows <= EXECUTIONS / 2, "of fifty cells an engine, two"
    known = {parameter.name for parameter in query.parameters}
    for narrow in ({"service_instance_id": "engine-1"}, {"cell": "bench-1-49", "service_instance_id": "engine-1"}):
        if not narrow.keys() <= known:
            continue
        narrow_parts, narrow_rows = estimated(fleet, query.name, **narrow)
        assert narrow_parts <= read_parts
        assert narrow_rows <= 3 * GRANULE, narrow
    assert estimated(fleet, query.name, **{"from": "2026-11-03", "service_instance_id": "engine-1"})[1] == 0
    assert estimated(fleet, query.name, service_instance_id="absent")[1] == 0


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_only_columns_that_the_query_names_are_read(fleet: Client, query: Query) -> None:
    sql, parameters = asked(query.name, {"last_s": 0})
    lines = fleet.query(f"EXPLAIN header = 1 {sql}", parameters=parameters).result_rows
    named = with_what_they_are_made_of(fleet, set(re.findall(r"\w+", sql)))
    for step in "\n".join(line for (line,) in lines).split("ReadFromMergeTree")[1:]:
        header = re.search(r"Header: ((?:.*\n)+?).*Read type: ", step)
        assert header, step
        read = set(re.findall(r"^\W*(?:Header: )?(\w+) [A-Z]", header[0], re.MULTILINE))
        assert read, step
        assert read <= named | {"dummy"}
        assert len(read) < 30 or query.name == "record"


@pytest.mark.parametrize("name", ["cells", "engines", "package_comparison", "tokens_by_concurrency"])
def test_the_fleets_day_is_judged_without_reading_it(fleet: Client, name: str) -> None:
    cells = fleet.command("SELECT uniqExact(service_instance_id, cell) FROM graph_executions")
    assert cells == ENGINES * 50
    assert estimated(fleet, name, last_s=0)[1] <= 0.6 * EXECUTIONS
