"""The scheduler: choice, calibration, refreshes, probes."""

from itertools import accumulate
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_hooks.contract.names import FeedbackReason, GraphKind, Purpose
from engine_hooks.cost_model.errors import CostModelError
from engine_hooks.cost_model.model import CostModel, Measurement
from engine_hooks.cost_model.registry import cost_model_named
from engine_hooks.scheduler.acceptance import AcceptanceEstimator, depth_counts
from engine_hooks.scheduler.decision import BatchState, Decision, best_candidate
from engine_hooks.scheduler.errors import SchedulerError
from engine_hooks.scheduler.feedback import feedback_reason
from engine_hooks.scheduler.graphs import Drafts, Graph, drafts_under
from engine_hooks.scheduler.scheduler import Scheduler, SchedulerSettings

MS = 1_000_000
S = 1_000 * MS
DECODE = Graph("decode", GraphKind.PLAIN_DECODE)
P64, P108, P128 = (Graph(f"P{n}", GraphKind.SPECULATIVE, n) for n in (64, 108, 128))
COSTS_MS = {"decode": 13.5, "P64": 24.3, "P108": 27.2, "P128": 28.5}


def measurement(graph: str, gpu_ms: float, now_ns: int = 0, gap_ms: float = 0) -> Measurement:
    gpu_ns = int(gpu_ms * MS)
    return Measurement(graph, gpu_ns, gpu_ns + int(gap_ms * MS), gap_ms > 0, False, Purpose.ORDINARY, now_ns)


def measured_model(**costs_ms: float) -> CostModel:
    model = cost_model_named("exposed_mean")
    for graph, gpu_ms in (COSTS_MS | costs_ms).items():
        model.record(measurement(graph, gpu_ms))
    return model


def scheduler(model: CostModel | None = None, **settings: float) -> Scheduler:
    chosen = SchedulerSettings(**{"calibration_executions": 0, "acceptance_prior": 0.62, **settings})  # type: ignore[arg-type]
    return Scheduler([DECODE, P64, P108, P128], model or measured_model(), chosen)


def choose(one: Scheduler, now_ns: int = MS, lanes: int = 32) -> Decision:
    return one.choose(BatchState(now_ns, lanes))


def test_chooses_by_expected_tokens_per_estimate() -> None:
    decision = choose(scheduler())
    assert decision.graph == P128
    assert decision.purpose == Purpose.ORDINARY
    assert decision.drafts == Drafts(3, 0)
    assert decision.candidates == ("decode", "P64", "P108", "P128")
    assert decision.candidate_estimates_ns == (13_500_000, 24_300_000, 27_200_000, 28_500_000)
    # The recorded cells' schedulers expected exactly these at an acceptance of 0.62; ours says them in steps of 1/256.
    exactly = (32.0, 51.84, 67.000736, 71.767296)
    assert decision.candidate_expected_tokens == tuple(round(tokens * 256) / 256 for tokens in exactly)
    rates = [
        tokens / ns
        for tokens, ns in zip(decision.candidate_expected_tokens, decision.candidate_estimates_ns, strict=True)
    ]
    assert decision.margin == pytest.approx(rates[3] / rates[2] - 1)
    assert decision.candidate_margins == pytest.approx([rate / rates[3] - 1 for rate in rates])


def test_a_dear_graph_loses_to_plain_decode() -> None:
    assert choose(scheduler(measured_model(P64=40, P108=40, P128=40))).graph == DECODE


def test_the_decision_is_ready_for_the_span() -> None:
    model = measured_model()
    model.record(measurement("P128", 28.5, gap_ms=0.5))
    fields = choose(scheduler(model)).span_fields()
    assert fields["scheduler_cost_model"] == "exposed_mean"
    assert fields["scheduler_estimate_ns"] == 29_000_000
    assert (fields["scheduler_estimate_gpu_ns"], fields["scheduler_estimate_handoff_ns"]) == (28_500_000, 500_000)
    assert fields["scheduler_expected_tokens"] == fields["scheduler_candidate_expected_tokens"][3]


def test_equal_histories_give_equal_decisions() -> None:
    one, other = scheduler(), scheduler()
    for number in range(300):
        now_ns = number * 28 * MS
        decision = choose(one, now_ns)
        assert decision == choose(other, now_ns)
        for each in (one, other):
            each.record(measurement(decision.graph.name, 28 + number % 3, now_ns), (32, 20, 12), (20, 12, number % 12))


def test_ties_go_to_the_first_and_a_cost_of_nothing_is_no_crash() -> None:
    assert best_candidate((2.0, 2.0), (10, 10)) == 0
    assert best_candidate((1.0, 2.0), (0, 10)) == 0


@pytest.mark.parametrize(
    ("budget", "lanes", "expected"),
    [
        (128, 32, Drafts(3, 0)),
        (108, 32, Drafts(2, 12)),
        (64, 32, Drafts(1, 0)),
        (128, 16, Drafts(7, 0)),
        (128, 8, Drafts(7, 0)),
        (33, 32, Drafts(0, 1)),
        (32, 32, None),
        (8, 0, None),
    ],
)
def test_a_budget_is_shared_among_lanes(budget: int, lanes: int, expected: Drafts | None) -> None:
    drafts = drafts_under(budget, lanes)
    assert drafts == expected
    if drafts is not None:
        assert drafts.total(lanes) + lanes <= budget


def test_graphs_whose_budget_does_not_hold_the_batch_are_no_candidates() -> None:
    one = scheduler()
    assert choose(one, lanes=100).candidates == ("decode", "P108", "P128")
    assert choose(one, lanes=200).graph == DECODE
    with pytest.raises(SchedulerError, match="no graph suits a batch of 200 lanes"):
        choose(Scheduler([P64], measured_model(), SchedulerSettings(calibration_executions=0)), lanes=200)
    assert one.choose(BatchState(MS, 32, drafts_per_lane_max=1)).candidate_expected_tokens[1:] == (13271 / 256,) * 3


def test_calibrates_each_graph_three_times_at_start_up() -> None:
    one = Scheduler([DECODE, P128], cost_model_named("drained_share"))
    names = []
    for _ in range(6):
        decision = choose(one)
        assert decision.calibrates
        assert decision.purpose == Purpose.REFRESH
        assert decision.candidates == ()
        assert decision.margin is None
        names.append(decision.graph.name)
        one.record(measurement(decision.graph.name, COSTS_MS[decision.graph.name]))
    assert names == ["decode"] * 3 + ["P128"] * 3
    assert not one.calibrating
    assert not choose(one).calibrates


def test_chooses_among_the_measured_and_calibrates_when_there_are_none() -> None:
    model = cost_model_named("drained_share")
    one = scheduler(model)
    assert choose(one).calibrates
    model.record(measurement("P64", 24))
    assert choose(one).candidates == ("P64",)
    assert choose(one).margin is None
    model.record(measurement("decode", 13))
    assert choose(one).candidates == ("decode", "P64")


def test_expired_graphs_are_refreshed_oldest_first_out_of_credit() -> None:
    model = cost_model_named("exposed_mean")
    for at, graph in enumerate(("P64", "decode", "P108", "P128")):
        model.record(measurement(graph, COSTS_MS[graph], at * MS))
    one = scheduler(model)
    refreshed: list[tuple[float, str]] = []
    now_ns = 4 * MS
    while now_ns < 40 * S:
        decision = choose(one, now_ns)
        now_ns += decision.estimate.gpu_ns  # type: ignore[union-attr]
        if decision.purpose == Purpose.REFRESH:
            refreshed.append((now_ns / S, decision.graph.name))
        else:
            assert decision.graph == P128
        one.record(measurement(decision.graph.name, COSTS_MS[decision.graph.name], now_ns))
    # 60 ms saved up: 24.3 and 13.5 at once, then P108 (27.2) once 1 % of the time has made up for the lacking 5 ms.
    assert [name for _, name in refreshed] == ["P64", "decode", "P108"]
    assert refreshed[0][0] == pytest.approx(30, abs=0.1)
    assert refreshed[2][0] - refreshed[1][0] == pytest.approx(0.5, abs=0.1)


def test_a_refresh_on_its_way_is_not_sent_again_and_no_share_means_none() -> None:
    def purposes(**settings: float) -> list[Purpose]:
        one = scheduler(**settings)
        choose(one, MS)
        times = [*range(int(29.9 * S), int(30.5 * S), 28 * MS)]
        found = []
        for now_ns in times:
            one.record(measurement("P128", 28.5, now_ns))
            found.append(choose(one, now_ns).purpose)
        return found

    refreshes = purposes().count(Purpose.REFRESH)
    assert refreshes == 2  # decode and P64, neither of them observed in this half second
    assert purposes(refresh_share=0).count(Purpose.REFRESH) == 0
    assert purposes(refresh_retry_ns=0).count(Purpose.REFRESH) > refreshes


def test_a_graph_dearer_than_the_cap_is_refreshed_for_a_full_credit() -> None:
    model = measured_model(P108=200)
    one = Scheduler([P108, P128], model, SchedulerSettings(calibration_executions=0))
    choose(one, MS)
    model.record(measurement("P128", 28.5, 31 * S))
    assert choose(one, 31 * S).graph == P108


@pytest.mark.parametrize("interval_ns", [0, 5 * S])
def test_acceptance_is_probed_after_an_interval_without_speculation(interval_ns: int) -> None:
    one = scheduler(measured_model(P64=60, P108=60, P128=60), probe_interval_ns=interval_ns)
    probes = []
    for now_ns in range(0, 21 * S, 14 * MS):
        decision = choose(one, now_ns)
        one.record(measurement(decision.graph.name, 13.5 if decision.graph == DECODE else 60, now_ns))
        if decision.purpose == Purpose.ACCEPTANCE_PROBE:
            probes.append(now_ns)
            assert decision.graph == P128
    assert len(probes) == (4 if interval_ns else 0)


def test_acceptance_follows_slowly_and_by_depth() -> None:
    acceptance = AcceptanceEstimator(prior=0.5, memory_trials=1000, update_rounds=1)
    acceptance.learn((32, 16), (32, 0))
    first, second, third = acceptance.by_depth[:3]
    assert first == pytest.approx(0.5 + 16 / 1032)
    assert second == pytest.approx(0.5 - 8 / 1016)
    assert third == 0.5
    for _ in range(300):
        acceptance.learn((32, 32), (32, 0))
    assert acceptance.by_depth[0] > 0.99
    assert acceptance.by_depth[1] < 0.01
    assert acceptance.expected_tokens(32, [Drafts(0, 0), Drafts(7, 0)])[1] == pytest.approx(64, rel=0.02)


@given(
    st.lists(st.floats(0, 1), min_size=7, max_size=7),
    st.integers(1, 256),
    st.builds(Drafts, st.integers(0, 7), st.integers(0, 256)),
)
def test_expected_tokens_come_in_steps_of_a_256th(prior: list[float], lanes: int, drafts: Drafts) -> None:
    """Acceptance is known to a percent: digits beyond are noise, which every record of a decision would carry."""
    reach = [*accumulate(prior, mul, initial=1.0), 0.0]
    exactly = lanes * sum(reach[: drafts.full + 1]) + drafts.extra_lanes * reach[drafts.full + 1]
    (said,) = AcceptanceEstimator(prior=prior).expected_tokens(lanes, [drafts])
    assert said * 256 == int(said * 256)
    assert said == pytest.approx(exactly, abs=1 / 512 + 1e-9)


def test_acceptance_takes_in_some_rounds_together() -> None:
    acceptance = AcceptanceEstimator(update_rounds=3)
    before = list(acceptance.by_depth)
    for _ in range(2):
        acceptance.learn((32,), (32,))
        assert acceptance.by_depth == before
    acceptance.learn((32,), (32,))
    assert acceptance.by_depth[0] > before[0]


def test_depth_counts_of_lanes() -> None:
    # Four lanes: all of 3, 1 of 3, none of 3, and all of 1.
    assert depth_counts([3, 3, 3, 1], [3, 1, 0, 1]) == ((4, 2, 1), (3, 1, 1))
    assert depth_counts([], []) == ((), ())


@pytest.mark.parametrize(
    ("kind", "inputs", "reason"),
    [
        (GraphKind.PREFILL, {}, FeedbackReason.PREFILL),
        (GraphKind.MIXED, {}, FeedbackReason.PREFILL),
        (GraphKind.STATE, {}, FeedbackReason.STATE),
        (GraphKind.SPECULATIVE, {"grammar_lanes": 1}, FeedbackReason.GRAMMAR),
        (GraphKind.PLAIN_DECODE, {"host_stopped_lanes": 2}, FeedbackReason.HOST_STOP),
        (GraphKind.SPECULATIVE, {"copied_proposals": True}, FeedbackReason.COPIED_PROPOSALS),
        (GraphKind.DRAFT, {"completion_inputs": True}, FeedbackReason.COMPLETION_INPUTS),
        (GraphKind.SPECULATIVE, {}, None),
    ],
)
def test_the_rule_for_completion_feedback(
    kind: GraphKind, inputs: dict[str, int], reason: FeedbackReason | None
) -> None:
    assert feedback_reason(kind, **inputs) == reason  # type: ignore[arg-type]


def test_what_cannot_work_is_refused() -> None:
    model = cost_model_named("drained_share")
    for graphs in ([], [DECODE, DECODE], [Graph("P", GraphKind.SPECULATIVE)]):
        with pytest.raises(SchedulerError):
            Scheduler(graphs, model)
    for settings in ({"refresh_share": 2}, {"probe_interval_ns": -1}):
        with pytest.raises(SchedulerError):
            SchedulerSettings(**settings)  # type: ignore[arg-type]
    for wrong in ({"prior": 1.5}, {"memory_trials": 0}, {"update_rounds": 0}):
        with pytest.raises(SchedulerError):
            AcceptanceEstimator(**wrong)  # type: ignore[arg-type]
    with pytest.raises(SchedulerError, match="2 trials, 1 hits"):
        AcceptanceEstimator().learn((1, 1), (1,))
    with pytest.raises(CostModelError):
        cost_model_named("none")
