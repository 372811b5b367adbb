"""From what a recorded execution stores, `idle_gap` believes again exactly what it believed live."""

from collections import deque

import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.cost_model.idle_gap import IdleGap
from engine_hooks.cost_model.model import measurement_of
from engine_hooks.simulator.cell import run_cell
from engine_hooks.simulator.scenarios import scenario_named


def observed_at(execution: GraphExecution) -> int:
    return execution.started_at + execution.duration_ns


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
    model, in_flight, compared = IdleGap(), deque[GraphExecution](), 0
    submitted_before = 0
    for execution in executions:
        # The host planned once it had submitted the round before, and knew what it had observed by then.
        decided_at = submitted_before
        while in_flight and observed_at(in_flight[0]) < execution.started_at:
            done = in_flight.popleft()
            decided_at = max(decided_at, observed_at(done))
            model.record(measurement_of(done, observed_at(done)))
        if execution.scheduler_candidate_graphs:
            believed = [model.estimate(graph, decided_at) for graph in execution.scheduler_candidate_graphs]
            totals_ns = tuple(estimate.total_ns for estimate in believed if estimate is not None)
            assert totals_ns == execution.scheduler_candidate_estimates_ns
            compared += 1
        in_flight.append(execution)
        submitted_before = execution.started_at
    assert compared > 1000
