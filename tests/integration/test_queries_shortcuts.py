"""Rows that parameters give: the shorter statement answers what the whole one does."""

import pytest
from clickhouse_connect.driver.client import Client

from collector.judging import judge_cells
from queries.catalogue import load
from queries.runner import asked
from tests.fixtures.asking import START
from tests.fixtures.query_rows import ENGINE, insert
from tests.integration.test_queries_golden import eventful_engine

SHARED = {"minimum_decoding_s": 0, "slowest_count": 30}


@pytest.mark.parametrize(
    ("given", "is_asked_short"),
    [
        ({}, True),
        ({"service_instance_id": "engine-2", "cell": "bench-2"}, True),
        # Whose executions are to be read is looked for first.
        ({"host": "node-2"}, False),
        ({"arm": "after"}, False),
    ],
    ids=["nothing", "engine and cell", "host", "arm"],
)
def test_a_shorter_statement_answers_the_same(clickhouse: Client, given: dict[str, str], is_asked_short: bool) -> None:
    other = ENGINE._replace(
        service_instance_id="engine-2", host_name="node-2", engine_package="other", engine_recipe="c1"
    )
    insert(clickhouse, eventful_engine())
    insert(clickhouse, [one._replace(cell_arm="after", cell_id="bench-2") for one in eventful_engine()], other)
    judge_cells(clickhouse)
    answered = 0
    for query in (query for query in load().values() if query.rows):
        known = {parameter.name for parameter in query.parameters}
        values = {name: value for name, value in {"from": START, **given, **SHARED}.items() if name in known}
        sql, texts = asked(query.name, values)
        for row in query.rows:
            assert (row.standing not in sql) == (is_asked_short or row.name != "asked"), query.name
        short, whole = (clickhouse.query(text, parameters=texts).result_rows for text in (sql, query.sql))
        assert short == whole, query.name
        answered += bool(short)
    assert answered >= 20


def test_the_beginning_of_time_gives_nothing() -> None:
    query = load()["cells"]
    assert asked("cells", {}).sql == asked("cells", {"from": "1970-01-01"}).sql == query.sql
