"""`tachograph capacity`: what a fleet of a given size wants."""

import json
from typing import Annotated

import typer

from engine_hooks.commands.finite import finite


def between(given: float, least: float, most: float) -> float:
    """The same. Typer's own range would say of nan that it is to be less than the most.

    Raises:
        typer.BadParameter: it is no number, or lies outside.
    """
    if not least <= finite(given) <= most:
        raise typer.BadParameter(f"{given:g} is not from {least:g} to {most:,.0f}")
    return given


def capacity(
    *,
    engines: Annotated[int, typer.Option("--engines", min=1, max=1_000_000, help="Engine instances.")],
    gpus: Annotated[int, typer.Option("--gpus-per-engine", min=1, max=10_000, help="GPUs of each.")] = 1,
    rate: Annotated[
        float,
        typer.Option(
            "--rounds",
            metavar="NUMBER [0<=x<=100000]",
            callback=lambda given: between(given, 0, 100_000),
            help="Executions a second of each; 0: as measured.",
        ),
    ] = 0,
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="Days that executions are kept.")] = 30,
    kept: Annotated[
        float,
        typer.Option(
            "--sampling-kept",
            metavar="SHARE [0<=x<=1]",
            callback=lambda given: between(given, 0, 1),
            help="Share of cells that sampling keeps whole; 1: no sampling.",
        ),
    ] = 1,
    exporter: Annotated[
        bool, typer.Option("--exporter", help="Through the OpenTelemetry Collector's exporter.")
    ] = False,
    viewers: Annotated[int, typer.Option("--viewers", min=0, max=100_000, help="Live pages that are open.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Say what a fleet of so many engines wants: what runs where, cores, disk, network, and what gives way first.

    From measured figures; docs/capacity.md has them, with their sources and dates.
    """
    from collector.capacity.figures import figures  # noqa: PLC0415 -- --help stays quick
    from collector.capacity.plan import Fleet, plan_of  # noqa: PLC0415
    from collector.capacity.shown import lines_of  # noqa: PLC0415

    plan = plan_of(Fleet(engines, gpus, rate, days, kept, through_exporter=exporter, viewers=viewers), figures())
    if as_json:
        typer.echo(json.dumps(plan._asdict()))
        return
    for line in lines_of(plan):
        typer.echo(line)
