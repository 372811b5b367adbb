"""`tachograph simulate scenarios`: what each cost model loses against an oracle, scenario by scenario."""

import json
import time
from typing import Annotated, Any

import typer
from rich.table import Table

from engine_hooks.commands.simulate.choices import (
    JobsOption,
    JsonOption,
    ListOption,
    ModelsOption,
    MoreModels,
    SeedOption,
    jobs_of,
    models_of,
    scenarios_of,
)
from engine_hooks.commands.simulate.progress import progress_over
from engine_hooks.commands.terminal import folding, output_console
from engine_hooks.cost_model.registry import COST_MODELS
from engine_hooks.simulator.intervals import Interval
from engine_hooks.simulator.regret import Regret, run_regret


def scenarios(
    models: ModelsOption = None,
    *,
    more: MoreModels = None,
    scenario: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these; repeatable, `*` stands for any text.")
    ] = None,
    invented: Annotated[
        bool, typer.Option("--invented", help="The scenarios that no cost model was tuned on, instead of the table's.")
    ] = False,
    replicates: Annotated[int, typer.Option(min=1, max=10_000, help="Paired seeds of each scenario.")] = 20,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    as_list: ListOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print the regret table: tokens/s lost against an oracle that knows the true costs, in percent."""
    chosen = models_of(models, more, tuple(COST_MODELS))
    selected = scenarios_of(scenario, invented=invented)
    if as_list:
        names = [one.name for one in selected]
        typer.echo(json.dumps(names) if as_json else "\n".join(names))
        return
    cells = len(selected) * replicates * (1 + len(chosen))
    began = time.monotonic()
    with progress_over(cells, "cells") as on_done:
        regret = run_regret(selected, chosen, replicates=replicates, seed=seed, jobs=jobs_of(jobs), on_done=on_done)
    if as_json:
        typer.echo(json.dumps(as_document(regret, seed, replicates), indent=2))
        return
    console = output_console()
    console.print(folding(table_of(regret, replicates)))
    console.print(f"{cells:,} cells of 60 s, seed {seed}, in {time.monotonic() - began:.1f} s", highlight=False)


def as_document(regret: Regret, seed: int, replicates: int) -> dict[str, Any]:
    """The table as `--json` prints it. It depends on models, scenarios, replicates and seed alone."""
    return {
        "seed": seed,
        "replicates": replicates,
        "regret_percent": {
            name: {
                model: {"mean": lost.mean, "ci95": lost.ci95 and list(lost.ci95)} for model, lost in by_model.items()
            }
            for name, by_model in regret.percent.items()
        },
        "worst": {model: regret.worst(model) for model in regret.models},
        "average": {model: regret.average(model) for model in regret.models},
        "oracle_tokens_per_second": dict(regret.oracle_tokens_per_second),
    }


def table_of(regret: Regret, replicates: int) -> Table:
    """One row a scenario, then the worst and the average of each model."""
    table = Table(title=f"tokens/s lost against the oracle, %, 95 % interval over {replicates} seeds")
    table.add_column("scenario")
    table.add_column("oracle\ntokens/s", justify="right")
    for model in regret.models:
        table.add_column(model, justify="right")
    names = list(regret.percent)
    for name in names:
        lost = [loss_text(regret.percent[name][model]) for model in regret.models]
        table.add_row(name, f"{regret.oracle_tokens_per_second[name]:.0f}", *lost, end_section=name == names[-1])
    table.add_row("worst", "", *(f"{regret.worst(model):.2f}" for model in regret.models))
    table.add_row("average", "", *(f"{regret.average(model):.2f}" for model in regret.models))
    return table


def loss_text(lost: Interval) -> str:
    """`4.71 ± 0.42`."""
    half = "" if lost.ci95 is None else f" ± {(lost.ci95[1] - lost.ci95[0]) / 2:.2f}"
    return f"{max(lost.mean, 0.0) if abs(lost.mean) < 0.005 else lost.mean:.2f}{half}"
