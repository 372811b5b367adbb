"""The commands that ask: of what was stored, and of alerts."""

import typer

from engine_hooks.commands.registering import TakesSettings
from queries.commands.alerts.backtest import backtest
from queries.commands.alerts.check import check
from queries.commands.alerts.history import history
from queries.commands.alerts.listing import list_alerts
from queries.commands.alerts.run import run as run_alerts
from queries.commands.alerts.try_rule import try_rule
from queries.commands.annotate import annotate
from queries.commands.changes import changes
from queries.commands.compare import compare
from queries.commands.mcp import mcp
from queries.commands.postmortem import postmortem
from queries.commands.query import query
from queries.commands.replay import replay
from queries.commands.silences import create, expire, list_silences
from queries.commands.top import top

PANEL = "Asking"


def register(app: typer.Typer, takes_settings: TakesSettings) -> None:
    """Add this room's commands."""
    for command in (query, postmortem, replay, compare, changes, top, annotate, mcp):
        app.command(rich_help_panel=PANEL)(takes_settings(command))
    app.add_typer(alerting(takes_settings), rich_help_panel=PANEL)


def alerting(takes_settings: TakesSettings) -> typer.Typer:
    """`tachograph alerts`: who is woken, and when."""
    alerts = typer.Typer(name="alerts", help="Alerts: who is woken, and when.", no_args_is_help=True)
    alerts.command("run")(takes_settings(run_alerts))
    alerts.command()(takes_settings(check))
    alerts.command("list")(takes_settings(list_alerts))
    alerts.command()(takes_settings(history))
    alerts.command("test")(takes_settings(try_rule))
    alerts.command()(takes_settings(backtest))
    alerts.add_typer(silencing(takes_settings))
    return alerts


def silencing(takes_settings: TakesSettings) -> typer.Typer:
    """`tachograph alerts silence`: for a while, nobody is woken by some alerts."""
    silence = typer.Typer(name="silence", help="For a while, some alerts wake nobody.", no_args_is_help=True)
    silence.command()(takes_settings(create))
    silence.command("list")(takes_settings(list_silences))
    silence.command()(takes_settings(expire))
    return silence
