"""The incident that Tachograph exists for, in the simulated engine: two stumbles of the host, half a minute of plain decode."""

from collections.abc import Sequence

import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind, Purpose
from engine_hooks.cost_model.registry import cost_model_named
from engine_hooks.simulator.engine import SimulatedEngine
from engine_hooks.simulator.parameters import MS_NS, S_NS, Engine, Rounds, Scenario, steady

DURATION_NS = 45 * S_NS
P128_STUMBLE_NS = 61 * MS_NS
"""As long as the round is to last: the round before it covers its GPU time and no more."""
P108_STUMBLE_NS = 54 * MS_NS
SCENARIO = Scenario(
    "the incident",
    Engine(gpu_speed_sd=0.0, lane_acceptance_sd=0.0, cell_acceptance_sd=0.0),
    phases=steady(acceptance=0.62),
    duration_ns=DURATION_NS,
)


def run(model: str, seed: int) -> list[GraphExecution]:
    """P128 meets a stumble at 5 s; P108, if it has taken over, another at 6 s."""
    executions: list[GraphExecution] = []
    engine = SimulatedEngine(SCENARIO, cost_model_named(model), seed, on_execution=executions.append)
    from_ns = engine.calibrate()
    engine.delay_at(from_ns + 5 * S_NS, P128_STUMBLE_NS, Rounds.SPECULATIVE)
    engine.delay_at(from_ns + 6 * S_NS, P108_STUMBLE_NS, Rounds.SPECULATIVE)
    engine.run(from_ns + DURATION_NS)
    return executions


def charged_ms(executions: Sequence[GraphExecution], graph: str) -> list[float]:
    """What the scheduler charged `graph` at each of its decisions, in ms."""
    return [
        charges[names.index(graph)] / MS_NS
        for names, charges in ((e.scheduler_candidate_graphs, e.scheduler_candidate_estimates_ns) for e in executions)
        if names
    ]


def stumbled(executions: Sequence[GraphExecution], graph: str) -> GraphExecution:
    """The one round of `graph` that the host came late for."""
    late = [e for e in executions if e.graph_name == graph and e.graph_wall_time_ns > 50 * MS_NS]
    assert len(late) == 1
    return late[0]


def around(executions: Sequence[GraphExecution], poisoned: GraphExecution) -> tuple[float, float]:
    """What its graph was charged when it was chosen, and three decisions later: two were in flight."""
    place = executions.index(poisoned)
    charges = [charged_ms([execution], poisoned.graph_name) for execution in executions[place : place + 6]]
    flat = [charge for found in charges for charge in found]
    return flat[0], flat[3]


@pytest.mark.parametrize("seed", range(3))
def test_two_stumbles_put_exposed_mean_in_plain_decode_until_refresh(seed: int) -> None:
    executions = run("exposed_mean", seed)
    p128, p108 = stumbled(executions, "P128"), stumbled(executions, "P108")
    assert p128.graph_wall_time_ns / MS_NS == pytest.approx(61, abs=1.5)
    assert p108.graph_wall_time_ns / MS_NS == pytest.approx(54, abs=1.5)
    assert around(executions, p128) == pytest.approx((29.0, 34.5), abs=0.6)
    assert around(executions, p108) == pytest.approx((28.0, 32.3), abs=0.6)

    after = executions[executions.index(p108) + 3 :]
    next_speculative = next(e for e in after if e.graph_kind == GraphKind.SPECULATIVE)
    assert next_speculative.graph_purpose == Purpose.REFRESH
    assert next_speculative.started_at - p108.started_at > 20 * S_NS
    in_between = after[: after.index(next_speculative)]
    assert {e.graph_kind for e in in_between} == {GraphKind.PLAIN_DECODE, GraphKind.PREFILL}


@pytest.mark.parametrize("model", ["drained_share", "idle_gap"])
@pytest.mark.parametrize("seed", range(3))
def test_under_the_corrected_models_nothing_happens(model: str, seed: int) -> None:
    executions = run(model, seed)
    assert sum(e.graph_wall_time_ns > 50 * MS_NS for e in executions) == 2
    ordinary = [e for e in executions if e.graph_purpose == Purpose.ORDINARY and e.scheduler_candidate_graphs]
    assert {e.graph_kind for e in ordinary} == {GraphKind.SPECULATIVE}
    assert max(charged_ms(executions, "P128")) < 29.0
