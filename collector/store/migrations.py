"""Bringing a store's schema up to date: one object per `schema/*.sql`, applied in the order of their names.

What was applied is recorded in the table `schema_changes`, so that a file is applied once, and a file
that changed afterwards is noticed instead of half-believed: a change to a released object is a new file.
"""

import hashlib
from importlib.resources import files
from typing import NamedTuple

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.acceptance import StoreUnavailableError
from collector.cluster.form import ClusterForm
from collector.errors import CollectorError
from collector.store.clickhouse import first_line

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


def schema_files(*, otel_traces: bool = False, embedded: bool = False) -> list[SchemaFile]:
    """The files of `collector/schema`, in the order of their names.

    Args:
        otel_traces: Also those of `collector/otel_traces`, the door for the OpenTelemetry Collector's own exporter.
        embedded: Also those of `collector/embedded`, by which the embedded engine's store differs from a server's.
    """
    folders = {"schema": True, "embedded": embedded, "otel_traces": otel_traces}
    return [file for folder, is_wanted in folders.items() if is_wanted for file in _files_in(folder)]


def all_schema_files() -> list[SchemaFile]:
    """Every file that a store may have had applied to it."""
    return schema_files(otel_traces=True, embedded=True)


def _files_in(folder: str) -> list[SchemaFile]:
    found = [path for path in files("collector").joinpath(folder).iterdir() if path.name.endswith(".sql")]
    return [SchemaFile(path.name, path.read_text("utf-8")) for path in sorted(found, key=lambda path: path.name)]


def apply_schema(client: Client, changes: list[SchemaFile] | None = None, cluster: str = "") -> list[str]:
    """Apply what the client's database lacks, and return the names of the files applied now.

    Applying again does nothing. Two processes may do it at once: every statement is `IF NOT EXISTS`.
    A statement runs in the client's database and names none, save on a cluster.

    Args:
        client: On the database.
        changes: The schema; this version's, where none is given.
        cluster: The cluster, as `remote_servers` names it, whose hosts all get it; '' is this host alone.

    Raises:
        SchemaError: a file changed after it was applied, the engine refuses a statement, or the database is on a
            cluster and none is named, or the other way round.
        ClusterFormError: a file has no form on a cluster.
    """
    wanted = schema_files() if changes is None else changes
    form = ClusterForm(cluster, str(client.database), [change.statement for change in wanted]) if cluster else None
    _check_place(client, cluster)
    for statement in _beginnings(form):
        _run(client, "schema_changes", statement)
    missing = _missing(client, wanted)
    for change in missing:
        for statement in form.of(change.statement) if form else [change.statement]:
            _run(client, change.name, statement)
        client.insert("schema_changes", [[change.name, change.sha256]], column_names=["file_name", "sha256"])
    return [change.name for change in missing]


def script_of(changes: list[SchemaFile], database: str, cluster: str = "") -> str:
    """The whole schema as one script, what is recorded of it included, for those who apply it by hand.

    Raises:
        ClusterFormError: see `ClusterForm`.
    """
    form = ClusterForm(cluster, database, [change.statement for change in changes]) if cluster else None
    statements = _beginnings(form) if form else [f"CREATE DATABASE IF NOT EXISTS {database}", _SCHEMA_CHANGES]
    statements = [statements[0], f"USE {database}", *statements[1:]]
    for change in changes:
        own = form.of(change.statement) if form else [change.statement.strip()]
        record = f"INSERT INTO schema_changes (file_name, sha256) VALUES ('{change.name}', '{change.sha256}')"  # noqa: S608 -- a hash
        statements += [f"-- {change.name}\n{own[0]}", *own[1:], record]
    return "".join(f"{statement.strip()};\n\n" for statement in statements)


def _beginnings(form: ClusterForm | None) -> list[str]:
    """What has to be there before the first file is applied."""
    if form is None:
        return [_SCHEMA_CHANGES]
    return [form.database_statement(), form.whole_on_every_host(_SCHEMA_CHANGES)]


def applied_changes(client: Client) -> dict[str, str]:
    """The files of the schema that were applied, each with the hash of its content.

    Raises:
        ClickHouseError: as it comes.
    """
    rows = client.query("SELECT file_name, toString(sha256) FROM schema_changes").result_rows
    return {str(name): str(sha256) for name, sha256 in rows}


def id_of(client: Client) -> str:
    """What a store is known by: when its schema was first applied, to the ms. On a cluster all hosts say the same.

    Raises:
        StoreUnavailableError: it does not say.
    """
    try:
        return str(client.command("SELECT toString(min(applied_at)) FROM schema_changes"))
    except ClickHouseError as error:
        raise StoreUnavailableError(f"ClickHouse does not know its schema yet: {first_line(error)}") from error


def _missing(client: Client, wanted: list[SchemaFile]) -> list[SchemaFile]:
    applied = applied_changes(client)
    for change in wanted:
        if applied.get(change.name, change.sha256) != change.sha256:
            raise SchemaError(
                f"{change.name} changed after it was applied to database {client.database}: "
                "undo the change and put it into a new file, or start with an empty database"
            )
    return [change for change in wanted if change.name not in applied]


def _check_place(client: Client, cluster: str) -> None:
    """Half of a schema on a cluster and half on one of its hosts would lose what comes to the other hosts."""
    rows = client.query(
        "SELECT engine FROM system.tables WHERE database = currentDatabase() AND name = 'graph_executions'"
    ).result_rows
    for (engine,) in rows:
        if (engine == "Distributed") != bool(cluster):
            told = "is on a cluster: name it by TACHOGRAPH_CLICKHOUSE_CLUSTER" if not cluster else (
                "was made for one host: name another database for the cluster"
            )  # fmt: skip
            raise SchemaError(f"database {client.database} {told}")


def _run(client: Client, name: str, statement: str) -> None:
    try:
        client.command(statement)
    except ClickHouseError as error:
        raise SchemaError(f"{name} cannot be applied to database {client.database}: {first_line(error)}") from error
