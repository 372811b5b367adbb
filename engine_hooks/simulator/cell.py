"""One simulated cell from beginning to end, and what it came to."""

from collections.abc import Callable
from typing import NamedTuple

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.cost_model.model import CostModel
from engine_hooks.cost_model.registry import COST_MODELS, cost_model_named
from engine_hooks.simulator.engine import SimulatedEngine
from engine_hooks.simulator.oracle import OracleCosts
from engine_hooks.simulator.parameters import S_NS, Scenario
from engine_hooks.simulator.recording import CellLabels

ORACLE = "oracle"
POLICIES = (ORACLE, *COST_MODELS)
"""What a cell can schedule by: the oracle, and every cost model."""


class CellResult(NamedTuple):
    """What a cell came to."""

    tokens_per_second: float
    plain_fraction: float
    """Share of the ordinary decoding time spent in plain decode."""
    stuck: bool
    """Whether that share is above 0.3 although there was a speculative graph to choose."""
    rounds: int
    """Executions observed after start-up, prefills included."""


def cost_model_for(policy: str, scenario: Scenario, seed: int) -> CostModel:
    """The cost model of that name, or the oracle of this very cell.

    Raises `UnknownCostModelError` for any other name.
    """
    return OracleCosts(scenario, seed) if policy == ORACLE else cost_model_named(policy)


def run_cell(
    scenario: Scenario,
    policy: str | CostModel,
    seed: int,
    *,
    on_execution: Callable[[GraphExecution], None] | None = None,
    labels: CellLabels | None = None,
) -> CellResult:
    """Run one cell under a policy, given by name or as a fresh cost model.

    The cell's clock starts once the start-up calibrations are over; their executions are
    still handed to `on_execution`. The same seed brings the same noise, delays and luck
    with drafts to every policy.
    """
    model = cost_model_for(policy, scenario, seed) if isinstance(policy, str) else policy
    engine = SimulatedEngine(scenario, model, seed, on_execution=on_execution, labels=labels)
    from_ns = engine.calibrate()
    totals = engine.run(from_ns + scenario.duration_ns)
    tokens_per_second = totals.tokens_emitted * S_NS / scenario.duration_ns
    return CellResult(tokens_per_second, totals.plain_fraction, totals.stuck, totals.rounds)
