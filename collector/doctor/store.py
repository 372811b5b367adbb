"""ClickHouse as everybody who reads it sees it: over HTTP, by URL."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.cluster.form import LOCAL
from collector.store.clickhouse import DATABASE, StoreError, first_line
from collector.store.migrations import SchemaFile

_TABLE: Final = re.compile(r"^CREATE TABLE IF NOT EXISTS (\w+)", re.MULTILINE)
_WINDOW: Final = re.compile(r"non_replicated_deduplication_window = (\d+)")
_NEW_WINDOW: Final = re.compile(rf"^ALTER TABLE (\w+) MODIFY SETTING {_WINDOW.pattern}", re.MULTILINE)
# As our files write it, and as ClickHouse does.
_TTL: Final = re.compile(r"\bTTL (?:toDateTime\()?(\w+)\)? \+ (?:INTERVAL (\d+) DAY|toIntervalDay\((\d+)\))")


class TableRules(NamedTuple):
    """What a table must have beside its columns."""

    window: int
    """Inserts it remembers, so that one that is sent again is stored once; 0 is none."""
    ttl_column: str
    ttl_days: int
    """How long rows are kept; 0 is for ever."""
    is_replicated: bool = False
    """Then the window is another setting, with a default of its own."""


def rules_of(definition: str) -> TableRules:
    """The rules that a table's definition sets."""
    window, ttl = _WINDOW.search(definition), _TTL.search(definition)
    return TableRules(
        int(window[1]) if window else 0,
        ttl[1] if ttl else "",
        int(ttl[2] or ttl[3]) if ttl else 0,
        bool(re.match(r"(Replicated|Shared)\w*MergeTree", definition)),
    )


def rules_wanted(files: list[SchemaFile]) -> dict[str, TableRules]:
    """The rules of each table that keeps rows, as the schema has them when all of it is applied, in this order."""
    rules: dict[str, TableRules] = {}
    for file in files:
        if (made := _TABLE.search(file.statement)) and "MergeTree" in file.statement:
            rules[made[1]] = rules_of(file.statement)
        elif (changed := _NEW_WINDOW.search(file.statement)) and changed[1] in rules:
            rules[changed[1]] = rules[changed[1]]._replace(window=int(changed[2]))
    return rules


def rules_found(client: Client) -> dict[str, TableRules]:
    """The rules of each table of the database, as ClickHouse has them; on a cluster, of its local part here."""
    rows = client.query(
        "SELECT name, engine_full FROM system.tables WHERE database = currentDatabase() AND engine != 'Distributed'"
    ).result_rows
    return {name.removesuffix(LOCAL): rules_of(engine) for name, engine in rows}


_DROPPED: Final = """
SELECT received_on, sum(executions)
FROM (
    SELECT received_on, service_instance_id, cell, max(c.executions) AS executions FROM cell_samples AS c
    WHERE received_on >= {since:Date}
    GROUP BY received_on, service_instance_id, cell HAVING max(c.dropped_at) > toDateTime64(0, 3, 'UTC')
) GROUP BY received_on
"""


def applied_changes(client: Client) -> dict[str, str]:
    """The files of the schema that were applied, each with the hash of its content."""
    rows = client.query("SELECT file_name, toString(sha256) FROM schema_changes").result_rows
    return {str(name): str(sha256) for name, sha256 in rows}


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
        StoreError: ClickHouse does not answer, or refuses; also from within.
    """
    place = urlsplit(url)
    optional: dict[str, Any] = {name: values[0] for name, values in parse_qs(place.query).items()}
    shown = f"{place.hostname}:{place.port or ''}".rstrip(":")
    try:
        with clickhouse_connect.get_client(
            interface=place.scheme,
            host=place.hostname or "",
            port=place.port or (8443 if place.scheme == "https" else 8123),
            username=unquote(place.username) if place.username else None,
            password=unquote(place.password or ""),
            database=place.path.strip("/") or DATABASE,
            connect_timeout=5,
            send_receive_timeout=120,
            autogenerate_session_id=False,
            **optional,
        ) as client:
            yield client
    except ClickHouseError as error:
        raise StoreError(f"ClickHouse at {shown}: {first_line(error)}") from error
