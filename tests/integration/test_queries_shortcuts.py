"""What parameters give, or leave out: the shorter statement answers what the whole one does."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from clickhouse_connect.driver.client import Client

from collector.judging.judging import judge_cells
from queries.catalogue import Query, load
from queries.parameters import bound
from queries.runner import asked
from tests.fixtures.asking import START
from tests.fixtures.databases import database
from tests.fixtures.query_rows import ENGINE, insert
from tests.integration.test_queries_golden import eventful_engine

SHARED = {"minimum_decoding_s": 0, "slowest_count": 30}
WHOSE = {"host": "node-2", "package": "other", "recipe": "c1"}


@pytest.fixture(scope="module")
def two_engines(store: Client) -> Iterator[Client]:
    """Of which each filter leaves one."""
    other = ENGINE._replace(
        service_instance_id="engine-2", host_name="node-2", engine_package="other", engine_recipe="c1"
    )
    with database(store):
        insert(store, eventful_engine())
        insert(store, [one._replace(cell_arm="after", cell_id="bench-2") for one in eventful_engine()], other)
        judge_cells(store)
        yield store


def known(query: Query, values: dict[str, Any]) -> dict[str, Any]:
    """Of these values what the query has parameters for."""
    names = {parameter.name for parameter in query.parameters}
    return {name: value for name, value in values.items() if name in names}


@pytest.mark.parametrize(
    ("given", "is_asked_short"),
    [
        ({"from": START}, True),
        ({"from": START, "service_instance_id": "engine-2", "cell": "bench-2"}, True),
        # Whose executions are to be read is looked for first.
        ({"from": START, **WHOSE, "graph": "P128", "concurrency": 4}, False),
        ({"from": START, "arm": "after"}, False),
        ({}, False),
    ],
    ids=["time", "engine and cell", "host, package, recipe, graph, concurrency", "arm", "nothing"],
)
def test_a_shorter_statement_answers_the_same(two_engines: Client, given: dict[str, Any], is_asked_short: bool) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=1)
    answered = 0
    for query in load().values():
        values = known(query, {"at": soon, "to": soon, **given, **SHARED})
        sql, texts = asked(query.name, values)
        for row in query.rows:
            is_short = "from" in given and (is_asked_short or row.name != "asked")
            assert (row.standing not in query.sql_given(values)) == is_short, query.name
        if sql.split() == query.sql.split():
            continue
        short = two_engines.query(sql, parameters=texts).result_rows
        assert short == two_engines.query(query.sql, parameters=bound(query, values)).result_rows, query.name
        answered += bool(short)
    assert answered >= 20


def test_the_beginning_of_time_gives_nothing() -> None:
    query = load()["cells"]
    assert asked("cells", {}) == asked("cells", {"from": "1970-01-01"})
    assert asked("cells", {}).sql == query.sql_sent([])
    assert query.sql_given([]) == query.sql


def test_a_filter_that_is_given_is_sent() -> None:
    sql, texts = asked("live_cells", {"host": "node-2"})
    assert "AND ({host:String} = '' OR w.host_name = {host:String})" in sql
    assert "{package:String}" not in sql
    assert "package" not in texts
    assert texts["host"] == "node-2"
