"""From what a recorded execution stores, `idle_gap` believes again exactly what it believed live."""

import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.cost_model.idle_gap import IdleGap
from engine_hooks.simulator.cell import run_cell
from engine_hooks.simulator.scenarios import scenario_named
from queries.replay.exact import believed_again


@pytest.mark.parametrize(
    "scenario",
    [
        "host 1.5x on speculative rounds until 20 s",
        "host 1.2x on all rounds",
        "bursts of 20 delays every 20 s",
        "prefill 5 Hz + host 1.5x on speculative rounds",
        "grammar lane + delays on all rounds",
    ],
)
def test_every_estimate_comes_out_again(scenario: str) -> None:
    executions: list[GraphExecution] = []
    run_cell(scenario_named(scenario), "idle_gap", 5, on_execution=executions.append)
    compared = 0
    for execution, totals_ns in believed_again(executions, IdleGap()):
        assert totals_ns == execution.scheduler_candidate_estimates_ns
        compared += 1
    assert compared > 1000
