"""What each table must have beside its columns: how many inserts it remembers, and how long rows are kept."""

import re
from typing import Final, NamedTuple

from clickhouse_connect.driver.client import Client

from collector.cluster.form import LOCAL
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
