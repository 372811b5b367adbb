"""The collector's commands: receiving, the store and its upkeep."""

import typer

from collector.commands.backup import backup, restore
from collector.commands.capacity import capacity
from collector.commands.collect import collect
from collector.commands.conformance import conformance
from collector.commands.doctor import doctor
from collector.commands.retention import change as change_retention
from collector.commands.retention import show as show_retention
from collector.commands.schema import schema
from collector.commands.spool import discard, export, list_spool, retry
from engine_hooks.commands.registering import TakesSettings

PANEL = "Collecting and the store"


def register(app: typer.Typer, takes_settings: TakesSettings) -> None:
    """Add this room's commands."""
    app.command(rich_help_panel=PANEL)(takes_settings(collect, reads=False))
    app.command(rich_help_panel=PANEL)(takes_settings(doctor))
    for command in (schema, backup, restore):
        app.command(rich_help_panel=PANEL)(takes_settings(command, reads=False))
    app.command(rich_help_panel=PANEL)(conformance)
    app.command(rich_help_panel=PANEL)(capacity)
    app.add_typer(spools(takes_settings), rich_help_panel=PANEL)
    app.add_typer(retention(takes_settings), rich_help_panel=PANEL)


def spools(takes_settings: TakesSettings) -> typer.Typer:
    """`tachograph spool`: what waits to be stored, and what was set aside."""
    spool = typer.Typer(
        name="spool", help="What waits to be stored, and what ClickHouse refused.", no_args_is_help=True
    )
    spool.command("list")(takes_settings(list_spool, reads=False))
    for command in (retry, export, discard):
        spool.command()(takes_settings(command, reads=False))
    return spool


def retention(takes_settings: TakesSettings) -> typer.Typer:
    """`tachograph retention`: how long each table keeps its rows."""
    kept = typer.Typer(name="retention", invoke_without_command=True)
    kept.callback()(takes_settings(show_retention, reads=False))
    # So -1 reaches the check of days, instead of being an option that nobody knows.
    kept.command("set", context_settings={"ignore_unknown_options": True})(
        takes_settings(change_retention, reads=False)
    )
    return kept
