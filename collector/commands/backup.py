"""`tachograph backup` and `tachograph restore`: the embedded store and its spool, copied and put back."""

from pathlib import Path
from typing import Annotated, Protocol

import typer

from collector.control.giving import ControlSettings, Door, taker
from collector.control.names import BACK_UP
from collector.errors import CollectorError


class InterruptedBackupError(CollectorError):
    """Ctrl-C while a backup was made."""

    exit_code = 130


class RestoreSettings(Protocol):
    """What `restore` needs of the command line's settings."""

    data_dir: Path


def backup(
    settings: ControlSettings,
    directory: Annotated[Path, typer.Argument(help="A directory that is not there yet, on this machine.")],
) -> None:
    """Back up the embedded store with its spool, also while the collector runs.

    Senders notice nothing: what they send meanwhile waits in the spool.
    """
    with taker(settings) as orders:
        try:
            made = orders.carry_out(BACK_UP, {"to": str(directory.absolute())})
        except KeyboardInterrupt as stop:
            goes_on = "the collector goes on with it, and it is there once it is complete"
            raise InterruptedBackupError(
                f"interrupted: {directory.absolute()}: {goes_on if isinstance(orders, Door) else 'no backup was made'}"
            ) from stop
    typer.echo(
        f"{made['directory']}: {sum(made['rows'].values()):,} rows ({made['rows'].get('graph_executions', 0):,} executions), "
        f"{made['waiting_requests']} waiting requests, {made['bytes'] / 1e6:,.1f} MB"
    )


def restore(
    settings: RestoreSettings,
    directory: Annotated[Path, typer.Argument(help="A directory that `tachograph backup` made.")],
) -> None:
    """Put a backup back into a data directory that holds no store, and compare every table with the backup.

    No collector may run there. What waited in the spool is stored at the next start.
    """
    from collector.backup.putting_back import put_back  # noqa: PLC0415 -- --help stays quick

    done = put_back(directory.absolute(), settings.data_dir)
    typer.echo(
        f"{settings.data_dir}: as of {done.made_at}, {sum(done.rows.values()):,} rows "
        f"({done.rows.get('graph_executions', 0):,} executions), the same as in the backup; {done.waiting_requests} waiting requests"
    )
