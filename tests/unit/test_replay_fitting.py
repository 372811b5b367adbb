"""The fit: what went into a simulated cell comes out of its record."""

from dataclasses import replace

import numpy as np
import pytest

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.cost_model.registry import cost_model_named
from engine_hooks.scheduler.graphs import Drafts
from engine_hooks.simulator.draws import DraftOutcomes
from engine_hooks.simulator.engine import SimulatedEngine
from engine_hooks.simulator.parameters import MS_NS, S_NS, Engine, Pause, Rounds, Scenario, graphs_at, steady
from engine_hooks.simulator.scenarios import changing
from queries.errors import NotSimulatedError
from queries.replay.drafts import Verified, accepted_tokens, by_depth, fall_off_of, rate_of
from queries.replay.fitting import fitted
from queries.replay.prefills import prefills_of
from queries.replay.stretches import Stretch, stretches_of
from tests.fixtures.query_rows import believing, round_of
from tests.fixtures.replayed_cells import cell_of, live, tail_of

QUIET = Engine(gpu_speed_sd=0, cell_acceptance_sd=0, lane_acceptance_sd=0)


def noise(size: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(seed).standard_normal(size)


def test_a_steady_series_is_one_stretch() -> None:
    found = [stretches_of(noise(1000, seed)) for seed in range(50)]
    assert found == [[Stretch(0, 1000)]] * 50


def test_a_change_of_level_is_found_where_it_is() -> None:
    values = noise(1000, 1)
    values[300:420] += 4
    (_, first), (second, _), _ = stretches_of(values)
    assert (first, second) == (pytest.approx(300, abs=2), first)


def test_the_shortest_stretches_are_found() -> None:
    """Eight values each, a tenth of noise, and nine apart."""
    assert stretches_of(np.array([1.0, 1.1] * 4 + [10.0, 10.1] * 4)) == [Stretch(0, 8), Stretch(8, 16)]


def test_acceptance_by_depth_comes_out_of_totals() -> None:
    factors = by_depth(0.9)
    verified = [
        Verified(drafts, 32, 500, accepted_tokens(drafts, 32, 0.7, factors))
        for drafts in (Drafts(1, 0), Drafts(3, 0), Drafts(5, 16))
    ]
    assert fall_off_of([verified]) == pytest.approx(0.9, abs=0.005)
    assert rate_of(verified, factors) == pytest.approx(0.7, abs=1e-5)


def test_outcomes_follow_acceptance_by_depth() -> None:
    factors = by_depth(0.8)
    outcomes = DraftOutcomes(np.random.default_rng(1), 32, np.zeros(32), factors)
    outcomes.accept_at(0.7)
    drafts = Drafts(4, 8)
    mean = np.mean([outcomes.next(drafts)[0] - 32 for _ in range(6000)])
    assert mean == pytest.approx(accepted_tokens(drafts, 32, 0.7, factors), rel=0.01)


def test_one_rate_at_every_depth_gives_the_outcomes_that_factors_of_one_give() -> None:
    plain, factored = (
        DraftOutcomes(np.random.default_rng(1), 8, np.zeros(8), factors) for factors in ((), by_depth(1.0))
    )
    for outcomes in (plain, factored):
        outcomes.accept_at(0.6)
    assert [plain.next(Drafts(3, 2)) for _ in range(3000)] == [factored.next(Drafts(3, 2)) for _ in range(3000)]


def test_an_engine_comes_out_of_its_record() -> None:
    fit = fitted(cell_of(live(Scenario("quiet", QUIET), "exposed_mean", seed=3)))
    engine = fit.scenario.engine
    assert (engine.lanes, engine.notify_ns, engine.launch_ns) == (32, 100_000, 100_000)
    for graph, true_ns in QUIET.graph_gpu_ns.items():
        # Those that are not used are measured thrice, at the start.
        assert engine.graph_gpu_ns[graph] == pytest.approx(true_ns, rel=0.002 if graph.name == "P128" else 0.02)
    assert engine.gpu_noise == pytest.approx(QUIET.gpu_noise, rel=0.1)
    assert engine.planning_sigma == pytest.approx(QUIET.planning_sigma, rel=0.1)
    assert engine.request_tokens == pytest.approx(QUIET.request_tokens, rel=0.03)
    assert engine.prefill_ns == pytest.approx(QUIET.prefill_ns, rel=0.01)
    (phase,) = fit.scenario.phases
    assert phase.conditions.acceptance == pytest.approx(0.62, abs=0.01)
    assert phase.conditions.graph_planning_ns["P128"] == pytest.approx(QUIET.planning_ns, rel=0.05)
    assert fit.believed_acceptance[0] == pytest.approx(0.62, abs=0.005)
    assert (fit.stumbles, fit.notes, len(fit.head)) == ((), (), 3 * len(QUIET.graph_gpu_ns))


def stumbling(*at_s: float, rounds: Rounds = Rounds.ALL) -> tuple[GraphExecution, ...]:
    executions: list[GraphExecution] = []
    engine = SimulatedEngine(
        Scenario("stumbling", QUIET), cost_model_named("drained_share"), seed=1, on_execution=executions.append
    )
    for at in at_s:
        engine.delay_at(int(at * S_NS), 60 * MS_NS, rounds)
    engine.run(20 * S_NS)
    return tuple(executions)


def test_stumbles_come_out_at_their_times() -> None:
    executions = stumbling(4, 9, 9.03, 15)
    fit = fitted(cell_of(executions))
    began_s = (fit.began_at - executions[0].started_at) / S_NS
    assert [one.at_ns / S_NS + began_s for one in fit.stumbles] == pytest.approx([4, 9, 9.03, 15], abs=0.15)
    assert [one.duration_ns / MS_NS for one in fit.stumbles] == pytest.approx([60] * 4, abs=1.5)


@pytest.mark.parametrize(("factor", "at_s"), [(1.5, 20), (1.5, 8)])
def test_a_host_that_grows_slow_is_no_stumble(factor: float, at_s: int) -> None:
    slowing = replace(changing("slowing", (0, {}), (at_s, {"host_factor": factor})), duration_ns=30 * S_NS)
    for model in ("exposed_mean", "drained_share"):
        fit = fitted(cell_of(live(slowing, model, seed=2)))
        last = fit.scenario.phases[-1]
        assert last.conditions.graph_planning_ns["P128"] > 30 * MS_NS
        assert fit.scenario.phases[0].conditions.graph_planning_ns["P128"] < MS_NS
        assert last.conditions.graph_planning_ns["decode"] < MS_NS
        assert len(fit.stumbles) <= 1


def test_what_changes_in_time_becomes_phases() -> None:
    hotter = replace(changing("hotter", (0, {}), (10, {"gpu_factor": 1.15})), duration_ns=30 * S_NS)
    phases = fitted(cell_of(live(hotter, "drained_share", seed=2))).scenario.phases
    assert phases[-1].conditions.gpu_factor / phases[0].conditions.gpu_factor == pytest.approx(1.15, rel=0.005)
    colder = replace(changing("colder", (0, {}), (10, {"acceptance": 0.5})), duration_ns=30 * S_NS)
    phases = fitted(cell_of(live(colder, "drained_share", seed=2))).scenario.phases
    assert [phase.conditions.acceptance for phase in phases] == pytest.approx([0.65, 0.5], abs=0.03)
    assert phases[1].from_ns == pytest.approx(10 * S_NS, abs=S_NS)


def test_what_changed_before_the_cell_is_no_phase_of_it() -> None:
    hotter = replace(changing("hotter", (0, {}), (6, {"gpu_factor": 1.15})), duration_ns=16 * S_NS)
    (phase,) = fitted(tail_of(live(hotter, "drained_share", seed=2), after_s=8)).scenario.phases
    assert (phase.from_ns, phase.conditions.grammar_lanes) == (0, 0)


def test_a_graph_without_a_gpu_time_or_a_charge_is_not_simulated() -> None:
    """Charged nothing in the decisions there are, and never executed."""
    charged = believing({"decode": (13, 4), "P128": (28, 10), "P64": (0, 8)})
    drafts = {"batch_tokens_drafted": 12, "batch_tokens_accepted": 6}
    rounds = tuple(round_of(n, 28 * n, "P128", 28, **drafts, **charged) for n in range(300))
    with pytest.raises(NotSimulatedError, match="records neither a GPU time of P64 nor a charge for it"):
        fitted(cell_of(rounds))


def test_a_graph_that_changes_alone_changes_alone() -> None:
    slower = changing("slower", (0, {}), (10, {"graph_gpu_factor": {"P128": 1.03}}))
    alone = fitted(cell_of(live(replace(slower, duration_ns=20 * S_NS), "startup_median", seed=2))).scenario
    (first, *_, last) = (phase.conditions for phase in alone.phases)
    assert last.gpu_factor * last.graph_gpu_factor.get("P128", 1) == pytest.approx(
        1.03 * first.gpu_factor * first.graph_gpu_factor.get("P128", 1), rel=0.005
    )


def test_a_record_that_begins_with_a_prefill_has_its_prefills_by_tokens() -> None:
    prefill = {"graph_kind": GraphKind.PREFILL, "batch_tokens_emitted": 0}
    rounds = [
        round_of(n, 20 * n, "prefill", 20, **prefill) if n % 5 == 0 else round_of(n, 20 * n, "P128", 20)
        for n in range(20)
    ]
    # Sixteen rounds of ten tokens, and four prefills: too few to tell that they follow the clock.
    assert prefills_of(rounds) == (40, 0.0)


def test_prefills_follow_the_clock_or_the_tokens() -> None:
    clock = Scenario("5 Hz", replace(QUIET, request_tokens=0), steady(prefill_rate_hz=5))
    by_time = fitted(cell_of(live(clock, "drained_share", seed=2))).scenario
    assert by_time.engine.request_tokens == 0
    assert by_time.phases[0].conditions.prefill_rate_hz == pytest.approx(5, rel=0.03)
    by_tokens = fitted(cell_of(live(Scenario("quiet", QUIET), "drained_share", seed=2))).scenario
    assert by_tokens.engine.request_tokens == pytest.approx(1500, rel=0.03)
    assert by_tokens.phases[0].conditions.prefill_rate_hz == 0


def test_feedback_and_idle_time_are_kept() -> None:
    idle = Scenario(
        "idle", QUIET, steady(grammar_lanes=1), pauses=(Pause(8 * S_NS, 1_456_700_000),), duration_ns=20 * S_NS
    )
    fit = fitted(cell_of(live(idle, "drained_share", seed=2)))
    assert fit.scenario.phases[0].conditions.grammar_lanes
    (pause,) = fit.scenario.pauses
    assert pause.duration_ns == pytest.approx(1_456_700_000, rel=0.03)


def test_a_graph_never_executed_is_what_was_expected_of_it() -> None:
    executions = live(Scenario("quiet", QUIET), "drained_share", seed=3)
    unseen = tuple(one for one in executions if one.graph_name != "P108")
    fit = fitted(tail_of(unseen, after_s=5)._replace(before=()))
    (graph,) = (one for one in fit.scenario.engine.graph_gpu_ns if one.name == "P108")
    assert graph.verification_budget == pytest.approx(108, abs=1)
    assert fit.scenario.engine.graph_gpu_ns[graph] == pytest.approx(
        graphs_at(32)[graph._replace(verification_budget=108)], rel=0.02
    )


def test_what_the_simulation_cannot_show_is_said() -> None:
    executions = [
        one._replace(batch_lanes=31) if number % 7 == 0 and one.scheduler_candidate_graphs else one
        for number, one in enumerate(live(Scenario("quiet", QUIET), "drained_share", seed=3))
    ]
    (note,) = fitted(cell_of(tuple(executions))).notes
    assert note == "the batch had 2 sizes; all rounds are simulated with 32 lanes"
