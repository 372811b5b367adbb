"""What `idle_gap` promises: a stumble never charges, a host slower than the device always does."""

import itertools
import json
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.errors import SettingError, StateError
from engine_hooks.cost_model.host_time import HostTime
from engine_hooks.cost_model.idle_gap import IdleGap
from engine_hooks.cost_model.model import Estimate, Measurement
from engine_hooks.cost_model.retries import RetrySettings

MS = 1_000_000
S = 1_000 * MS
GPU_NS = {"decode": 13 * MS, "P108": 27 * MS, "P128": 28 * MS}


class Pipeline:
    """Two submissions in flight: makes the measurements that an engine would."""

    def __init__(self) -> None:
        self.submitted_ns = self.observed_ns = self.observed_earlier_ns = self.end_ns = 0

    def round(self, graph: str, host_ns: int, *, feedback_before: bool = False, **fields: object) -> Measurement:
        """One round of `graph` that the host took `host_ns` to submit."""
        ready_ns = self.observed_ns if feedback_before else self.observed_earlier_ns
        self.submitted_ns = max(self.submitted_ns, ready_ns) + host_ns
        start_ns = max(self.submitted_ns, self.end_ns)
        gap_ns, self.end_ns = start_ns - self.end_ns, start_ns + GPU_NS[graph]
        self.observed_earlier_ns, self.observed_ns = self.observed_ns, self.end_ns
        measured = Measurement(
            graph,
            GPU_NS[graph],
            GPU_NS[graph] + gap_ns,
            gap_ns > 0,
            False,
            Purpose.ORDINARY,
            self.observed_ns,
            False,
            self.observed_ns - self.submitted_ns,
        )
        return measured._replace(**fields)


def fed(rounds: Iterable[tuple[str, int]], **model_settings: int) -> tuple[IdleGap, Pipeline]:
    """A model that has seen rounds of (graph, host time in ms), and the pipeline they ran through."""
    model, pipeline = IdleGap(**model_settings), Pipeline()
    for graph, host_ms in rounds:
        model.record(pipeline.round(graph, host_ms * MS))
    return model, pipeline


def charged_ns(model: IdleGap, graph: str, now_ns: int) -> int:
    """What the graph is charged beyond its GPU time."""
    believed = model.estimate(graph, now_ns)
    assert believed is not None
    return believed.handoff_ns


@pytest.mark.parametrize("host_ms", [0, 1, 20, 27])
def test_the_host_time_is_measured_although_no_gap_shows(host_ms: int) -> None:
    host, pipeline = HostTime(), Pipeline()
    times = [host.of(pipeline.round("P128", host_ms * MS)) for _ in range(12)]
    assert times[0] is None
    assert times[2:] == [host_ms * MS] * 10
    assert host.level_ns == host_ms * MS


@pytest.mark.parametrize(("feedback", "host_ms"), [(True, 0), (False, 29)])
def test_results_that_a_round_needs_are_there_at_the_very_instant_of_its_submission(
    feedback: bool, host_ms: int
) -> None:
    """An engine with one timestamp a loop, one round in flight."""
    rounds = [
        Measurement("P128", 28 * MS, 29 * MS, True, feedback, Purpose.ORDINARY, 29 * MS * n, duration_ns=29 * MS)
        for n in range(1, 6)
    ]
    host = HostTime()
    assert [host.of(one) for one in rounds][2:] == [host_ms * MS] * 3


def test_after_an_idle_engine_and_without_submissions_no_host_time_is_invented() -> None:
    host, pipeline = HostTime(), Pipeline()
    assert [host.of(pipeline.round("P128", MS, duration_ns=None)) for _ in range(3)] == [None, 0, 0]
    assert host.of(pipeline.round("P128", 80 * MS, after_idle=True)) is None
    late = pipeline.round("P128", 40 * MS, duration_ns=None)
    assert host.of(late) == late.wall_time_ns  # the round before, of the same graph, and the gap


@settings(max_examples=50, deadline=None)
@given(
    before=st.integers(8, 40),
    stumbles=st.integers(1, 5),
    stumble_ms=st.integers(30, 5000),
    after=st.integers(0, 20),
    with_duration=st.booleans(),
)
def test_a_stumble_and_a_short_burst_never_charge(
    before: int, stumbles: int, stumble_ms: int, after: int, with_duration: bool
) -> None:
    model, pipeline = IdleGap(), Pipeline()
    for host_ms in [1] * before + [stumble_ms] * stumbles + [1] * after:
        one = pipeline.round("P128", host_ms * MS)
        model.record(one if with_duration else one._replace(duration_ns=None))
        assert charged_ns(model, "P128", pipeline.observed_ns) == 0


@settings(max_examples=50, deadline=None)
@given(on_time=st.integers(0, 30), host_ms=st.integers(32, 300), with_duration=st.booleans())
def test_a_host_slower_than_the_device_always_charges(on_time: int, host_ms: int, with_duration: bool) -> None:
    model, pipeline = IdleGap(), Pipeline()
    for host in [1] * on_time + [host_ms] * 12:
        one = pipeline.round("P128", host * MS)
        model.record(one if with_duration else one._replace(duration_ns=None))
    believed = model.estimate("P128", pipeline.observed_ns)
    assert believed is not None
    assert believed.total_ns == host_ms * MS  # what a round costs in the long run


def test_a_slow_host_hidden_behind_a_longer_graph_is_seen() -> None:
    model, pipeline = fed([("decode", 20), ("P128", 20)] * 10)
    assert charged_ns(model, "decode", pipeline.observed_ns) == 7 * MS
    assert charged_ns(model, "P128", pipeline.observed_ns) == 0


def test_scatter_round_a_slow_host_does_not_clear_it() -> None:
    model, pipeline = fed([("P128", 31)] * 8 + [("P128", host) for host in (27, 31, 26, 31, 32)])
    assert 0 < charged_ns(model, "P128", pipeline.observed_ns) <= 3 * MS


def test_one_round_on_time_clears_and_three_late_ones_charge_again() -> None:
    model, pipeline = fed([("P128", 1)] * 3 + [("P128", 60)] * 8)
    assert charged_ns(model, "P128", pipeline.observed_ns) == 32 * MS
    seen = []
    for host_ms in (1, 60, 60, 60):
        model.record(pipeline.round("P128", host_ms * MS))
        seen.append(charged_ns(model, "P128", pipeline.observed_ns))
    assert seen[:3] == [0, 0, 0]
    assert seen[3] > 0


def test_two_rounds_on_time_acquit_and_six_late_ones_are_needed_again() -> None:
    model, pipeline = fed([("P128", 1)] * 3 + [("P128", 60)] * 8 + [("P128", 1)] * 2)
    charged = []
    for _ in range(6):
        model.record(pipeline.round("P128", 60 * MS))
        charged.append(charged_ns(model, "P128", pipeline.observed_ns) > 0)
    assert charged == [False] * 5 + [True]


def test_while_the_host_is_slow_one_late_round_convicts_a_further_graph() -> None:
    model, pipeline = fed([("P108", 1), ("decode", 1)] * 8 + [("P128", 60)] * 8)
    model.record(pipeline.round("P108", 60 * MS))
    assert charged_ns(model, "P108", pipeline.observed_ns) == 33 * MS
    model.record(pipeline.round("decode", MS))
    assert charged_ns(model, "decode", pipeline.observed_ns) == 0


def offers(model: IdleGap, graph: str, from_ns: int, until_ns: int) -> list[int]:
    """Instants, a millisecond apart, at which a charged graph is offered for its GPU time."""
    return [now for now in range(from_ns, until_ns, MS) if charged_ns(model, graph, now) == 0]


def test_a_charged_graph_is_offered_uncharged_for_one_round_and_then_later() -> None:
    model, pipeline = fed([("P128", 57)] * 8 + [("decode", 1)] * 5)
    now_ns = pipeline.observed_ns
    offered = offers(model, "P128", now_ns, now_ns + 3 * S)
    assert now_ns + S < offered[0] < now_ns + 3 * S
    first = [now for now in offered if now < offered[0] + 100 * MS]
    assert len(first) <= 29  # no longer than the graph runs: a slow host plans 57 ms and cannot take it up twice
    assert max(b - a for a, b in itertools.pairwise(offered)) > 100 * MS  # again, should nobody take it
    while pipeline.observed_ns < offered[0]:
        model.record(pipeline.round("decode", MS))
    model.record(pipeline.round("P128", 57 * MS))
    again = offers(model, "P128", pipeline.observed_ns, pipeline.observed_ns + 20 * S)
    assert again[0] - pipeline.observed_ns > 3 * S


def test_nobody_is_offered_uncharged_while_the_host_is_slow_in_general() -> None:
    model, pipeline = fed([("P128", 60)] * 8 + [("decode", 60)] * 60)
    assert pipeline.observed_ns > 3 * S
    assert offers(model, "P128", pipeline.observed_ns, pipeline.observed_ns + S) == []


def test_a_stumble_that_convicts_by_one_round_is_doubted_while_the_host_is_slow_in_general() -> None:
    model, pipeline = fed([("decode", 1)] * 6 + [("P128", 57)] * 8 + [("decode", 90)] + [("P128", 57)] * 10)
    now_ns = pipeline.observed_ns
    assert charged_ns(model, "decode", now_ns) == 77 * MS
    assert offers(model, "decode", now_ns, now_ns + 4 * S) != []


def test_a_retry_in_vain_puts_off_the_others_and_one_on_time_brings_them_forward() -> None:
    model, pipeline = fed([("P128", 57)] * 8 + [("P108", 57)] + [("decode", 1)] * 200)
    start_ns = pipeline.observed_ns
    assert offers(model, "P108", start_ns, start_ns + S) != []
    model.record(pipeline.round("P128", 57 * MS))
    in_vain_ns = pipeline.observed_ns
    assert offers(model, "P108", in_vain_ns, in_vain_ns + 2 * S) == []
    model.record(pipeline.round("P128", MS))
    assert offers(model, "P108", pipeline.observed_ns, pipeline.observed_ns + S) != []


def test_a_round_just_on_time_which_clears_nothing_brings_no_retry_forward() -> None:
    model, pipeline = fed([("P128", 57)] * 8 + [("P108", 57)] + [("decode", 1)] * 10)
    model.record(pipeline.round("P128", 27 * MS))  # on time by less than an eighth of its 28 ms
    assert charged_ns(model, "P128", pipeline.observed_ns) > 0
    assert offers(model, "P108", pipeline.observed_ns, pipeline.observed_ns + 100 * MS) == []


def test_rounds_that_need_feedback_are_charged_their_handoff_and_no_gap_besides() -> None:
    model, pipeline = IdleGap(), Pipeline()
    for _ in range(20):
        model.record(pipeline.round("P128", 40 * MS, feedback_before=True, completion_feedback=True, drained=True))
    believed = model.estimate("P128", pipeline.observed_ns)
    assert believed is not None
    assert believed.total_ns == (28 + 40) * MS


def believed_of(model: IdleGap, now_ns: int) -> list[Estimate | None]:
    return [model.estimate(graph, now_ns + later_ns) for graph in GPU_NS for later_ns in (0, S, 3 * S, 40 * S)]


HOSTS = st.sampled_from((0, 1, 20, 26, 30, 57, 200))
ROUNDS = st.tuples(
    st.sampled_from(list(GPU_NS)),
    HOSTS,
    st.integers(1, 8),
    st.sampled_from(Purpose),
    st.booleans(),
    st.sampled_from((0, 0, 0, 3 * S)),
)


@settings(max_examples=60, deadline=None)
@given(stretches=st.lists(ROUNDS, max_size=20), cut=st.integers(0, 20))
def test_saving_and_restoring_anywhere_changes_nothing(
    stretches: list[tuple[str, int, int, Purpose, bool, int]], cut: int
) -> None:
    pipeline, whole, restored = Pipeline(), IdleGap(), IdleGap()
    for number, (graph, host_ms, times, purpose, after_idle, pause_ns) in enumerate(stretches):
        if number == cut:
            state = json.loads(json.dumps(whole.save()))
            restored = IdleGap()
            restored.restore(state)
        pipeline.observed_earlier_ns = pipeline.observed_ns = pipeline.observed_ns + pause_ns
        for _ in range(times):
            one = pipeline.round(graph, host_ms * MS, purpose=purpose, after_idle=after_idle)
            whole.record(one)
            restored.record(one)
            assert believed_of(whole, one.now_ns) == believed_of(restored, one.now_ns)
            for believed in believed_of(whole, one.now_ns):
                assert believed is None or believed.total_ns >= believed.gpu_ns
    assert whole.save() == restored.save()


def test_a_clock_that_starts_elsewhere_changes_nothing() -> None:
    epoch_ns, pipeline = 1_793_491_200 * S, Pipeline()
    here, there = IdleGap(), IdleGap()
    for graph, host_ms in [("P128", 1), *[("P128", 57)] * 9, *[("decode", 1)] * 150, *[("P128", 57)] * 3] * 2:
        one = pipeline.round(graph, host_ms * MS)
        here.record(one)
        there.record(one._replace(now_ns=one.now_ns + epoch_ns))
        pairs = zip(believed_of(here, one.now_ns), believed_of(there, one.now_ns + epoch_ns), strict=True)
        assert all((a and a.total_ns) == (b and b.total_ns) for a, b in pairs)


def test_the_wait_grows_with_the_root_of_cost_and_of_age_and_has_a_limit() -> None:
    wait_ns = RetrySettings().wait_ns
    assert wait_ns(40 * MS, 0, 500) == 2 * S
    assert wait_ns(20 * MS, 10 * S, 500) == pytest.approx(2 * wait_ns(5 * MS, 10 * S, 500), rel=1e-3)
    assert wait_ns(20 * MS, 240 * S, 500) == pytest.approx(2 * wait_ns(20 * MS, 60 * S, 500), rel=1e-3)
    assert wait_ns(100 * MS, 10 * S, 500) == 17 * S  # the cost by itself
    assert wait_ns(40 * MS, 10**6 * S, 500) == 30 * S
    assert wait_ns(40 * MS, 10 * S, 0) < wait_ns(40 * MS, 10 * S, 999)


def test_settings_change_behaviour_and_wrong_ones_are_refused() -> None:
    late = [("P128", 1)] * 3 + [("P128", 60)] * 4
    assert charged_ns(fed(late)[0], "P128", 0) == 0
    assert charged_ns(fed(late, late_rounds=3)[0], "P128", 0) > 0
    for name in ("late_rounds", "late_rounds_at_first", "on_time_weight", "late_window", "recovery_gain_percent"):
        with pytest.raises(SettingError, match=name):
            IdleGap(**{name: 0})


def test_a_damaged_state_is_refused_and_the_present_one_kept() -> None:
    model, pipeline = fed([("P128", 57)] * 8)
    before = model.save()
    for damage in (
        {"lateness": {"P128": {}}},
        {"host": {"colour": 1}},
        {"lateness": {"P1": before["lateness"]["P128"]}},
    ):
        with pytest.raises(StateError):
            model.restore({**before, **damage})
        assert model.save() == before
    assert charged_ns(model, "P128", pipeline.observed_ns) == 29 * MS
