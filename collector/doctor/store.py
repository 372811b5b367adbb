"""ClickHouse as everybody who reads it sees it: over HTTP, by URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Final

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.store.clickhouse import StoreError, client_of, said, split_url, without_password

_STATEMENT_S: Final = 120

_DROPPED: Final = """
SELECT received_on, sum(executions)
FROM (
    SELECT received_on, service_instance_id, cell, max(c.executions) AS executions FROM cell_samples AS c
    WHERE received_on >= {since:Date}
    GROUP BY received_on, service_instance_id, cell HAVING max(c.dropped_at) > toDateTime64(0, 3, 'UTC')
) GROUP BY received_on
"""

_REPEATED: Final = """
SELECT service_instance_id, sum(executions - numbers) AS again
FROM (
    SELECT service_instance_id, window_started_at, sum(w.executions) AS executions, groupBitmapMerge(sequences) AS numbers
    FROM cell_windows AS w
    WHERE received_on >= toDate(now('UTC') - INTERVAL 1 HOUR) AND last_received_at > now64(3, 'UTC') - INTERVAL 1 HOUR
    GROUP BY service_instance_id, window_started_at
)
WHERE executions > numbers
GROUP BY service_instance_id ORDER BY again DESC, service_instance_id
"""
"""As the catalogue's `repeated_numbers`, by arrival."""


def executions_by_day(client: Client, since: date) -> dict[date, int]:
    """Executions that are there or that sampling dropped, by the day they were received on."""
    there = _by_day(client, "SELECT toDate(received_at) AS day, count() FROM graph_executions", since)
    dropped = {day: int(count) for day, count in client.query(_DROPPED, parameters={"since": since}).result_rows}
    return {day: there.get(day, 0) + dropped.get(day, 0) for day in there | dropped}


def outcomes_by_day(client: Client, since: date) -> dict[date, int]:
    """Executions that ClickHouse recorded as stored, by the day they were received on."""
    return _by_day(client, "SELECT toDate(received_at) AS day, sum(stored) FROM request_outcomes", since)


def _by_day(client: Client, counting: str, since: date) -> dict[date, int]:
    query = counting + " WHERE toDate(received_at) >= {since:Date} GROUP BY day"
    return {day: int(count) for day, count in client.query(query, parameters={"since": since}).result_rows}


def repeated_numbers(client: Client) -> dict[str, int]:
    """Executions of the last hour beyond the first of their submission number within 30 s, by instance, the most first."""
    return {str(instance): int(again) for instance, again in client.query(_REPEATED).result_rows}


def oldest_arrival(client: Client) -> datetime | None:
    """When the oldest execution that is there was received."""
    ((oldest, executions),) = client.query("SELECT min(received_at), count() FROM graph_executions").result_rows
    return oldest if executions else None


def clock_ms(client: Client) -> float:
    """ClickHouse's clock, Unix milliseconds."""
    ((now_ms,),) = client.query("SELECT toUnixTimestamp64Milli(now64(3))").result_rows
    return float(now_ms)


@contextmanager
def reading(url: str) -> Iterator[Client]:
    """A client for a URL of the command line, `http[s]://[user:password@]host:port/database[?ca_cert=FILE]`.

    Raises:
        StoreError: ClickHouse does not answer, or nothing within 10 s, or refuses; also from within.
    """
    server, database = split_url(url)
    try:
        with client_of(server, _STATEMENT_S, database=database, autogenerate_session_id=False) as client:
            yield client
    except ClickHouseError as error:
        raise StoreError(f"ClickHouse at {without_password(url)} {said(error)}") from error
