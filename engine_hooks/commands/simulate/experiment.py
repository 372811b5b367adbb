"""`tachograph simulate experiment`: the published experiment of 40 cells, before and after."""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.table import Table

from engine_hooks.commands.simulate.choices import (
    JobsOption,
    JsonOption,
    ModelsOption,
    MoreModels,
    SeedOption,
    jobs_of,
    models_of,
)
from engine_hooks.commands.simulate.progress import progress_over
from engine_hooks.commands.terminal import folding, output_console
from engine_hooks.simulator.experiment import AFTER, BEFORE, CELLS_PER_PACKAGE, PACKAGES, Package
from engine_hooks.simulator.experiment_results import (
    LANES_PACKAGES,
    ExperimentResults,
    Group,
    RanCell,
    planned_cells,
    run_experiment,
)
from engine_hooks.simulator.intervals import Interval, PairedComparison

DEFAULT_MODELS: Final = (BEFORE, AFTER, "idle_gap")
GROUPS: Final[tuple[Package | None, ...]] = (*PACKAGES, None, *LANES_PACKAGES.values())
"""The table's rows; `None` is all of the published 40 cells."""
ALL_CELLS: Final = f"all {CELLS_PER_PACKAGE * len(PACKAGES)}"


def experiment(
    models: ModelsOption = None,
    *,
    more: MoreModels = None,
    replicates: Annotated[int, typer.Option(min=1, max=10_000, help="How often the 40 cells are run.")] = 10,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the published experiment: 40 cells under each cost model, in mirrored order.

    The first model is the one that the others are compared with, pair by pair.
    """
    chosen = models_of(models, more, DEFAULT_MODELS)
    began = time.monotonic()
    cells = sum(1 for _ in planned_cells(chosen, replicates, seed))
    with progress_over(cells, "cells") as on_done:
        results = run_experiment(chosen, replicates, seed, jobs_of(jobs), on_done)
    if as_json:
        typer.echo(json.dumps(as_document(results, seed), indent=2))
        return
    console = output_console()
    console.print(folding(table_of(results)))
    if len(chosen) > 1:
        console.print(folding(comparisons_of(results)))
    for line in distribution_of(results):
        console.print(line, highlight=False)
    console.print(f"{cells:,} cells of 30 s, seed {seed}, in {time.monotonic() - began:.1f} s", highlight=False)


def as_document(results: ExperimentResults, seed: int) -> dict[str, Any]:
    """The results as `--json` prints them. They depend on models, replicates and seed alone."""
    return {
        "seed": seed,
        "replicates": results.replicates,
        "models": {model: model_document(results, model) for model in results.models},
        "comparisons": [
            {"before": results.models[0], "after": after, "cells": name_of(group)}
            | comparison_document(results.comparison(results.models[0], after, group))
            for after in results.models[1:]
            for group in GROUPS
        ],
        "gain_percent": {after: results.gains_percent(results.models[0], after) for after in results.models[1:]},
        "cells": [cell_document(ran) for ran in results.cells],
    }


def model_document(results: ExperimentResults, model: str) -> dict[str, Any]:
    """What one model came to: in the published 40 cells, by package, and at other numbers of lanes."""
    return group_document(results.group(model)) | {
        "by_package": {package.name: group_document(results.group(model, package)) for package in PACKAGES},
        "by_lanes": {
            str(lanes): group_document(results.group(model, package)) for lanes, package in LANES_PACKAGES.items()
        },
    }


def group_document(group: Group) -> dict[str, Any]:
    """Stuck cells in each replicate, and mean tokens/s."""
    return {"stuck": group.stuck, "tokens_per_second": group.tokens_per_second}


def comparison_document(comparison: PairedComparison) -> dict[str, Any]:
    """A verdict with what it rests on."""
    shift = comparison.shift_percent
    return {
        "pairs": comparison.pairs,
        "shift_percent": shift.mean,
        "ci95": shift.ci95 and list(shift.ci95),
        "verdict": comparison.verdict,
    }


def cell_document(ran: RanCell) -> dict[str, Any]:
    """One cell, in the order of the experiment."""
    cell = ran.cell
    return {
        "replicate": ran.replicate,
        "package": cell.package.name,
        "pair": cell.pair,
        "position": cell.position,
        "model": cell.policy,
        "seed": cell.seed,
        **ran.result._asdict(),
    }


def table_of(results: ExperimentResults) -> Table:
    """The layout of the published table, with a column for each model."""
    heads = ("published\nbefore -> after (stuck)", *results.models)
    return table_by_group(
        "tokens/s, and stuck cells a replicate [fewest-most]",
        heads,
        lambda group: (published_text(group), *(group_text(results.group(model, group)) for model in results.models)),
    )


def comparisons_of(results: ExperimentResults) -> Table:
    """The verdict on each model but the first, pair by pair."""
    before, *others = results.models
    return table_by_group(
        f"against {before}, in mirrored pairs: shift of the mean, 95 % interval",
        others,
        lambda group: [comparison_text(results.comparison(before, after, group)) for after in others],
    )


def table_by_group(title: str, heads: Sequence[str], cells: Callable[[Package | None], Sequence[str]]) -> Table:
    """One row for each package, for all of them, and for each other number of lanes."""
    table = Table("cells", *heads, title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for group in GROUPS:
        table.add_row(name_of(group), *cells(group), end_section=group is PACKAGES[-1] or group is None)
    return table


def name_of(group: Package | None) -> str:
    """A row's name."""
    return ALL_CELLS if group is None else group.name


def published_text(group: Package | None) -> str:
    """What was published about these cells."""
    if group is None:
        columns = list(zip(*(package.published for package in PACKAGES), strict=True))
        before, after = (round(statistics.fmean(column)) for column in columns[:2])
        return f"{before} -> {after} ({sum(columns[2])} -> {sum(columns[3])})"
    before, after, stuck_before, stuck_after = group.published
    return f"{before} -> {after} ({stuck_before} -> {stuck_after})"


def group_text(group: Group) -> str:
    """`2378, 3.1 [1-4]`: tokens/s, stuck cells a replicate, fewest and most."""
    mean = statistics.fmean(group.stuck)
    fewest, most = min(group.stuck), max(group.stuck)
    return f"{group.tokens_per_second:.0f}, {mean:.1f}" + (f" [{fewest}-{most}]" if len(group.stuck) > 1 else "")


def comparison_text(comparison: PairedComparison) -> str:
    """`+2.61 % [1.90, 3.32] better`."""
    return f"{interval_text(comparison.shift_percent)} {comparison.verdict}"


def interval_text(interval: Interval) -> str:
    """`+2.61 % [1.90, 3.32]`."""
    ci95 = "" if interval.ci95 is None else f" [{interval.ci95[0]:.2f}, {interval.ci95[1]:.2f}]"
    return f"{interval.mean:+.2f} %{ci95}"


def distribution_of(results: ExperimentResults) -> list[str]:
    """Lines that show every replicate, not the mean alone."""
    lines = [
        f"{model}: stuck of {CELLS_PER_PACKAGE * len(PACKAGES)} in each replicate: "
        + " ".join(map(str, results.group(model).stuck))
        for model in results.models
    ]
    before, *others = results.models
    for after in others:
        gains = results.gains_percent(before, after)
        spread = f", sd {statistics.stdev(gains):.2f} %" if len(gains) > 1 else ""
        lines.append(
            f"{after} against {before}: {statistics.fmean(gains):+.2f} % in the mean{spread}; in each replicate: "
            + " ".join(f"{gain:+.2f}" for gain in gains)
        )
    return lines
