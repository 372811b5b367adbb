"""Checks that ask ClickHouse: the schema, its windows and TTLs, what it holds against the ledger, and clocks."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from clickhouse_connect.driver.client import Client

from collector.doctor.check import Check, fault, ok, warning
from collector.doctor.store import executions_by_day, oldest_arrival, outcomes_by_day, repeated_numbers
from collector.store.migrations import SchemaFile, all_schema_files, applied_changes, schema_files
from collector.store.table_rules import TableRules, rules_found, rules_wanted
from collector.telemetry.clock_offsets import ClockOffset, clock_offsets
from engine_hooks.commands.counting import counted

_EXPIRY_GRACE_DAYS: Final = 2
"""ClickHouse drops expired rows in its own time."""
_INSTANCES_TOLD: Final = 3
_QUERY_S: Final = 1800
"""So far back a query of the catalogue looks by itself."""
_HOUR_S: Final = 3600
_DAMAGED: Final = """
SELECT table, count(), any(path)
FROM system.detached_parts
WHERE database = currentDatabase() AND startsWith(ifNull(reason, ''), 'broken')
GROUP BY table ORDER BY table
"""
_COUNTED_TABLES: Final = {"graph_executions": executions_by_day, "request_outcomes": outcomes_by_day}


def check_schema(client: Client, files: list[SchemaFile]) -> Check:
    """Whether the schema is this version's."""
    wanted, applied = {file.name: file.sha256 for file in files}, applied_changes(client)
    missing = sorted(wanted.keys() - applied.keys())
    changed = sorted(name for name in wanted.keys() & applied.keys() if wanted[name] != applied[name])
    if missing or changed:
        told = [*(f"{name} is not applied" for name in missing), *(f"{name} differs" for name in changed)]
        return fault("schema", "; ".join(told), "start the collector of this version; it applies what is missing")
    optional = _optional_files()
    if unknown := sorted(applied.keys() - wanted.keys() - {file.name for file in optional}):
        return warning("schema", f"{', '.join(unknown)} came from a newer version", "update this machine's Tachograph")
    return ok("schema", f"{len(wanted)} files applied")


def check_windows(client: Client, files: list[SchemaFile]) -> Check:
    """Whether an insert that is sent again is stored once."""
    found, applied = rules_found(client), applied_changes(client)
    in_force = [*files, *(file for file in _optional_files() if file.name in applied)]
    wrong = [
        f"{table} remembers {counted(found[table].window, 'insert')}, not {wanted.window}"
        for table, wanted in rules_wanted(in_force).items()
        if table in found and not found[table].is_replicated and found[table].window < wanted.window
    ]
    if wrong:
        advice = "ALTER TABLE … MODIFY SETTING non_replicated_deduplication_window = the figure that is wanted"
        return fault("deduplication windows", "; ".join(wrong), advice)
    return ok("deduplication windows", "as the schema has them")


def _optional_files() -> list[SchemaFile]:
    """Those that some stores have and others have not."""
    everywhere = {file.name for file in schema_files()}
    return [file for file in all_schema_files() if file.name not in everywhere]


def check_ttls(client: Client, files: list[SchemaFile], pinned: Mapping[str, int]) -> Check:
    """Whether rows expire as the schema says, or as the collector's TACHOGRAPH_RETENTION pins it, in days by table."""
    found = rules_found(client)
    if astray := [
        f"{table} is pinned to {counted(days, 'day')} and keeps rows {_kept_told(found[table])}"
        for table, days in pinned.items()
        if table in found and found[table].ttl_days != days
    ]:
        advice = "restart the collector: it brings the TTL to TACHOGRAPH_RETENTION; see its log where it does not"
        return fault("retention", "; ".join(astray), advice)
    told = [
        _ttl_told(table, wanted, found[table])
        for table, wanted in rules_wanted(files).items()
        if table in found and table not in pinned and found[table][1:3] != wanted[1:3]
    ]
    if any("for ever" in one for one in told):
        return fault("retention", "; ".join(told), "ALTER TABLE … MODIFY TTL; else the disk fills up")
    if told:
        return warning("retention", "; ".join(told), "nothing, if somebody wanted it so")
    return ok("retention", "as the schema and TACHOGRAPH_RETENTION have it" if pinned else "as the schema has it")


def _ttl_told(table: str, wanted: TableRules, found: TableRules) -> str:
    kept = f"{_kept_told(found)} by {found.ttl_column}" if found.ttl_days else _kept_told(found)
    return f"{table} keeps rows {kept}, not {_kept_told(wanted)} by {wanted.ttl_column}"


def _kept_told(rules: TableRules) -> str:
    return f"for {counted(rules.ttl_days, 'day')}" if rules.ttl_days else "for ever"


def check_damaged_parts(client: Client) -> Check:
    """Whether parts of the store were found damaged whose rows could not be had again."""
    name, rows = "rows of damaged parts", client.query(_DAMAGED).result_rows
    if not rows:
        return ok(name, "none lost")
    told = "; ".join(
        f"{counted(parts, 'damaged part')} of {table}, whose rows are not all there any more"
        for table, parts, _ in rows
    )
    return fault(name, told, f"put a backup back, or delete what is left of them to hear no more of it: {rows[0][2]}")


def check_expiry(client: Client, now: datetime) -> Check:
    """Whether what is to expire does: a TTL may be there and have no effect."""
    days = rules_found(client)["graph_executions"].ttl_days
    oldest = oldest_arrival(client)
    if not days or oldest is None:
        return ok("expiry", "nothing is to expire")
    age = now - (oldest if oldest.tzinfo else oldest.replace(tzinfo=UTC))
    if age > timedelta(days=days + _EXPIRY_GRACE_DAYS):
        finding = f"executions of {counted(age.days, 'day')} ago are there, which were to expire after {days}"
        return fault("expiry", finding, "ALTER TABLE graph_executions MATERIALIZE TTL, and look at system.merges")
    return ok("expiry", f"the oldest execution came {counted(age.days, 'day')} ago, of {days}")


class Counted:
    """What ClickHouse holds, day by day; counted between two readings of the ledger, since more comes meanwhile."""

    def __init__(self, client: Client, today: date) -> None:
        rules = rules_found(client)
        self.tables = {}
        for table, count in _COUNTED_TABLES.items():
            # The day that expires just now is left out.
            days = rules[table].ttl_days - 1 if rules[table].ttl_days else 59
            since = today - timedelta(days=max(days, 0))
            self.tables[table] = (since, count(client, since))


def check_contents(counted: Counted, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Check]:
    """Whether ClickHouse holds what the ledger says was stored.

    Args:
        counted: Counted between the two readings.
        before: The collector's state before counting.
        after: The same afterwards.
    """
    under_way = sum(entries["pending"] for state in (before, after) for entries in state["ledger"].values())
    least, most = _stored_by_day(before), _stored_by_day(after)
    for table, (since, there) in counted.tables.items():
        missing = {day: n - there.get(day, 0) for day, n in least.items() if day >= since and there.get(day, 0) < n}
        more = sum(max(0, n - most.get(day, 0)) for day, n in there.items()) - under_way
        yield _contents_told(f"{table} against the ledger", sum(there.values()), missing, more)


def _contents_told(name: str, there: int, missing: Mapping[date, int], more: int) -> Check:
    if missing:
        days = ", ".join(f"{count:,} of {day}" for day, count in sorted(missing.items())[-5:])
        advice = "somebody deleted rows, or the store was replaced by an older copy"
        return fault(name, f"executions that were stored are missing: {days}", advice)
    if more > 0:
        advice = "nothing, if another collector writes there, or the spool was made anew"
        return warning(name, f"{more:,} executions more than this collector stored", advice)
    return ok(name, f"all are there ({there:,} executions)")


def _stored_by_day(state: Mapping[str, Any]) -> dict[date, int]:
    return {date.fromisoformat(day): stored for day, stored in state["stored_by_day"].items()}


def check_host_clocks(client: Client) -> Check:
    """Whether the clocks of the hosts that send agree with the collector's."""
    offsets = clock_offsets(client)
    if not offsets:
        return ok("clocks of hosts", "none is off by more than 30 s")
    told = "; ".join(
        f"{one.host} is {abs(one.offset_s):,.0f} s "
        f"{'ahead' if one.offset_s > 0 else 'behind'} since {one.since:%Y-%m-%d %H:%M} UTC"
        for one in offsets
    )
    return warning(
        "clocks of hosts",
        told,
        "set their clocks by NTP: their cells lie beside those of other hosts; see "
        f"tachograph query clock_skew --param last_s={_seconds_shown(offsets)}",
    )


def _seconds_shown(offsets: Sequence[ClockOffset]) -> int:
    """So far back from the newest execution, by the engines' clocks, that those of the clock furthest behind are among them."""
    behind_s = max(0.0, -min(one.offset_s for one in offsets))
    return _HOUR_S * math.ceil((behind_s + _QUERY_S) / _HOUR_S)


def check_instances(client: Client) -> Check:
    """Whether each engine instance is one run: the contract numbers the submissions of each run, and of each rank."""
    found = repeated_numbers(client)
    if not found:
        return ok("instances", "none bears a submission number twice, in the last hour")
    told = "; ".join(f"{one}: {counted(again, 'execution')}" for one, again in list(found.items())[:_INSTANCES_TOLD])
    more = len(found) - _INSTANCES_TOLD
    return warning(
        "instances",
        f"submission numbers come more than once within 30 s: {told}{f'; and {more:,} more' if more > 0 else ''}",
        "give each run and each rank a service.instance.id of its own, unless executions are stored twice; "
        "see tachograph query repeated_numbers",
    )
