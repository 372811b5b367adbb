"""How long rows are kept: what each table's TTL is, what it holds, and changing one so that it is seen to have happened.

A TTL is a promise that the engine keeps in its own time, and one may be set and keep nothing. So a change here is carried
to the parts that are there before it is called done, and what is reported afterwards is read from the parts.

CollectorError
└── RetentionError            a change that did not happen
    └── RetentionSettingError a table or a number of days that cannot be
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.cluster.form import LOCAL
from collector.errors import CollectorError
from collector.store.clickhouse import first_line
from collector.store.migrations import SchemaFile, schema_files
from collector.store.table_rules import TableRules, rules_found, rules_wanted

DAYS_MAX: Final = 36_500
_PAIR: Final = re.compile(r"(\w+)=(\d{1,5})")
_PARTS: Final = """
SELECT
    table, partition_id, sum(rows) AS rows, sum(bytes_on_disk) AS bytes,
    max(delete_ttl_info_max) AS expires_at,
    expires_at > toDateTime(0) AND expires_at < now() AS is_expired
FROM {parts}
WHERE active AND database = currentDatabase()
GROUP BY table, partition_id
"""
_AGES: Final = """
SELECT min({column:Identifier}), max({column:Identifier}), countIf(toDateTime({column:Identifier}) < now() - toIntervalDay({days:UInt32}))
FROM {table:Identifier}
"""


class RetentionError(CollectorError):
    """A retention that cannot be, or that did not come about."""


class RetentionSettingError(RetentionError):
    """A table or a number of days that cannot be, as somebody wrote it."""

    exit_code = 2


class Retention(NamedTuple):
    """One table that keeps rows for a time."""

    table: str
    rows: int
    bytes: int
    """On disk, of the parts that count. On a cluster, of one replica of each shard."""
    oldest: str | None
    """By the column that the TTL goes by, ISO 8601; None where there are no rows."""
    newest: str | None
    days: int
    """0 is for ever."""
    days_of_schema: int
    days_pinned: int | None
    """What TACHOGRAPH_RETENTION of the collector says, which holds again from its next start."""
    expired_rows: int
    """Rows that are older and still there: the engine drops them in its own time, whole parts at once."""


class Changed(NamedTuple):
    """What a change of one table's retention did, as its parts tell afterwards."""

    table: str
    days_before: int
    days: int
    rows_before: int
    rows: int
    bytes_before: int
    bytes: int
    expired_rows: int
    """Older than that, in partitions that are not wholly so yet."""


def parsed_retention(text: str, files: list[SchemaFile] | None = None) -> dict[str, int]:
    """`TABLE=DAYS` pairs, separated by commas or spaces.

    Raises:
        RetentionSettingError: one is none, or names a table that keeps no rows for a time.
    """
    found = {}
    for pair in re.split(r"[,\s]+", text.strip(" ,")):
        if not pair:
            continue
        matched = _PAIR.fullmatch(pair)
        if not matched:
            raise RetentionSettingError(f"TACHOGRAPH_RETENTION has {pair!r}: write TABLE=DAYS, separated by commas")
        if matched[1] in found:
            raise RetentionSettingError(f"TACHOGRAPH_RETENTION names {matched[1]} twice: write each table once")
        found[matched[1]] = int(matched[2])
        try:
            check(matched[1], found[matched[1]], files)
        except RetentionSettingError as wrong:
            raise RetentionSettingError(f"TACHOGRAPH_RETENTION: {wrong}") from wrong
    return found


def check(table: str, days: int, files: list[SchemaFile] | None = None) -> None:
    """Refuse what can be no table's retention.

    Raises:
        RetentionSettingError: the table keeps no rows for a time, or the days are none.
    """
    tables = wanted(files)
    if table not in tables:
        raise RetentionSettingError(f"no table {table[:60]!r} keeps rows for a time; these do: {', '.join(tables)}")
    if not 1 <= days <= DAYS_MAX:
        raise RetentionSettingError(f"{table} cannot be kept for {days} days: give 1 to {DAYS_MAX}")


def check_pinned(pinned: Mapping[str, int], table: str, days: int, by: str) -> None:
    """Refuse to keep a table for other than what is pinned.

    Raises:
        RetentionError: it is pinned to other days; `by` says what pins it, and what to do.
    """
    if pinned.get(table, days) != days:
        raise RetentionError(f"{table} is kept for {pinned[table]} days by {by}")


def wanted(files: list[SchemaFile] | None = None) -> dict[str, TableRules]:
    """The tables that keep rows for a time, as the schema has them."""
    rules = rules_wanted(schema_files(otel_traces=True) if files is None else files)
    return {table: one for table, one in rules.items() if one.ttl_days}


class StoreRetention:
    """The retention of one store. A client runs one query at a time.

    Args:
        client: On the store's database.
        cluster: The cluster that the database is on; '' is none.
        pinned: What TACHOGRAPH_RETENTION says, by table.

    Every method raises `RetentionError`, also for what ClickHouse refuses.
    """

    def __init__(self, client: Client, cluster: str = "", pinned: Mapping[str, int] | None = None) -> None:
        self._client = client
        self._cluster = cluster
        self._pinned = dict(pinned or {})

    def told(self) -> list[Retention]:
        """Every table that keeps rows for a time, the largest first."""
        parts, found = self._parts(), rules_found(self._client)
        tables = [self._told(table, rules, parts, found) for table, rules in wanted().items() if table in found]
        return sorted(tables, key=lambda table: table.bytes, reverse=True)

    def pin(self) -> list[str]:
        """Bring TTLs to what the settings pin, and return the tables that were changed. Parts follow in their own time."""
        found = rules_found(self._client)
        changing = {
            table: days for table, days in self._pinned.items() if table in found and found[table].ttl_days != days
        }
        for table, days in changing.items():
            self._alter(table, found[table].ttl_column or wanted()[table].ttl_column, days, wait=False)
        return list(changing)

    def would_expire(self, table: str, days: int) -> int:
        """Rows that are older than so many days."""
        check(table, days)
        self._one(table)
        return int(self._ages(table, wanted()[table].ttl_column, days)[2])

    def change(self, table: str, days: int) -> Changed:
        """Keep a table's rows for so many days, and look whether that came about: what expires whole goes now."""
        check(table, days)
        check_pinned(self._pinned, table, days, "the collector's TACHOGRAPH_RETENTION: change it there")
        before = self._one(table)
        self._alter(table, wanted()[table].ttl_column, days, wait=True)
        after = self._one(table)
        if after.days != days:
            raise RetentionError(f"ClickHouse took the change and {table} still keeps rows for {after.days} days")
        if left := [part for part in self._parts().get(table, []) if part["is_expired"]]:
            raise RetentionError(
                f"{table}: {len(left)} partitions have expired and are still there: look at system.mutations"
            )
        return Changed(table, before.days, days, before.rows, after.rows, before.bytes, after.bytes, after.expired_rows)

    # ---- within

    def _one(self, table: str) -> Retention:
        told = next((one for one in self.told() if one.table == table), None)
        if told is None:
            raise RetentionError(f"this store has no table {table}")
        return told

    def _told(
        self, table: str, schema: TableRules, parts: Mapping[str, list[dict[str, Any]]], found: Mapping[str, TableRules]
    ) -> Retention:
        own, days = parts.get(table, []), found[table].ttl_days
        oldest, newest, expired = self._ages(table, found[table].ttl_column or schema.ttl_column, days)
        rows = sum(part["rows"] for part in own)
        return Retention(
            table,
            rows,
            sum(part["bytes"] for part in own),
            oldest.isoformat() if rows else None,
            newest.isoformat() if rows else None,
            days,
            schema.ttl_days,
            self._pinned.get(table),
            int(expired) if days else 0,
        )

    def _ages(self, table: str, column: str, days: int) -> Any:
        parameters = {"table": table, "column": column, "days": days}
        return tuple(self._query(_AGES, parameters)[0].values())

    def _parts(self) -> dict[str, list[dict[str, Any]]]:
        source = f"cluster('{self._cluster}', system.parts)" if self._cluster else "system.parts"
        tables: dict[str, list[dict[str, Any]]] = {}
        for row in self._query(_PARTS.replace("{parts}", source), {}):
            tables.setdefault(row["table"].removesuffix(LOCAL), []).append(row)
        return tables

    def _alter(self, table: str, column: str, days: int, *, wait: bool) -> None:
        kind = self._query(
            "SELECT type FROM system.columns WHERE database = currentDatabase() AND table = {table:String} AND name = {column:String}",
            {"table": table, "column": column},
        )[0]["type"]
        expires = column if kind == "Date" else f"toDateTime({column})"
        self._command(
            f"ALTER TABLE {self._place(table)} MODIFY TTL {expires} + INTERVAL {days:d} DAY",
            {"mutations_sync": 2 if wait else 0},
        )

    def _place(self, table: str) -> str:
        return f"{table}{LOCAL} ON CLUSTER '{self._cluster}'" if self._cluster else table

    def _query(self, query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        try:
            return list(self._client.query(query, parameters=parameters).named_results())
        except ClickHouseError as error:
            raise RetentionError(first_line(error)) from error

    def _command(self, statement: str, settings: dict[str, Any]) -> None:
        try:
            self._client.command(statement, settings=settings)
        except ClickHouseError as error:
            raise RetentionError(first_line(error)) from error
