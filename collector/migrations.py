"""Bringing a store's schema up to date: one object per `schema/*.sql`, applied in the order of their names.

What was applied is recorded in the table `schema_changes`, so that a file is applied once, and a file
that changed afterwards is noticed instead of half-believed: a change to a released object is a new file.
"""

import hashlib
from importlib.resources import files
from typing import NamedTuple

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.clickhouse import first_line
from collector.errors import CollectorError

_SCHEMA_CHANGES = """
CREATE TABLE IF NOT EXISTS schema_changes
(
    file_name String,
    sha256 FixedString(64),
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = MergeTree ORDER BY file_name
"""


class SchemaError(CollectorError):
    """The store's schema cannot be brought up to date."""


class SchemaFile(NamedTuple):
    """One statement that makes one object."""

    name: str
    statement: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.statement.encode()).hexdigest()


def schema_files() -> list[SchemaFile]:
    """The files of `collector/schema`, in the order of their names."""
    found = [path for path in files("collector").joinpath("schema").iterdir() if path.name.endswith(".sql")]
    return [SchemaFile(path.name, path.read_text("utf-8")) for path in sorted(found, key=lambda path: path.name)]


def apply_schema(client: Client, changes: list[SchemaFile] | None = None) -> list[str]:
    """Apply what the client's database lacks, and return the names of the files applied now.

    Applying again does nothing. Two processes may do it at once: every statement is `IF NOT EXISTS`.
    A statement runs in the client's database and names none.

    Raises:
        SchemaError: a file changed after it was applied, or the engine refuses a statement.
    """
    wanted = schema_files() if changes is None else changes
    _run(client, "schema_changes", _SCHEMA_CHANGES)
    rows = client.query("SELECT file_name, toString(sha256) FROM schema_changes").result_rows
    applied: dict[str, str] = {str(name): str(sha256) for name, sha256 in rows}
    for change in wanted:
        if applied.get(change.name, change.sha256) != change.sha256:
            raise SchemaError(
                f"{change.name} changed after it was applied to database {client.database}: "
                "undo the change and put it into a new file, or start with an empty database"
            )
    missing = [change for change in wanted if change.name not in applied]
    for change in missing:
        _run(client, change.name, change.statement)
        client.insert("schema_changes", [[change.name, change.sha256]], column_names=["file_name", "sha256"])
    return [change.name for change in missing]


def _run(client: Client, name: str, statement: str) -> None:
    try:
        client.command(statement)
    except ClickHouseError as error:
        raise SchemaError(f"{name} cannot be applied to database {client.database}: {first_line(error)}") from error
