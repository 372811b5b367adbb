"""`tachograph backup` and `tachograph restore`: the embedded store and its spool, copied and put back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Protocol

import typer

from collector.control.giving import Door, taker
from collector.control.names import BACK_UP
from collector.control.settings import ControlSettings
from collector.errors import CollectorError
from engine_hooks.commands.counting import counted


class InterruptedBackupError(CollectorError):
    """Ctrl-C while a backup was made."""

    exit_code = 130


class EmbeddedOnlyError(CollectorError):
    """A server is named, whose backups are its own."""

    exit_code = 2


class RestoreSettings(Protocol):
    """What `restore` needs of the command line's settings."""

    data_dir: Path
    clickhouse_url: str


def named_directory(given: str) -> Path:
    """A directory that a command is about, which an empty name would make the current one.

    Raises:
        typer.BadParameter: it is empty.
    """
    if not given.strip():
        raise typer.BadParameter("it is empty: name a directory")
    return Path(given)


def backup(
    settings: ControlSettings,
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIRECTORY", parser=named_directory, help="A directory that is not there yet, on this machine."
        ),
    ],
) -> None:
    """Back up the embedded store with its spool, also while the collector runs.

    Senders notice nothing: what they send meanwhile waits in the spool.
    """
    _check_embedded(settings.clickhouse_url)
    with taker(settings) as orders:
        try:
            made = orders.carry_out(BACK_UP, {"to": str(directory.absolute())})
        except KeyboardInterrupt as stop:
            goes_on = "the collector goes on with it, and it is there once it is complete"
            raise InterruptedBackupError(
                f"interrupted: {directory.absolute()}: {goes_on if isinstance(orders, Door) else 'no backup was made'}"
            ) from stop
    typer.echo(
        f"{made['directory']}: {_rows(made['rows'])}, {counted(made['waiting_requests'], 'waiting request')}, {made['bytes'] / 1e6:,.1f} MB"
    )


def restore(
    settings: RestoreSettings,
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIRECTORY", parser=named_directory, help="A directory that `tachograph backup` made."),
    ],
) -> None:
    """Put a backup back into a data directory that holds no store, and compare every table with the backup.

    No collector may run there. What waited in the spool is stored at the next start.
    """
    from collector.backup.putting_back import put_back  # noqa: PLC0415 -- --help stays quick

    _check_embedded(settings.clickhouse_url)
    done = put_back(directory.absolute(), settings.data_dir)
    typer.echo(
        f"{settings.data_dir}: as of {done.made_at}, {_rows(done.rows)}, the same as in the backup; "
        f"{counted(done.waiting_requests, 'waiting request')}"
    )


def _rows(by_table: Mapping[str, int]) -> str:
    executions = counted(by_table.get("graph_executions", 0), "execution")
    return f"{counted(sum(by_table.values()), 'row')} ({executions})"


def _check_embedded(clickhouse_url: str) -> None:
    if clickhouse_url:
        raise EmbeddedOnlyError(
            "backup and restore serve the embedded store only, and --clickhouse-url (or TACHOGRAPH_CLICKHOUSE_URL) names "
            "a server: leave it out; a server is backed up by its own BACKUP, docs/cluster.md shows how"
        )
