"""The published experiment, run: 40 pairs of cells a replicate, and what they come to."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from engine_hooks.simulator.cell import CellResult
from engine_hooks.simulator.experiment import OTHER_LANES, ExperimentCell, Package, experiment_cells, lanes_scenario
from engine_hooks.simulator.intervals import PairedComparison, compare_pairs
from engine_hooks.simulator.many_cells import CellTask, run_cells

SEED_STRIDE: Final = 1_000_000
"""Between the cells' seeds of two `--seed`s: no cell is shared by two experiments of less than 25,000 replicates."""
OTHER_LANES_PAIRS: Final = 2
"""Pairs a replicate at each other number of lanes."""
LANES_PACKAGES: Final = {
    lanes: Package(f"{lanes} lane{'s' if lanes > 1 else ''}", 0.0, 1.0, (before, after, 0, 0))
    for lanes, before, after in OTHER_LANES
}
"""The other numbers of lanes as groups of cells, beside the packages."""


class RanCell(NamedTuple):
    """One cell of the experiment, run."""

    replicate: int
    cell: ExperimentCell
    result: CellResult


class Group(NamedTuple):
    """The cells of one model in one package, or of all packages."""

    stuck: list[int]
    """Stuck cells in each replicate."""
    tokens_per_second: float
    """Mean over all cells."""


class ExperimentResults:
    """Cells of an experiment, in the order in which they were run."""

    def __init__(self, models: Sequence[str], replicates: int, cells: Sequence[RanCell]) -> None:
        self.models = tuple(models)
        self.replicates = replicates
        self.cells = tuple(cells)

    @cached_property
    def published(self) -> tuple[RanCell, ...]:
        """The cells of the published 40 pairs; the rest are those at other numbers of lanes."""
        return tuple(ran for ran in self.cells if ran.cell.package not in LANES_PACKAGES.values())

    def group(self, model: str, package: Package | None = None) -> Group:
        """A model's cells in a package; of the published 40 without one."""
        chosen = self._chosen(model, package)
        stuck = [0] * self.replicates
        for ran in chosen:
            stuck[ran.replicate] += ran.result.stuck
        return Group(stuck, statistics.fmean(ran.result.tokens_per_second for ran in chosen))

    def comparison(self, before: str, after: str, package: Package | None = None) -> PairedComparison:
        """Two models compared, paired by place in the mirrored order."""
        return compare_pairs(self._in_pairs(before, package), self._in_pairs(after, package))

    def gains_percent(self, before: str, after: str) -> list[float]:
        """Gain in the mean over the published 40, in each replicate."""
        return [
            100 * (self._mean_of(after, replicate) / self._mean_of(before, replicate) - 1)
            for replicate in range(self.replicates)
        ]

    def _chosen(self, model: str, package: Package | None) -> list[RanCell]:
        if package is None:
            return [ran for ran in self.published if ran.cell.policy == model]
        return [ran for ran in self.cells if ran.cell.policy == model and ran.cell.package == package]

    def _in_pairs(self, model: str, package: Package | None) -> list[float]:
        """Tokens/s by replicate, package and pair; both arms come in this order, whichever ran first."""
        return [ran.result.tokens_per_second for ran in self._chosen(model, package)]

    def _mean_of(self, model: str, replicate: int) -> float:
        cells = (ran for ran in self._chosen(model, None) if ran.replicate == replicate)
        return statistics.fmean(ran.result.tokens_per_second for ran in cells)


def run_experiment(
    models: Sequence[str], replicates: int, seed: int, jobs: int, on_done: Callable[[], object]
) -> ExperimentResults:
    """Run every cell of every replicate under each model; `on_done` is called after each cell."""
    planned = list(planned_cells(models, replicates, seed))
    tasks = [CellTask(cell.scenario, cell.policy, cell.seed) for _, cell in planned]
    results = run_cells(tasks, jobs, on_done)
    ran = [RanCell(replicate, cell, result) for (replicate, cell), result in zip(planned, results, strict=True)]
    return ExperimentResults(models, replicates, ran)


def planned_cells(models: Sequence[str], replicates: int, seed: int) -> Iterable[tuple[int, ExperimentCell]]:
    """Replicate and cell, in the mirrored order; `seed` shifts every cell's own."""
    for replicate in range(replicates):
        for cell in (*experiment_cells(replicate, tuple(models)), *other_lanes_cells(replicate, tuple(models))):
            yield replicate, cell._replace(seed=cell.seed + seed * SEED_STRIDE)


def other_lanes_cells(replicate: int, models: tuple[str, ...]) -> Iterable[ExperimentCell]:
    """Cells at 1, 8 and 16 lanes, in mirrored order too."""
    for lanes, package in LANES_PACKAGES.items():
        scenario = lanes_scenario(lanes)
        for pair in range(OTHER_LANES_PAIRS):
            order = models if pair % 2 == 0 else models[::-1]
            for place, model in enumerate(order):
                cell_seed = replicate * OTHER_LANES_PAIRS + pair
                yield ExperimentCell(package, pair, model, pair * len(models) + place, scenario, cell_seed)
