"""The simulated engine keeps to its event model, whatever happens to it."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import FeedbackReason, GpuTimeSource, GraphKind, Purpose
from engine_hooks.contract.validation import refusal
from engine_hooks.cost_model.registry import cost_model_named
from engine_hooks.simulator.cell import POLICIES, run_cell
from engine_hooks.simulator.engine import SimulatedEngine
from engine_hooks.simulator.errors import SimulatorError
from engine_hooks.simulator.oracle import OracleCosts
from engine_hooks.simulator.parameters import (
    MS_NS,
    S_NS,
    Bursts,
    Conditions,
    Engine,
    Pause,
    Phase,
    Rounds,
    Scenario,
    graphs_at,
    steady,
)
from engine_hooks.simulator.recording import EPOCH_UNIX_NS, CellLabels, simulated_resource
from engine_hooks.simulator.scenarios import SCENARIOS, scenario_named

NOTIFY_NS = LAUNCH_NS = 100_000
SECONDS = 6


def executions(
    scenario: Scenario, model: str = "exposed_mean", seed: int = 1, seconds: int = SECONDS
) -> list[GraphExecution]:
    return list(SimulatedEngine(scenario, cost_model_named(model), seed).executions(seconds * S_NS))


def device_start(one: GraphExecution) -> int:
    assert one.graph_gpu_start_offset_ns is not None
    return one.started_at + one.graph_gpu_start_offset_ns


def device_end(one: GraphExecution) -> int:
    return device_start(one) + one.graph_gpu_time_ns


def observed(one: GraphExecution) -> int:
    return one.started_at + one.duration_ns


DISTURBED = {
    **{name: SCENARIOS[name] for name in ("clean", "grammar lane", "prefill 5 Hz", "host 1.5x on all rounds")},
    "delays": Scenario("delays", phases=steady(delay_rate_hz=3.0, delay_rounds=Rounds.ALL)),
    "bursts": Scenario("bursts", bursts=(Bursts(3, 2 * S_NS, S_NS),)),
    "pauses": Scenario("pauses", pauses=(Pause(2 * S_NS, S_NS), Pause(4 * S_NS, 500 * MS_NS))),
}


@pytest.mark.parametrize("scenario", DISTURBED.values(), ids=DISTURBED.keys())
def test_the_event_model(scenario: Scenario) -> None:
    rounds = executions(scenario)
    assert [one.graph_sequence for one in rounds] == list(range(len(rounds)))
    for before, one in pairwise(rounds):
        assert device_start(one) == max(one.started_at + LAUNCH_NS, device_end(before))
        assert one.graph_queue_depth == (0 if one.started_at >= device_end(before) else 1)
        idle_from = one.started_at if one.graph_after_idle else device_end(before)
        assert one.graph_wall_time_ns == device_end(one) - idle_from
        assert observed(one) >= device_end(one) + NOTIFY_NS
        if before.graph_completion_feedback:
            assert one.started_at > observed(before)
    for first, _, third in zip(rounds, rounds[1:], rounds[2:], strict=False):
        assert third.started_at > device_end(first) + NOTIFY_NS  # two in flight, never three


@pytest.mark.parametrize("scenario", DISTURBED.values(), ids=DISTURBED.keys())
def test_executions_keep_the_contract_and_add_up(scenario: Scenario) -> None:
    resource = simulated_resource("sim-1", host_name="somewhere")
    seen: list[GraphExecution] = []
    labels = CellLabels(cell_id="c1", cell_arm="before", cell_position=3, cell_concurrency=32)
    engine = SimulatedEngine(scenario, cost_model_named("drained_share"), 2, on_execution=seen.append, labels=labels)
    totals = engine.run(SECONDS * S_NS)
    assert totals.rounds == len(seen)
    assert totals.tokens_emitted == sum(one.batch_tokens_emitted or 0 for one in seen)
    for one in seen:
        assert refusal(one, resource) is None
        assert (one.cell_id, one.cell_arm, one.cell_position, one.cell_concurrency) == ("c1", "before", 3, 32)
        assert one.graph_gpu_time_source == GpuTimeSource.SIMULATED
        assert one.scheduler_cost_model == "drained_share"
        if one.scheduler_candidate_graphs:
            chosen = one.scheduler_candidate_graphs.index(one.graph_name)
            assert one.scheduler_candidate_estimates_ns[chosen] == one.scheduler_estimate_ns
            assert one.batch_tokens_emitted == 32 + (one.batch_tokens_accepted or 0)
            assert (one.batch_tokens_accepted or 0) <= (one.batch_tokens_drafted or 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_gives_the_same_cell(policy: str) -> None:
    scenario = Scenario("short", phases=steady(delay_rate_hz=1.0), duration_ns=5 * S_NS)
    runs: list[list[GraphExecution]] = [[], []]
    results = [run_cell(scenario, policy, 7, on_execution=run.append) for run in runs]
    assert runs[0] == runs[1]
    assert results[0] == results[1] == run_cell(scenario, policy, 7)
    assert results[0] != run_cell(scenario, policy, 8)


def test_a_grammar_lane_needs_feedback_and_prefills_do() -> None:
    reasons = {
        one.graph_completion_feedback_reason
        for one in executions(SCENARIOS["grammar lane"])
        if one.batch_tokens_emitted
    }
    assert reasons == {FeedbackReason.GRAMMAR}
    prefills = [one for one in executions(SCENARIOS["clean"]) if one.graph_kind == GraphKind.PREFILL]
    assert {one.graph_completion_feedback_reason for one in prefills} == {FeedbackReason.PREFILL}
    assert not any(one.scheduler_candidate_graphs for one in prefills)


def test_prefills_follow_requests_and_rate() -> None:
    def prefills(scenario: Scenario) -> int:
        return sum(one.graph_kind == GraphKind.PREFILL for one in executions(scenario))

    emitted = sum(one.batch_tokens_emitted or 0 for one in executions(SCENARIOS["clean"]))
    assert prefills(SCENARIOS["clean"]) == pytest.approx(emitted / 1500, abs=1)
    assert prefills(Scenario("none", Engine(request_tokens=0))) == 0
    assert prefills(Scenario("5 Hz", Engine(request_tokens=0), steady(prefill_rate_hz=5.0))) == pytest.approx(30, abs=1)


def test_delays_meet_the_rounds_they_are_meant_for() -> None:
    def late(scenario: Scenario, **delay: Rounds) -> list[GraphExecution]:
        seen: list[GraphExecution] = []
        engine = SimulatedEngine(scenario, cost_model_named("drained_share"), 1, on_execution=seen.append)
        if delay:
            engine.delay_at(3 * S_NS, 200 * MS_NS, delay["rounds"])
        engine.run(SECONDS * S_NS)
        return [one for one in seen if one.graph_wall_time_ns - one.graph_gpu_time_ns > 20 * MS_NS]

    plain = Scenario("plain", Engine(graph_gpu_ns=graphs_at(32, plain_ns=8 * MS_NS)))
    assert late(plain) == []
    assert late(plain, rounds=Rounds.SPECULATIVE) == []
    (one,) = late(plain, rounds=Rounds.ALL)
    assert one.started_at - EPOCH_UNIX_NS == pytest.approx(3.2 * S_NS, abs=30 * MS_NS)
    speculative = Scenario("speculative")
    assert len(late(speculative, rounds=Rounds.SPECULATIVE)) == 1
    in_bursts = late(Scenario("bursts", bursts=(Bursts(3, 2 * S_NS, S_NS, median_ns=100 * MS_NS, sigma=0.01),)))
    assert len(in_bursts) == 9
    sequences = [one.graph_sequence for one in in_bursts[:3]]
    assert sequences == list(range(sequences[0], sequences[0] + 3))


def test_pauses_are_no_handoff() -> None:
    rounds = executions(DISTURBED["pauses"])
    after = [one for one in rounds if one.graph_after_idle]
    assert [round((one.started_at - EPOCH_UNIX_NS) / S_NS, 1) for one in after] == [0.0, 3.0, 4.5]
    assert all(one.graph_wall_time_ns == one.graph_gpu_time_ns + LAUNCH_NS for one in after)


def test_phases_change_the_engine() -> None:
    phases = (
        Phase(0, Conditions()),
        Phase(2 * S_NS, Conditions(acceptance=0.01, gpu_factor=2.0)),
        Phase(4 * S_NS, Conditions(graph_gpu_factor={"P128": 3.0}, acceptance=0.99)),
    )
    rounds = [one for one in executions(Scenario("phases", phases=phases)) if one.graph_name == "P128"]

    def between(from_s: float, until_s: float, figure: Callable[[GraphExecution], float]) -> float:
        inside = [figure(one) for one in rounds if from_s <= (one.started_at - EPOCH_UNIX_NS) / S_NS < until_s]
        return sum(inside) / len(inside)

    gpu_ns = between(1, 2, lambda one: one.graph_gpu_time_ns)
    assert between(2.1, 2.4, lambda one: one.graph_gpu_time_ns) == pytest.approx(2 * gpu_ns, rel=0.02)
    assert between(1, 2, lambda one: one.batch_tokens_accepted or 0) == pytest.approx(40, rel=0.1)
    assert between(2.1, 2.4, lambda one: one.batch_tokens_accepted or 0) < 5


def test_calibrations_are_undisturbed_replays_at_the_start() -> None:
    rounds = executions(SCENARIOS["host 2.0x on all rounds"])
    start = rounds[:12]
    assert [one.graph_name for one in start] == [g for g in ("decode", "P64", "P108", "P128") for _ in range(3)]
    assert all(one.graph_purpose == Purpose.REFRESH and one.graph_queue_depth == 0 for one in start)
    assert all(one.batch_tokens_emitted == 0 and not one.scheduler_candidate_graphs for one in start)
    assert max(one.graph_wall_time_ns - one.graph_gpu_time_ns for one in start) < 3 * MS_NS


def test_pace_is_asked_before_each_round() -> None:
    asked: list[int] = []
    seen: list[GraphExecution] = []

    def pace(virtual_ns: int) -> None:
        assert all(observed(one) - EPOCH_UNIX_NS <= virtual_ns for one in seen)
        asked.append(virtual_ns)

    engine = SimulatedEngine(
        Scenario("paced"), cost_model_named("drained_share"), 1, on_execution=seen.append, pace=pace
    )
    engine.run(S_NS)
    assert asked == sorted(asked)
    assert len(asked) >= len(seen) > 20


def test_the_oracle_knows_what_a_graph_costs_in_the_long_run() -> None:
    for name in ("clean", "grammar lane", "host 2.0x on all rounds", "host 1.05x on speculative rounds"):
        scenario = scenario_named(name)
        only = {graph: ns for graph, ns in scenario.engine.graph_gpu_ns.items() if graph.name == "P128"}
        engine = Engine(graph_gpu_ns=only, request_tokens=0)
        alone = Scenario(name, engine, scenario.phases)
        believed = OracleCosts(alone, 5).estimate("P128", S_NS)
        rounds = executions(alone, seed=5)[10:]
        measured_ns = (device_end(rounds[-1]) - device_end(rounds[0])) / (len(rounds) - 1)
        assert believed is not None
        assert believed.total_ns == pytest.approx(measured_ns, rel=0.02), name


def test_an_engine_without_speculation_is_never_stuck() -> None:
    plain_only = {graph: ns for graph, ns in graphs_at(32).items() if graph.kind == GraphKind.PLAIN_DECODE}
    result = run_cell(Scenario("plain", Engine(graph_gpu_ns=plain_only), duration_ns=2 * S_NS), "drained_share", 1)
    assert result.plain_fraction == 1.0
    assert not result.stuck


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(SimulatorError, match="phases must start at 0"):
        Scenario("late", phases=(Phase(5, Conditions()),))
    with pytest.raises(SimulatorError, match="at least one delay"):
        Scenario("empty bursts", bursts=(Bursts(0, S_NS, S_NS),))
    with pytest.raises(SimulatorError, match="above 0"):
        Scenario("short", duration_ns=0)
    with pytest.raises(SimulatorError, match="not at 5"):
        graphs_at(5)
    with pytest.raises(SimulatorError, match="no scenario is called"):
        scenario_named("nothing")
