"""The incident: the host stumbled twice, and the engine sat in plain decode for more than 20 s."""

import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind, Purpose
from engine_hooks.cost_model.model import Measurement
from engine_hooks.cost_model.registry import cost_model_named
from engine_hooks.simulator.engine import SimulatedEngine
from engine_hooks.simulator.parameters import S_NS, Engine, Rounds, Scenario
from engine_hooks.simulator.recording import EPOCH_UNIX_NS

US_NS = 1_000
INCIDENTS = [("P128", 28_500, 29_000, 61_000, 34_500), ("P108", 27_200, 28_300, 54_000, 32_300)]
"""Graph, GPU time, usual wall time, wall time of the stumble, estimate then; in microseconds, as published."""
QUIET = Scenario("incident", Engine(gpu_speed_sd=0, gpu_noise=0.001, cell_acceptance_sd=0, request_tokens=0))


def unqueued(graph: str, gpu_us: int, wall_us: int) -> Measurement:
    return Measurement(graph, gpu_us * US_NS, wall_us * US_NS, True, False, Purpose.ORDINARY, 0)


@pytest.mark.parametrize(("graph", "gpu_us", "usual_us", "stumble_us", "estimate_us"), INCIDENTS)
def test_one_stumble_lifts_the_estimate(
    graph: str, gpu_us: int, usual_us: int, stumble_us: int, estimate_us: int
) -> None:
    fooled, corrected = cost_model_named("exposed_mean"), cost_model_named("drained_share")
    for model, before_us, after_us in ((fooled, usual_us, estimate_us), (corrected, gpu_us, gpu_us)):
        model.record(unqueued(graph, gpu_us, usual_us))
        before = model.estimate(graph, 0)
        model.record(unqueued(graph, gpu_us, stumble_us))
        after = model.estimate(graph, 0)
        assert before is not None
        assert after is not None
        assert before.total_ns == before_us * US_NS
        assert after.total_ns == pytest.approx(after_us * US_NS, abs=400 * US_NS)


def with_two_stumbles(model: str) -> list[GraphExecution]:
    """40 s in which P128, then P108, is held up as in the incident, at 5 s and at 6 s."""
    executions: list[GraphExecution] = []
    engine = SimulatedEngine(QUIET, cost_model_named(model), seed=1, on_execution=executions.append)
    engine.delay_at(5 * S_NS, 60_300 * US_NS, Rounds.SPECULATIVE)
    engine.delay_at(6 * S_NS, 53_700 * US_NS, Rounds.SPECULATIVE)
    engine.run(40 * S_NS)
    return executions


def seconds(execution: GraphExecution) -> float:
    return (execution.started_at - EPOCH_UNIX_NS) / S_NS


def test_the_fooled_scheduler_sits_in_plain_until_expiry_and_credit() -> None:
    executions = with_two_stumbles("exposed_mean")
    stumbles = [e for e in executions if e.graph_wall_time_ns - e.graph_gpu_time_ns > 20_000 * US_NS]
    assert [e.graph_name for e in stumbles] == ["P128", "P108"]
    assert stumbles[0].graph_wall_time_ns == pytest.approx(61_000 * US_NS, rel=0.03)
    assert stumbles[1].graph_wall_time_ns == pytest.approx(54_000 * US_NS, rel=0.03)

    stumbled, longest = stumbles[1].graph_sequence, plain_stretch(executions)
    # Two submissions after the stumble, since one more was in flight by then.
    assert longest[0].graph_sequence - stumbled in {2, 3}
    assert seconds(longest[-1]) - seconds(longest[0]) > 20

    ended_by = next(e for e in executions if e.graph_sequence > longest[-1].graph_sequence)
    refreshed = [e for e in executions if e.graph_purpose == Purpose.REFRESH and seconds(e) > 10]
    assert any(abs(e.graph_sequence - ended_by.graph_sequence) <= 3 for e in refreshed)
    assert seconds(ended_by) > 5 + 30
    assert ended_by.graph_kind == GraphKind.SPECULATIVE


def test_under_the_correction_nothing_happens() -> None:
    decoding = [e for e in with_two_stumbles("drained_share") if e.graph_purpose == Purpose.ORDINARY]
    assert sum(e.graph_wall_time_ns - e.graph_gpu_time_ns > 20_000 * US_NS for e in decoding) == 2
    assert not [e for e in decoding if e.graph_kind == GraphKind.PLAIN_DECODE]


def plain_stretch(executions: list[GraphExecution]) -> list[GraphExecution]:
    """The longest run of ordinary decoding rounds that were all plain."""
    longest: list[GraphExecution] = []
    run: list[GraphExecution] = []
    for execution in executions:
        if execution.graph_purpose == Purpose.ORDINARY and execution.graph_kind == GraphKind.PLAIN_DECODE:
            run.append(execution)
            longest = max(longest, run, key=len)
        elif execution.graph_purpose == Purpose.ORDINARY and execution.graph_kind == GraphKind.SPECULATIVE:
            run = []
    return longest
