"""`tachograph replay`: what another cost model would have done with a recorded cell."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import typer

from engine_hooks.commands.finite import finite
from queries.errors import QueriesError

if TYPE_CHECKING:
    from queries.replay.result import Replay

FormName = Literal["exact", "closed-loop", "both"]
"""Columns where no terminal says how many it has."""


class Settings(Protocol):
    """What this command needs to know."""

    @property
    def clickhouse_url(self) -> str: ...

    @property
    def rows_url(self) -> str: ...


def replay(
    settings: Settings,
    cell: Annotated[str, typer.Argument(help="The cell, as `tachograph query cells` names it.")],
    *,
    model: Annotated[
        str, typer.Option("--model", "-m", help="exposed_mean, drained_share, startup_median or idle_gap.")
    ] = "drained_share",
    engine: Annotated[
        str, typer.Option(metavar="ID", help="service_instance_id, where several engines have such a cell.")
    ] = "",
    form: Annotated[FormName, typer.Option(help="Each decision again, a simulation of the whole, or both.")] = "both",
    seeds: Annotated[int, typer.Option(help="Simulated runs of each kind, 2 to 1000.")] = 16,
    history: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, callback=finite, help="How far before the cell the model may learn from."
        ),
    ] = 120.0,
    store: Annotated[
        bool | None,
        typer.Option("--store/--no-store", help="Store the result through the collector; default: if one answers."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """What another cost model would have done with a recorded cell: which decisions, and what it would be worth.

    Exit codes: 0 replayed (where no collector stores the result, one line says so); 2 a wrong call, an unknown
    cell or model; 3 no ClickHouse answers, or with --store no collector; 4 one of them refused.
    """
    from queries.replay.replaying import Form, replayed  # noqa: PLC0415 (numpy slows the start)

    with progress() as on_progress:
        made = replayed(
            settings.clickhouse_url,
            engine,
            cell,
            model,
            form=Form(form),
            seeds=seeds,
            history_s=history,
            on_progress=on_progress,
        )
    print_replay(made, as_json=as_json)
    if store is not False:
        keep(settings, made, insist=store is True)


def print_replay(made: "Replay", *, as_json: bool) -> None:
    """On standard output."""
    from engine_hooks.commands.terminal import output_console  # noqa: PLC0415
    from queries.replay import screen  # noqa: PLC0415

    if as_json:
        typer.echo(json.dumps(screen.as_json(made)))
        return
    screen.show(output_console(), made)


def keep(settings: Settings, made: "Replay", *, insist: bool) -> None:
    """Store a replay; say where it is, or in one line why it is not.

    Raises:
        QueriesError: it cannot be stored, and must.
    """
    from queries.replay.stored import store  # noqa: PLC0415

    try:
        store(settings.rows_url, made, settings.clickhouse_url)
    except QueriesError as wrong:
        if insist:
            raise
        typer.echo(f"tachograph: not stored: {wrong}", err=True)
    else:
        typer.echo(f"stored as replay {made.replay_id}", err=True)


@contextmanager
def progress() -> Iterator[Callable[[int, int], object]]:
    """A bar on standard error while the simulation runs; none where that is no terminal."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("simulating", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
