"""Steps in flight, and the times that are recorded of them."""

import pytest

from engine_hooks.adapters.vllm.steps import DEVICE_WAIT_NS, Results, Step, Steps
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import FeedbackReason, GpuTimeSource
from engine_hooks.contract.validation import clock_trouble, refusal
from engine_hooks.recorder.clock import Calendar
from tests.fixtures.vllm_fakes import DECODE, MS, scheduled

UNIX_NS = 1_700_000_000_000_000_000


class Driven:
    """Steps told in ms when each was submitted and complete."""

    def __init__(self, *, queued: bool = False) -> None:
        self.records: list[GraphExecution] = []
        calendar = Calendar(lambda: 0, lambda: UNIX_NS)
        self.steps = Steps(self.records.append, queued=queued, speculates=False, calendar=calendar)

    def submit(self, at_ms: float) -> Step:
        step = self.steps.submit(scheduled(DECODE), int(at_ms * MS))
        assert step is not None
        return step

    def finish(self, step: Step, at_ms: float) -> None:
        assert self.steps.taken(step.output) is step
        self.steps.finish(step, Results(int(at_ms * MS), 0, 0, 2))

    def times_ms(self) -> list[tuple[float, float, float]]:
        """Offset, device time, wall time."""
        for record in self.records:
            assert refusal(record, EngineResource("one")) is None
            assert not clock_trouble(record)
        return [
            (
                (record.graph_gpu_start_offset_ns or 0) / MS,
                record.graph_gpu_time_ns / MS,
                record.graph_wall_time_ns / MS,
            )
            for record in self.records
        ]


def test_one_at_a_time() -> None:
    driven = Driven()
    for submitted_ms, completed_ms in ((100, 110), (112, 120)):
        driven.finish(driven.submit(submitted_ms), completed_ms)
    assert driven.times_ms() == [(0, 10, 10), (0, 8, 10)]
    assert [record.graph_after_idle for record in driven.records] == [True, False]
    assert [record.started_at - UNIX_NS for record in driven.records] == [100 * MS, 112 * MS]
    assert {record.graph_completion_feedback_reason for record in driven.records} == {FeedbackReason.COMPLETION_INPUTS}
    assert {record.graph_gpu_time_source for record in driven.records} == {GpuTimeSource.HOST}


def test_two_in_flight_take_turns() -> None:
    driven = Driven(queued=True)
    first, second = driven.submit(100), driven.submit(101)
    driven.finish(first, 110)
    third = driven.submit(111)
    driven.finish(second, 119)
    driven.finish(third, 130)
    assert driven.times_ms() == [(0, 10, 10), (9, 9, 9), (8, 11, 11)]
    assert [record.graph_queue_depth for record in driven.records] == [0, 1, 1]
    assert not any(record.graph_completion_feedback for record in driven.records)


def test_no_interval_spans_idle_time() -> None:
    driven = Driven()
    driven.finish(driven.submit(100), 110)
    driven.steps.idle()
    driven.finish(driven.submit(900), 905)
    assert driven.times_ms()[-1] == (0, 5, 5)
    assert driven.records[-1].graph_after_idle


def test_an_empty_step_is_idle_and_no_execution() -> None:
    driven = Driven()
    driven.finish(driven.submit(100), 110)
    assert driven.steps.submit(scheduled({}), 111 * MS) is None
    driven.finish(driven.submit(900), 905)
    assert [record.graph_sequence for record in driven.records] == [0, 1]
    assert driven.records[-1].graph_after_idle


def test_an_empty_step_beside_a_running_one_is_not_idle() -> None:
    driven = Driven(queued=True)
    first = driven.submit(100)
    assert driven.steps.submit(scheduled({}), 101 * MS) is None
    driven.finish(first, 110)
    driven.finish(driven.submit(112), 120)
    assert [record.graph_after_idle for record in driven.records] == [True, False]


def test_what_never_comes_back_is_a_gap() -> None:
    driven = Driven()
    driven.submit(100)
    driven.steps.abandon()
    step = driven.submit(200)
    assert step.queue_depth == 0
    driven.finish(step, 210)
    assert driven.steps.abandoned == 1
    assert driven.records[0].graph_sequence == 1
    assert driven.times_ms() == [(0, 10, 10)]


def test_what_was_never_submitted_is_not_known() -> None:
    driven = Driven()
    assert driven.steps.taken(scheduled(DECODE)) is None


def test_device_times_are_waited_for_in_order() -> None:
    driven = Driven(queued=True)
    first, second = driven.submit(100), driven.submit(101)
    first.awaits_device = True
    driven.finish(first, 110)
    driven.finish(second, 120)
    assert driven.records == []
    first.awaits_device, first.device_ns = False, (102 * MS, 111 * MS)
    driven.steps.settle(121 * MS)
    assert driven.times_ms() == [(2, 9, 11), (10, 9, 9)]
    assert [record.graph_gpu_time_source for record in driven.records] == [GpuTimeSource.CUDA_EVENT, GpuTimeSource.HOST]


@pytest.mark.parametrize("last", [False, True])
def test_device_times_that_never_come_are_the_hosts(last: bool) -> None:
    driven = Driven()
    step = driven.submit(100)
    step.awaits_device = True
    driven.finish(step, 110)
    assert driven.records == []
    driven.steps.settle(111 * MS if last else 110 * MS + DEVICE_WAIT_NS, last=last)
    assert driven.times_ms() == [(0, 10, 10)]


def test_what_vllm_estimated_is_recorded() -> None:
    driven = Driven()
    step = driven.submit(100)
    step.estimate_ns, step.graph = 9 * MS, "FULL-2x1"
    driven.finish(step, 110)
    (record,) = driven.records
    assert record.graph_name == "FULL-2x1"
    assert record.scheduler_cost_model == "vllm_adaptive_verification"
    assert (record.scheduler_estimate_ns, record.scheduler_estimate_gpu_ns) == (9 * MS, 9 * MS)
    assert record.scheduler_estimate_handoff_ns == 0
