"""The regret table: tokens/s that each cost model loses against the oracle, scenario by scenario."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from engine_hooks.simulator.cell import ORACLE
from engine_hooks.simulator.experiment_results import SEED_STRIDE
from engine_hooks.simulator.intervals import Interval, t_interval
from engine_hooks.simulator.many_cells import CellTask, run_cells
from engine_hooks.simulator.parameters import Scenario


class Regret(NamedTuple):
    """What each model loses in each scenario."""

    models: tuple[str, ...]
    percent: Mapping[str, Mapping[str, Interval]]
    """By scenario and model; over paired seeds."""
    oracle_tokens_per_second: Mapping[str, float]

    def worst(self, model: str) -> float:
        """The largest mean of a model over the scenarios."""
        return max(by_model[model].mean for by_model in self.percent.values())

    def average(self, model: str) -> float:
        """The mean over the scenarios, each of the same weight."""
        return sum(by_model[model].mean for by_model in self.percent.values()) / len(self.percent)


def run_regret(
    scenarios: Sequence[Scenario],
    models: Sequence[str],
    *,
    replicates: int,
    seed: int,
    jobs: int,
    on_done: Callable[[], object],
) -> Regret:
    """Run each scenario under the oracle and each model, `replicates` times; `on_done` is called after each cell."""
    policies = (ORACLE, *models)
    seeds = range(seed * SEED_STRIDE, seed * SEED_STRIDE + replicates)
    keys = [(one, policy, number) for one in scenarios for number in seeds for policy in policies]
    results = run_cells([CellTask(*key) for key in keys], jobs, on_done)
    speeds = {
        (scenario.name, policy, number): result.tokens_per_second
        for (scenario, policy, number), result in zip(keys, results, strict=True)
    }

    def lost_percent(scenario: str, model: str) -> list[float]:
        return [100 * (1 - speeds[scenario, model, n] / speeds[scenario, ORACLE, n]) for n in seeds]

    return Regret(
        tuple(models),
        {one.name: {model: t_interval(lost_percent(one.name, model)) for model in models} for one in scenarios},
        {one.name: sum(speeds[one.name, ORACLE, n] for n in seeds) / replicates for one in scenarios},
    )
