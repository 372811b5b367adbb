"""`tachograph schema`: the store's schema as SQL, for one server or for a cluster."""

from typing import Annotated, Protocol

import typer

from engine_hooks.commands.counting import counted


class SchemaSettings(Protocol):
    """What it needs of the command line's settings."""

    clickhouse_url: str
    clickhouse_cluster: str


def schema(
    settings: SchemaSettings,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply what the server of TACHOGRAPH_CLICKHOUSE_URL lacks, instead.")
    ] = False,
    otel_traces: Annotated[
        bool,
        typer.Option("--otel-traces", help="With the door for the OpenTelemetry Collector's ClickHouse exporter."),
    ] = False,
) -> None:
    """Print the store's schema as SQL: for one server, or with --clickhouse-cluster NAME for every host of a cluster.

    A collector applies it by itself at its start, save what --otel-traces adds.
    """
    from collector.store.clickhouse import DATABASE, WrongSettingError, connect, split_url  # noqa: PLC0415 -- --help stays quick
    from collector.store.migrations import apply_schema, schema_files, script_of  # noqa: PLC0415

    files = schema_files(otel_traces=otel_traces)
    database = split_url(settings.clickhouse_url)[1] if settings.clickhouse_url else DATABASE
    if not apply:
        typer.echo(script_of(files, database, settings.clickhouse_cluster), nl=False)
        return
    if not settings.clickhouse_url:
        raise WrongSettingError(
            "the embedded store's schema is applied by its collector: --apply wants --clickhouse-url"
        )
    with connect(settings.clickhouse_url) as client:
        applied = apply_schema(client, files, settings.clickhouse_cluster)
    typer.echo(
        f"{counted(len(applied), 'file')} applied to database {database}" + "".join(f"\n  {name}" for name in applied)
    )
