"""`tachograph retention`: how long each table keeps its rows, and changing it."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from collector.control.giving import taker
from collector.control.names import CHANGE_RETENTION, COUNT_EXPIRING, TELL_RETENTION
from collector.control.settings import ControlSettings
from collector.errors import CollectorError
from engine_hooks.commands.counting import counted

_MEANWHILE: Final = " (more came meanwhile)"
_MERGED: Final = "Rows of rollups are merged in the background: fewer of them hold the same."


class NotConfirmedError(CollectorError):
    """Rows would be deleted, and nobody said that they may."""

    exit_code = 2


class MisplacedError(CollectorError):
    """A flag stands where nothing reads it."""

    exit_code = 2


def show(
    settings: ControlSettings,
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """List what each table holds, how long it keeps it, and what has expired and is still there."""
    if context.invoked_subcommand:
        if misplaced := [name for name, value in context.params.items() if value]:
            raise MisplacedError(f"write --{misplaced[0].replace('_', '-')} after `set`: before it, it has no effect")
        return
    with taker(settings) as orders:
        tables = orders.carry_out(TELL_RETENTION, {})
    if as_json:
        typer.echo(json.dumps(tables))
        return
    from rich import box  # noqa: PLC0415 -- --help stays quick
    from rich.table import Table  # noqa: PLC0415

    from engine_hooks.commands.terminal import print_table  # noqa: PLC0415

    shown = Table(box=box.SIMPLE, pad_edge=False, caption=_MERGED, caption_justify="left")
    for column in ("table", "rows", "bytes", "oldest (UTC)", "newest (UTC)", "kept", "expired, still there"):
        shown.add_column(column, justify="left" if column in ("table", "kept") else "right")
    for table in tables:
        shown.add_row(
            table["table"],
            f"{table['rows']:,}",
            f"{table['bytes']:,}",
            (table["oldest"] or "-")[:10],
            (table["newest"] or "-")[:10],
            _kept(table),
            f"{table['expired_rows']:,}",
        )
    print_table(shown)


def change(
    settings: ControlSettings,
    table: Annotated[str, typer.Argument(help="A table that `tachograph retention` lists.")],
    days: Annotated[int, typer.Argument(help="Days to keep its rows, by arrival.", min=1)],
    yes: Annotated[bool, typer.Option("--yes", help="Delete what is older, without asking.")] = False,
) -> None:
    """Keep a table's rows for so many days, and show from its parts what became of it. Older rows are deleted."""
    from collector.store.retention import check, check_pinned, parsed_retention  # noqa: PLC0415 -- --help stays quick

    check(table, days)
    # A running collector has its own pins and looks at those; what is set here pins as well, whoever carries it out.
    pinned = parsed_retention(settings.retention)
    check_pinned(pinned, table, days, "TACHOGRAPH_RETENTION: change it there, and where the collector has it")
    with taker(settings, pinned) as orders:
        expiring = orders.carry_out(COUNT_EXPIRING, {"table": table, "days": days})
        if expiring and not yes:
            raise NotConfirmedError(
                f"{counted(expiring, 'row')} of {table} {'is' if expiring == 1 else 'are'} older than "
                f"{counted(days, 'day')} and would be deleted: add --yes"
            )
        done = orders.carry_out(CHANGE_RETENTION, {"table": table, "days": days})
    typer.echo(
        f"{table}: kept for {counted(done['days'], 'day')}, before {done['days_before']}\n"
        f"  rows   {done['rows_before']:,} -> {done['rows']:,}{_MEANWHILE if done['rows'] > done['rows_before'] else ''}\n"
        f"  bytes  {done['bytes_before']:,} -> {done['bytes']:,}"
    )
    if done["expired_rows"]:
        typer.echo(
            f"  {counted(done['expired_rows'], 'row')} older and still there: rows go by whole partitions (days or months), "
            "once the newest row of one is that old"
        )


def _kept(table: Mapping[str, Any]) -> str:
    days = counted(table["days"], "day") if table["days"] else "for ever"
    if table["days_pinned"] not in (None, table["days"]):
        return f"{days} ({table['days_pinned']} from the collector's next start)"
    return days if table["days"] == table["days_of_schema"] else f"{days} (not {table['days_of_schema']})"
