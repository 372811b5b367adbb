"""`tachograph spool`: what waits to be stored, and what ClickHouse refused. Works beside a running collector too."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from collector.spool.database import spool_file
from engine_hooks.commands.counting import counted


class SpoolSettings(Protocol):
    """What these commands need of the command line's settings."""

    data_dir: Path


Ids = Annotated[
    list[str] | None,
    typer.Argument(help="Ids of requests, or how they begin; without any, all that were set aside.", metavar="[ID]..."),
]


def list_spool(
    settings: SpoolSettings, as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False
) -> None:
    """List what waits to be stored, by door, and each request that ClickHouse refused, with its error."""
    from collector.spool.set_aside import set_aside, waiting  # noqa: PLC0415 -- --help stays quick

    file = spool_file(settings.data_dir)
    at_doors, aside = waiting(file), set_aside(file)
    if as_json:
        import json  # noqa: PLC0415

        told = {"waiting": [one._asdict() for one in at_doors], "set_aside": [one._asdict() for one in aside]}
        typer.echo(json.dumps(told))
        return
    from rich.markup import escape  # noqa: PLC0415

    _print_table(
        "Waiting to be stored",
        ("door", "requests", "spans", "bytes", "oldest (UTC)"),
        [(one.door, one.requests, one.spans, one.size, _time(one.oldest_unix_ms)) for one in at_doors],
    )
    _print_table(
        "Set aside",
        ("id", "door", "received (UTC)", "spans", "bytes", "retry", "error"),
        [
            (one.request_id[:12], one.door, _time(one.received_unix_ms), one.spans, one.size, _yes(one.retry_wanted), escape(one.error))
            for one in aside
        ],
    )  # fmt: skip


def retry(settings: SpoolSettings, ids: Ids = None) -> None:
    """Try again to store what was set aside: at once where the collector runs, else at its next start."""
    from collector.spool.set_aside import ask_again  # noqa: PLC0415

    typer.echo(f"{counted(ask_again(spool_file(settings.data_dir), ids or []), 'request')} will be tried again")


def export(
    settings: SpoolSettings,
    file: Annotated[Path, typer.Argument(help="File to write: length-delimited protobuf, gzipped.")],
    ids: Ids = None,
) -> None:
    """Write what was set aside to a file. It stays in the spool."""
    from collector.spool.set_aside import export as write  # noqa: PLC0415

    typer.echo(f"{counted(write(spool_file(settings.data_dir), ids or [], file), 'request')} written to {file}")


def discard(
    settings: SpoolSettings,
    ids: Annotated[list[str], typer.Argument(help="Ids of requests, or how they begin.", metavar="ID...")],
) -> None:
    """Let go of what was set aside, for good: export it before."""
    from collector.spool.set_aside import discard as let_go  # noqa: PLC0415

    typer.echo(f"{counted(let_go(spool_file(settings.data_dir), ids), 'request')} discarded")


def _print_table(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    from rich.table import Table  # noqa: PLC0415

    from engine_hooks.commands.terminal import print_table  # noqa: PLC0415

    if not rows:
        typer.echo(f"{title}: nothing")
        return
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else cell for cell in row))
    print_table(table)


def _time(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _yes(wanted: bool) -> str:
    return "yes" if wanted else ""
