"""A query with a time or an engine reads only what it must."""

import re
from datetime import UTC, datetime

import pytest
from clickhouse_connect.driver.client import Client

from queries.catalogue import load
from queries.runner import asked
from tests.fixtures.query_rows import ENGINE, insert, round_of

HOURS = 3


def granules_read(client: Client, name: str, **values: object) -> list[int]:
    """Of each scan of the query, how many granules the indexes leave."""
    sql, parameters = asked(name, values)
    lines = client.query(f"EXPLAIN indexes = 1 {sql}", parameters=parameters).result_rows
    scans = "\n".join(line for (line,) in lines).split("ReadFromMergeTree")[1:]
    return [min(map(int, re.findall(r"Granules: (\d+)/", scan)), default=-1) for scan in scans]


@pytest.fixture
def hours(clickhouse: Client) -> Client:
    """An execution a second for some hours, in many granules, of two engines."""
    for engine in ("engine-1", "engine-2"):
        rounds = [round_of(n, 1000.0 * n, "decode", 13) for n in range(HOURS * 3600)]
        insert(clickhouse, rounds, ENGINE._replace(service_instance_id=engine))
    return clickhouse


def test_time_and_engine_narrow_every_scan(hours: Client) -> None:
    for name in load():
        everything = granules_read(hours, name)
        assert min(everything) > 1, name
        by_time = granules_read(hours, name, **{"from": datetime(2026, 11, 2, tzinfo=UTC)})
        assert by_time == [0] * len(everything), name
        by_engine = granules_read(hours, name, service_instance_id="engine-3")
        assert by_engine == [0] * len(everything), name
        narrow = granules_read(hours, name, service_instance_id="engine-1", to=datetime(2026, 11, 1, 0, 1, tzinfo=UTC))
        assert max(narrow) < max(everything), name
