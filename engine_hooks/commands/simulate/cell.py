"""`tachograph simulate cell`: one cell, and where its executions go."""

import json
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.table import Table

from engine_hooks.commands.counting import counted
from engine_hooks.commands.partly_taken import telling_taken
from engine_hooks.commands.simulate.choices import (
    CELL_SCENARIOS,
    JsonOption,
    ListOption,
    SeedOption,
    cell_scenario,
    policy_of,
)
from engine_hooks.commands.simulate.errors import SimulateCommandError
from engine_hooks.commands.simulate.settings import SendingSettings
from engine_hooks.commands.terminal import print_table
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import DECODING_KINDS, Purpose
from engine_hooks.recorder.otlp_files import write_requests
from engine_hooks.recorder.sending import raise_for_refused, requests_of, sender
from engine_hooks.simulator.cell import POLICIES, CellResult, run_cell
from engine_hooks.simulator.parameters import S_NS, Phase, Scenario
from engine_hooks.simulator.recording import EPOCH_UNIX_NS, CellLabels, simulated_resource

NOW: Final = "now"
SECONDS_MAX: Final = 600
"""Of one cell: its executions are held in memory, about 150 MB of them then."""


class SimulatedCell(NamedTuple):
    """One cell, run."""

    scenario: Scenario
    model: str
    seed: int
    result: CellResult
    start_ns: int
    """Unix time of its virtual time 0, a whole second."""
    resource: EngineResource
    executions: Sequence[GraphExecution]


def cell(
    settings: SendingSettings,
    *,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(POLICIES)}.")] = "drained_share",
    scenario: Annotated[
        str, typer.Option(metavar="NAME", help="A package of the experiment, `8 lanes`, or a scenario of the table.")
    ] = "frank2 main",
    seed: SeedOption = 0,
    seconds: Annotated[
        float | None, typer.Option(min=1, max=SECONDS_MAX, help="Its length.", show_default="the scenario's")
    ] = None,
    acceptance: Annotated[
        float | None, typer.Option(min=0, max=1, help="Chance that a draft is accepted.", show_default="the scenario's")
    ] = None,
    delay_rate: Annotated[
        float | None, typer.Option(min=0, max=100, help="Stumbles a second.", show_default="the scenario's")
    ] = None,
    starts: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Where it lies on the calendar: an ISO 8601 time, or `now`: it ends now, to the second.",
            show_default="now if sent, else a fixed time",
        ),
    ] = None,
    send: Annotated[bool, typer.Option("--send", help="Send its executions over OTLP.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Write them to a file of length-delimited OTLP; gzipped if it ends in .gz.")
    ] = None,
    as_list: ListOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run one cell and say what it came to; send or write its executions if asked."""
    if as_list:
        typer.echo(json.dumps(list(CELL_SCENARIOS)) if as_json else "\n".join(CELL_SCENARIOS))
        return
    chosen = with_parameters(cell_scenario(scenario), seconds, acceptance, delay_rate)
    start_ns = start_of(starts or (NOW if send else None), chosen)
    simulated = simulate_cell(chosen, policy_of(model), seed, start_ns)
    if output is not None:
        write_to(output, simulated)
    if send:
        send_to(settings.otlp_endpoint, simulated)
    if as_json:
        typer.echo(json.dumps(summary_of(simulated), indent=2))
        return
    print_table(table_of(simulated))
    count = f"{counted(len(simulated.executions), 'execution')} of {simulated.resource.service_instance_id}"
    if output is not None:
        typer.echo(f"wrote {count} to {output}")
    if send:
        typer.echo(f"sent {count} to {settings.otlp_endpoint}")


def with_parameters(
    scenario: Scenario, seconds: float | None, acceptance: float | None, delay_rate: float | None
) -> Scenario:
    """The scenario with these in place of its own, in every phase."""
    given: dict[str, Any] = {"acceptance": acceptance, "delay_rate_hz": delay_rate}
    changes = {name: value for name, value in given.items() if value is not None}
    phases = tuple(Phase(from_ns, replace(conditions, **changes)) for from_ns, conditions in scenario.phases)
    return replace(scenario, phases=phases, duration_ns=int(seconds * S_NS) if seconds else scenario.duration_ns)


def start_of(starts: str | None, scenario: Scenario) -> int:
    """Unix time, in ns, of a cell's start: a whole second, so that it can be said again.

    Raises:
        SimulateCommandError: the text is neither `now` nor an ISO 8601 time.
    """
    if starts is None:
        return EPOCH_UNIX_NS
    if starts == NOW:
        return (time.time_ns() - scenario.duration_ns) // S_NS * S_NS
    try:
        at = datetime.fromisoformat(starts)
    except ValueError as error:
        raise SimulateCommandError(f"--starts is {starts!r}: give `now` or a time like 2026-11-01T00:00:00Z") from error
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()) * S_NS


def simulate_cell(scenario: Scenario, model: str, seed: int, start_ns: int) -> SimulatedCell:
    """Run one cell and keep its executions."""
    lanes = scenario.engine.lanes
    name = re.sub(r"[^a-z0-9]+", "-", f"{scenario.name} {model} {seed}".lower()).strip("-")
    labels = CellLabels(start_ns, name, model, cell_concurrency=lanes)
    executions: list[GraphExecution] = []
    result = run_cell(scenario, model, seed, on_execution=executions.append, labels=labels)
    resource = simulated_resource(
        f"{name}-{start_ns // S_NS}",
        service_name="tachograph-simulate",
        host_name="simulated",
        engine_package=model,
        engine_recipe=scenario.name,
    )
    return SimulatedCell(scenario, model, seed, result, start_ns, resource, executions)


def write_to(file: Path, simulated: SimulatedCell) -> None:
    """Write a cell's executions.

    Raises:
        SimulateCommandError: the file cannot be written.
    """
    try:
        write_requests(file, requests_of(simulated.resource, simulated.executions))
    except OSError as error:
        raise SimulateCommandError(f"{file}: {error.strerror}; name another --output") from error


def send_to(endpoint: str, simulated: SimulatedCell) -> None:
    """Send a cell's executions.

    Raises:
        SendError: the collector is away, or refused some of them.
    """
    again = (
        f" by --starts {calendar(simulated.start_ns)} and all else as before: those are stored once; "
        "another start is another engine instance"
    )
    with sender(endpoint) as connection, telling_taken(connection, len(simulated.executions), again):
        refused = connection.send_all(simulated.resource, simulated.executions, lambda _: None)
    raise_for_refused(endpoint, refused)


def calendar(unix_ns: int) -> str:
    """A whole second as `--starts` takes it."""
    return f"{datetime.fromtimestamp(unix_ns // S_NS, UTC):%Y-%m-%dT%H:%M:%SZ}"


def summary_of(simulated: SimulatedCell) -> dict[str, Any]:
    """A cell as `--json` prints it."""
    return {
        "scenario": simulated.scenario.name,
        "model": simulated.model,
        "seed": simulated.seed,
        "seconds": simulated.scenario.duration_ns / S_NS,
        **simulated.result._asdict(),
        "executions": len(simulated.executions),
        "chosen": chosen_in(simulated.executions),
        "service_instance_id": simulated.resource.service_instance_id,
    }


def chosen_in(executions: Sequence[GraphExecution]) -> dict[str, int]:
    """How often the scheduler chose each graph for an ordinary decoding round."""
    ordinary = (e for e in executions if e.graph_purpose == Purpose.ORDINARY)
    return dict(Counter(e.graph_name for e in ordinary if e.graph_kind in DECODING_KINDS))


def table_of(simulated: SimulatedCell) -> Table:
    """A cell for the terminal."""
    result = simulated.result
    chosen = ", ".join(f"{graph} {count:,}" for graph, count in chosen_in(simulated.executions).items())
    table = Table(show_header=False)
    table.add_row("cell", f"{simulated.scenario.name}, {simulated.model}, seed {simulated.seed}")
    table.add_row("tokens/s", f"{result.tokens_per_second:,.1f}")
    table.add_row("plain fraction", f"{result.plain_fraction:.3f}" + (", stuck in plain" if result.stuck else ""))
    table.add_row("rounds", f"{result.rounds:,}")
    table.add_row("chosen", chosen or "nothing")
    return table
