"""What a decision knew: equal instants, of engines that take one timestamp and of hosts that come late."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.cost_model.registry import COST_MODELS
from engine_hooks.simulator.scenarios import SCENARIOS
from queries.findings.diagnosis import diagnose
from queries.findings.findings import EstimateInflation
from queries.findings.record import record_of
from queries.findings.timeline import timeline_of
from queries.known_by_then import Knowledge, knowledge_of, may_be_at_once, votes_of
from queries.replay.replaying import exact_replay
from tests.fixtures.looping_engine import LoopingEngine
from tests.fixtures.query_rows import MS, round_of
from tests.fixtures.replayed_cells import cell_of, live

LATER_NS = 20_000


def seen_after(sequence: int, at_ms: float, duration_ns: int, **fields: Any) -> GraphExecution:
    return round_of(sequence, at_ms, "P128", 29, **fields)._replace(duration_ns=duration_ns)


@pytest.mark.parametrize(
    ("observed_ms", "depth", "feedback", "at_once", "is_known"),
    [
        (29.999, 3, False, False, True),
        (30.001, 0, True, True, False),
        (30, 0, False, False, False),
        (30, 0, False, True, True),
        (30, None, False, True, True),
        (30, None, False, False, False),
        (30, 0, True, False, True),
        (30, 1, False, False, True),
        (30, 2, False, True, False),
    ],
)
def test_at_one_instant_the_record_tells(
    observed_ms: float, depth: int | None, feedback: bool, at_once: bool, is_known: bool
) -> None:
    seen = seen_after(5, 0, int(observed_ms * MS), graph_completion_feedback=feedback)
    decision = round_of(7, 30, "P128", 29, graph_queue_depth=depth)
    assert Knowledge(at_once).has(decision, seen) is is_known


def test_nothing_knows_itself() -> None:
    one = seen_after(5, 0, 0)
    assert not Knowledge(at_once=True).has(one, one)


@pytest.mark.parametrize("model", COST_MODELS)
@pytest.mark.parametrize("in_flight_max", [1, 2])
def test_one_timestamp_for_observing_and_submitting_is_replayed_exactly(model: str, in_flight_max: int) -> None:
    executions = LoopingEngine(model, in_flight_max=in_flight_max).run(10)
    following = executions[in_flight_max:]
    observed = {one.started_at + one.duration_ns for one in executions}
    assert all(one.started_at in observed for one in following)
    assert {one.graph_queue_depth for one in following[10:100]} == {in_flight_max - 1}
    exact = exact_replay(cell_of(executions), model)
    assert (exact.agreement, exact.different) == (1.0, ())


@given(st.integers(0, 10**6), st.sampled_from(sorted(COST_MODELS)), st.integers(1, 3), st.sampled_from([0, LATER_NS]))
@settings(max_examples=12, deadline=None)
def test_the_model_in_charge_gives_every_charge_again(seed: int, model: str, in_flight_max: int, later_ns: int) -> None:
    executions = LoopingEngine(model, later_ns=later_ns, in_flight_max=in_flight_max, seed=seed).run(5)
    assert exact_replay(cell_of(executions), model).agreement == 1.0


def test_a_fooled_engine_gets_the_post_mortem_of_its_twin_that_looks_again_before_it_submits() -> None:
    at_once, later = (
        diagnose(record_of(LoopingEngine("exposed_mean", later_ns=ns).run(30), service_instance_id="engine-1"))
        for ns in (0, LATER_NS)
    )
    assert [one.kind for one in at_once.findings] == [one.kind for one in later.findings]
    inflation, of_twin = at_once.findings[0], later.findings[0]
    assert isinstance(inflation, EstimateInflation)
    assert isinstance(of_twin, EstimateInflation)
    (poison,), (poison_of_twin,) = inflation.poisons, of_twin.poisons
    assert poison.graph == poison_of_twin.graph
    assert poison.sequence == poison_of_twin.sequence
    assert poison.wall_time_ns
    assert poison.wall_time_ns > 60 * MS
    assert inflation.loss_percent == pytest.approx(of_twin.loss_percent, abs=0.2)
    assert inflation.decisions_turned == pytest.approx(of_twin.decisions_turned, rel=0.01)


def test_a_cell_that_begins_fooled_names_what_lifted_the_estimate_before_it() -> None:
    executions = LoopingEngine("exposed_mean").run(30)
    since = executions[0].started_at + 10**10
    record = record_of(
        [one for one in executions if one.started_at >= since],
        [one for one in executions if one.started_at < since],
        service_instance_id="engine-1",
    )
    (inflation,) = (one for one in diagnose(record).findings if isinstance(one, EstimateInflation))
    (stumbled,) = (one for one in executions if one.graph_wall_time_ns > 60 * MS)
    assert [poison.sequence for poison in inflation.poisons] == [stumbled.graph_sequence]


def test_the_model_in_charge_tells_where_no_change_of_graph_does() -> None:
    executions = LoopingEngine("idle_gap").run(20)
    before, cell = executions[200:500], executions[500:]
    assert not votes_of((*before, *cell)).only
    agreement = exact_replay(cell_of(cell, before), "idle_gap").agreement
    assert agreement is not None
    assert agreement > 0.95


@pytest.mark.parametrize("model", [model for model in COST_MODELS if model != "startup_median"])
@pytest.mark.parametrize("scenario", ["host 1.2x on all rounds", "host 20 ms every round, acceptance 0.5"])
def test_a_host_that_came_late_did_not_know_at_the_instant_of_its_submission(scenario: str, model: str) -> None:
    executions = live(SCENARIOS[scenario], model, seed=3)
    assert knowledge_of(executions) == Knowledge(at_once=False)
    assert exact_replay(cell_of(executions), model).agreement == 1.0


def test_a_late_host_falls_on_observations_as_often_as_one_timestamp_does() -> None:
    assert may_be_at_once(live(SCENARIOS["host 1.2x on all rounds"], "exposed_mean", seed=3))


@pytest.mark.parametrize("late_ns", [0, 1])
def test_a_host_that_waits_for_results_has_them_at_the_instant_of_its_submission(late_ns: int) -> None:
    rounds = [seen_after(number, 30 * number, 30 * MS - late_ns, graph_completion_feedback=True) for number in range(5)]
    assert timeline_of(record_of(rounds)).host.tolist() == [-1, -1, late_ns, late_ns, late_ns]
