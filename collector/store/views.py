"""The views as they stand in the store, against those that the schema makes.

A file of the schema that was applied says nothing of what became of its view since: somebody may have replaced it, or
dropped it. What came in meanwhile was stored, counted or rolled up otherwise.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from clickhouse_connect.driver.client import Client

from collector.cluster.form import ClusterForm
from collector.store.migrations import SchemaFile, applied_changes

_VIEW: Final = re.compile(
    r"^CREATE MATERIALIZED VIEW IF NOT EXISTS (?:\w+\.)?(\w+)(?: ON CLUSTER '\w+')?\s+TO (?:\w+\.)?(\w+) AS\s+(.+)",
    re.MULTILINE | re.DOTALL,
)
_TARGET: Final = re.compile(r" TO (?:\w+\.|`[^`]+`\.)?(\w+)")
_FOUND: Final = """
SELECT name, create_table_query, as_select
FROM system.tables WHERE database = currentDatabase() AND engine = 'MaterializedView'
"""
_CLUSTER: Final = """
SELECT extract(engine_full, 'Distributed\\(\\'(\\w+)\\'')
FROM system.tables WHERE database = currentDatabase() AND name = 'graph_executions'
"""


class View(NamedTuple):
    """What a view does."""

    target: str
    """The table it writes to."""
    select: str
    """As ClickHouse formats it, in one line, tables without their database."""


class Astray(NamedTuple):
    """A view that is not the schema's."""

    name: str
    file: SchemaFile
    """What makes it."""
    is_there: bool
    """False where there is none."""


def views_astray(client: Client, known: Iterable[SchemaFile]) -> list[Astray]:
    """Views that differ from what the files that were applied made, or are gone; on a cluster, those of this host.

    Nothing is said of what another version made: of no view where it applied files that are not known, which may have
    changed views, and of none whose file was another one then.

    Args:
        client: On the database; it may be one that only reads.
        known: Every file that this version may apply.

    Raises:
        ClickHouseError: as it comes.
    """
    files = {file.name: file for file in known}
    applied = applied_changes(client)
    if applied.keys() - files.keys():
        return []
    in_force = [file for name, file in files.items() if applied.get(name) == file.sha256]
    found = _found(client)
    return [
        Astray(name, file, name in found)
        for name, (file, view) in _wanted(client, in_force).items()
        if found.get(name) != view
    ]


def make_anew(client: Client, views: Iterable[Astray]) -> None:
    """Put the schema's views in the place of these, while nothing is inserted.

    Not on a cluster. What is interrupted half-way is found astray again.

    Raises:
        ClickHouseError: as it comes.
    """
    for view in views:
        client.command("DROP VIEW IF EXISTS {view:Identifier}", parameters={"view": view.name})
        client.command(view.file.statement)


def _wanted(client: Client, files: list[SchemaFile]) -> dict[str, tuple[SchemaFile, View]]:
    rows = client.query(_CLUSTER).result_rows
    cluster = str(rows[0][0]) if rows else ""
    form = ClusterForm(cluster, str(client.database), [file.statement for file in files]) if cluster else None
    wanted = {}
    for file in files:
        if made := _VIEW.search(file.statement):
            made = _VIEW.search(form.of(file.statement)[0]) if form else made
            assert made  # noqa: S101 -- a view has one form, and it is a view's
            name, target, select = made.groups()
            wanted[name] = (file, View(target, _plain(client, _formatted(client, select))))
    return wanted


def _formatted(client: Client, select: str) -> str:
    # The driver puts it into the statement: in an address it is longer than a proxy in between may take.
    ((text,),) = client.query("SELECT formatQuerySingleLine(%s)", [select]).result_rows
    return str(text)


def _found(client: Client) -> dict[str, View]:
    return {
        str(name): View(target[1] if (target := _TARGET.search(statement)) else "", _plain(client, select))
        for name, statement, select in client.query(_FOUND).result_rows
    }


def _plain(client: Client, select: str) -> str:
    return re.sub(rf"(?<![\w.])`?{re.escape(str(client.database))}`?\.", "", select)
