"""What holds of the cost models whatever they are given."""

import json
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.errors import SettingError, StateError
from engine_hooks.cost_model.exposed_mean import ExposedMean
from engine_hooks.cost_model.model import CostModel, Estimate, Measurement
from engine_hooks.cost_model.registry import COST_MODELS, cost_model_named

GRAPHS = ("decode", "P108", "P128")
MS = 1_000_000
EVERY_MODEL = pytest.mark.parametrize("model", list(COST_MODELS))


def measurement(graph: str = "P128", gpu_ns: int = 28 * MS, gap_ns: int = 0, **fields: object) -> Measurement:
    plain = Measurement(graph, gpu_ns, gpu_ns + gap_ns, False, False, Purpose.ORDINARY, 0)
    return plain._replace(**fields)


@st.composite
def histories(draw: st.DrawFn, size_max: int = 60) -> list[Measurement]:
    """Measurements in order of time, some of them more than an expiry apart."""
    step = st.one_of(st.integers(1, 100 * MS), st.integers(20_000 * MS, 40_000 * MS))
    measured = st.builds(
        Measurement,
        st.sampled_from(GRAPHS),
        st.integers(1, 60 * MS),
        st.integers(0, 200 * MS),
        st.booleans(),
        st.booleans(),
        st.sampled_from(Purpose),
        step,
        st.booleans(),
    )
    now_ns, history = 0, []
    for one in draw(st.lists(measured, max_size=size_max)):
        now_ns += one.now_ns
        history.append(one._replace(now_ns=now_ns))
    return history


def after(model: CostModel, history: list[Measurement]) -> list[Estimate | None]:
    """What is believed of each graph once all of `history` is recorded."""
    for one in history:
        model.record(one)
    now_ns = history[-1].now_ns + 1 if history else 0
    return [model.estimate(graph, now_ns) for graph in GRAPHS]


@settings(max_examples=50, deadline=None)
@given(histories(), st.lists(st.integers(1, 60 * MS), max_size=20))
def test_queued_executions_never_change_the_handoff_of_exposed_mean(
    history: list[Measurement], gpu_times_ns: list[int]
) -> None:
    model = ExposedMean()
    before = after(model, history)[GRAPHS.index("P128")]
    now_ns = history[-1].now_ns if history else 0
    for gpu_ns in gpu_times_ns:
        model.record(measurement(gpu_ns=gpu_ns, gap_ns=gpu_ns, now_ns=now_ns))
    later = model.estimate("P128", now_ns)
    if before is not None and later is not None and not before.expired(now_ns):
        assert later.handoff_ns == before.handoff_ns


@EVERY_MODEL
@settings(max_examples=50, deadline=None)
@given(history=histories())
def test_feedback_flags_of_probes_and_refreshes_never_matter(model: str, history: list[Measurement]) -> None:
    flipped = [
        one if one.purpose == Purpose.ORDINARY else one._replace(completion_feedback=not one.completion_feedback)
        for one in history
    ]
    if model == "idle_gap":  # there the flag also says since when the host could plan the next execution
        unseen = {"wall_time_ns": 0, "duration_ns": None}  # no gap, no submission: no host time to take from it
        history, flipped = ([one._replace(**unseen) for one in events] for events in (history, flipped))
    assert after(cost_model_named(model), history) == after(cost_model_named(model), flipped)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=16), st.randoms())
def test_order_inside_the_share_window_never_matters(flags: list[bool], random: object) -> None:
    shuffled = list(flags)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    believed = [
        after(
            cost_model_named("drained_share"),
            [measurement(gap_ns=3 * MS, drained=True, completion_feedback=flag, now_ns=MS) for flag in order],
        )
        for order in (flags, shuffled)
    ]
    assert believed[0] == believed[1]


@EVERY_MODEL
@settings(max_examples=50, deadline=None)
@given(history=histories())
def test_an_estimate_is_never_below_the_median_gpu_time(model: str, history: list[Measurement]) -> None:
    for believed in after(cost_model_named(model), history):
        if believed is not None:
            assert believed.total_ns == believed.gpu_ns + believed.handoff_ns
            assert believed.handoff_ns >= 0
            assert all(isinstance(value, int) for value in believed[:4])


@EVERY_MODEL
@settings(max_examples=50, deadline=None)
@given(history=histories(), cut=st.integers(0, 60))
def test_saving_and_restoring_at_any_point_changes_nothing(model: str, history: list[Measurement], cut: int) -> None:
    whole, first, second = (cost_model_named(model) for _ in range(3))
    for one in history[:cut]:
        first.record(one)
    second.record(measurement())  # whatever it knew before is forgotten
    second.restore(json.loads(json.dumps(first.save())))
    assert second.save() == first.save()
    for one in history[:cut]:
        whole.record(one)
    assert after(whole, history[cut:]) == after(second, history[cut:])
    assert whole.save() == second.save()


@EVERY_MODEL
@settings(max_examples=50, deadline=None)
@given(
    gpu_ns=st.integers(1, 60 * MS),
    gap_ns=st.integers(0, 60 * MS),
    drained=st.booleans(),
    feedback=st.booleans(),
)
def test_a_constant_stream_has_a_constant_estimate(
    model: str, gpu_ns: int, gap_ns: int, drained: bool, feedback: bool
) -> None:
    cost_model = cost_model_named(model)
    seen = []
    for number in range(40):
        now_ns = number * 30 * MS
        cost_model.record(
            measurement(gpu_ns=gpu_ns, gap_ns=gap_ns, drained=drained, completion_feedback=feedback, now_ns=now_ns)
        )
        believed = cost_model.estimate("P128", now_ns)
        assert believed is not None
        seen.append(believed.total_ns)
    settled = seen[3:]  # idle_gap pads its first three samples with zeros
    assert all(a == b for a, b in pairwise(settled))


@EVERY_MODEL
@settings(max_examples=50, deadline=None)
@given(history=histories())
def test_asking_changes_nothing(model: str, history: list[Measurement]) -> None:
    asked, quiet = cost_model_named(model), cost_model_named(model)
    for one in history:
        asked.record(one)
        for graph in GRAPHS:
            asked.estimate(graph, one.now_ns + 90_000 * MS)
        quiet.record(one)
    assert asked.save() == quiet.save()


@EVERY_MODEL
def test_a_graph_never_measured_has_no_estimate(model: str) -> None:
    assert cost_model_named(model).estimate("P128", 0) is None


def test_startup_median_keeps_the_first_five() -> None:
    model = cost_model_named("startup_median")
    for gpu_ms in (30, 10, 20, 50, 40, 1, 1, 1, 1, 1, 1):
        model.record(measurement(gpu_ns=gpu_ms * MS, gap_ns=60 * MS, drained=True))
    believed = model.estimate("P128", 10**15)
    assert believed is not None
    assert believed.total_ns == 30 * MS
    assert not believed.expired(10**15)


def test_settings_change_behaviour() -> None:
    slow, fast = ExposedMean(exposed_mean_weight="1/6"), ExposedMean(exposed_mean_weight=Fraction(1, 2))
    for model in (slow, fast):
        model.record(measurement(drained=True))
        model.record(measurement(gap_ns=6 * MS, drained=True))
    assert [m.estimate("P128", 0).handoff_ns for m in (slow, fast)] == [MS, 3 * MS]  # type: ignore[union-attr]
    assert cost_model_named("drained_share", gpu_window=1, expiry_ns=5).expiry_ns == 5  # type: ignore[attr-defined]


@EVERY_MODEL
def test_wrong_settings_and_states_are_refused(model: str) -> None:
    with pytest.raises(SettingError, match="colour"):
        cost_model_named(model, colour=1)
    window = "replays" if model == "startup_median" else "gpu_window"
    with pytest.raises(SettingError, match="at least 1"):
        cost_model_named(model, **{window: 0})
    with pytest.raises(StateError, match="not a saved state"):
        cost_model_named(model).restore({"model": "other"})
    with pytest.raises(StateError, match="damaged"):
        cost_model_named(model).restore({"model": model, "graphs": {"P128": {}}})
