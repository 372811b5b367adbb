"""The engines' commands: reading traces, porting a cost model, simulated engines, and real ones to look at."""

from collections.abc import Callable
from typing import Any, Protocol

import typer

from engine_hooks.commands.demo.torch_engine import torch_engine
from engine_hooks.commands.estimate import estimate
from engine_hooks.commands.import_traces import import_traces
from engine_hooks.commands.simulate.cell import cell
from engine_hooks.commands.simulate.experiment import experiment
from engine_hooks.commands.simulate.live import live
from engine_hooks.commands.simulate.scenarios import scenarios

PANEL = "Engines and their traces"


class TakesSettings(Protocol):
    """Gives a room's function, whose first parameter is `settings`, one flag for each setting that it asks for."""

    def __call__(self, command: Callable[..., Any], *, reads: bool = True) -> Callable[..., Any]:
        """Args:
        command: The function.
        reads: Whether it talks to a running store, so that it wants every URL filled in.
        """


def register(app: typer.Typer, takes_settings: TakesSettings) -> None:
    """Add this room's commands."""
    app.command("import", rich_help_panel=PANEL)(takes_settings(import_traces))
    app.command(rich_help_panel=PANEL)(estimate)
    app.add_typer(simulations(takes_settings), rich_help_panel=PANEL)
    app.add_typer(demos(takes_settings), rich_help_panel=PANEL)


def simulations(takes_settings: TakesSettings) -> typer.Typer:
    """`tachograph simulate`: the simulated engine, live and in experiments."""
    simulate = typer.Typer(name="simulate", help="Simulated engines: live, or in experiments.", no_args_is_help=True)
    simulate.command()(takes_settings(live))
    simulate.command()(takes_settings(cell))
    simulate.command()(experiment)
    simulate.command()(scenarios)
    return simulate


def demos(takes_settings: TakesSettings) -> typer.Typer:
    """`tachograph demo`: real engines to look at."""
    demo = typer.Typer(name="demo", help="Small real engines to look at.", no_args_is_help=True)
    demo.callback()(lambda: None)  # with one command alone typer would leave its name out
    demo.command("torch")(takes_settings(torch_engine))
    return demo
