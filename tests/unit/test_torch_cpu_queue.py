"""A device's queue on the CPU: order, events, what fails, and its executions as the tracker sees them."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from engine_hooks.adapters.device.errors import DeviceQueueError
from engine_hooks.adapters.device.executions import DeviceExecutions
from engine_hooks.adapters.torch_cpu.device_queue import DeviceQueue, QueueEvent, QueueGraph
from engine_hooks.adapters.torch_cpu.event_source import QueueEventSource
from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GpuTimeSource, GraphKind

WITHIN_S = 60.0
MS = 1_000_000


@pytest.fixture
def queue() -> Iterator[DeviceQueue]:
    with DeviceQueue() as opened:
        yield opened


def ended(queue: DeviceQueue) -> QueueEvent:
    """An event after all that was submitted."""
    event = QueueEvent()
    queue.record(event)
    return event


def gate() -> tuple[threading.Event, Callable[[], object]]:
    """Work that runs until it is let go."""
    let_go = threading.Event()
    return let_go, lambda: let_go.wait(WITHIN_S)


def test_work_runs_in_order_in_one_other_thread(queue: DeviceQueue) -> None:
    done: list[tuple[int, int]] = []
    for number in range(100):
        queue.submit(lambda number=number: done.append((number, threading.get_ident())))  # type: ignore[misc]
    assert ended(queue).wait(WITHIN_S)
    assert [number for number, _ in done] == list(range(100))
    assert {thread for _, thread in done} != {threading.get_ident()}
    assert len({thread for _, thread in done}) == 1


def test_an_event_fires_after_what_came_before_and_counts_its_latest_recording(queue: DeviceQueue) -> None:
    event = QueueEvent()
    assert event.query()  # never recorded
    let_go, work = gate()
    queue.record(event)
    queue.submit(work)
    queue.record(event)
    assert not event.query()
    assert not event.wait(0.01)
    released_ns = time.monotonic_ns()
    let_go.set()
    assert event.wait(WITHIN_S)
    assert event.query()
    assert event.fired_ns >= released_ns


def test_a_waiter_is_woken_by_the_firing(queue: DeviceQueue) -> None:
    for _ in range(200):
        let_go, work = gate()
        queue.submit(work)
        event = ended(queue)
        threading.Thread(target=let_go.set).start()
        assert event.wait(WITHIN_S)


def test_work_that_raises_fails_the_queue_as_a_kernel_does_a_context(queue: DeviceQueue) -> None:
    def fail() -> None:
        raise ZeroDivisionError("in the kernel")

    queue.submit(fail)
    assert ended(queue).wait(WITHIN_S)  # events still fire
    with pytest.raises(DeviceQueueError, match="ZeroDivisionError: in the kernel"):
        queue.submit(lambda: None)
    with pytest.raises(DeviceQueueError):
        queue.check()


def test_a_full_queue_refuses() -> None:
    with DeviceQueue(depth_max=2) as queue:
        let_go, work = gate()
        running = threading.Event()
        queue.submit(running.set)
        queue.submit(work)
        assert running.wait(WITHIN_S)
        event = QueueEvent()
        while queue._work.qsize() < 2:
            queue.submit(lambda: None)
        with pytest.raises(DeviceQueueError, match="2 pieces of work wait on the device queue already"):
            queue.submit(lambda: None)
        with pytest.raises(DeviceQueueError):
            queue.record(event)
        assert event.query()  # it was not recorded
        let_go.set()


def test_closing_runs_what_waits_and_refuses_more() -> None:
    queue = DeviceQueue()
    done: list[int] = []
    queue.submit(lambda: done.append(1))
    assert queue.close()
    assert queue.close()
    assert done == [1]
    with pytest.raises(DeviceQueueError, match="closed"):
        queue.submit(lambda: None)


def test_depth_gaps_and_idleness_are_the_queues_own(queue: DeviceQueue) -> None:
    recorded: list[GraphExecution] = []
    executions = DeviceExecutions(QueueEventSource(queue), recorded.append)
    gates = [gate() for _ in range(3)]
    graphs = [
        executions.graph(QueueGraph(queue, work), f"g{number}", GraphKind.STATE)
        for number, (_, work) in enumerate(gates)
    ]
    executions.poll()
    graphs[0].replay()
    graphs[1].replay()
    assert executions.in_flight == 2
    for let_go, _ in gates[:2]:
        let_go.set()
    assert ended(queue).wait(WITHIN_S)
    stumbled_ns = time.monotonic_ns()
    while time.monotonic_ns() - stumbled_ns < 5 * MS:  # the host stumbles
        pass
    graphs[2].replay()
    gates[2][0].set()
    assert executions.close(WITHIN_S)
    first, second, third = recorded
    assert [e.graph_queue_depth for e in recorded] == [0, 1, 0]
    assert [e.graph_after_idle for e in recorded] == [True, False, False]
    assert {e.graph_gpu_time_source for e in recorded} == {GpuTimeSource.HOST}
    assert third.graph_wall_time_ns - third.graph_gpu_time_ns >= 5 * MS
    assert first.graph_wall_time_ns <= first.duration_ns
    assert sum(e.graph_wall_time_ns for e in recorded) <= third.started_at + third.duration_ns - first.started_at
    assert second.graph_gpu_time_ns <= second.graph_wall_time_ns


def test_gpu_time_is_what_the_thread_computed(queue: DeviceQueue) -> None:
    """Not the time in which the device stands still: here it sleeps for 30 ms in the middle."""

    def compute_and_sleep() -> None:
        began_ns = time.thread_time_ns()
        while time.thread_time_ns() - began_ns < 5 * MS:
            pass
        time.sleep(0.03)

    recorded: list[GraphExecution] = []
    executions = DeviceExecutions(QueueEventSource(queue), recorded.append)
    executions.graph(QueueGraph(queue, compute_and_sleep), "g", GraphKind.STATE).replay()
    assert executions.close(WITHIN_S)
    assert 5 * MS <= recorded[0].graph_gpu_time_ns < 20 * MS
    assert recorded[0].graph_wall_time_ns >= 35 * MS


def test_a_closed_queue_is_the_engines_to_see_and_not_the_hooks(queue: DeviceQueue) -> None:
    executions = DeviceExecutions(QueueEventSource(queue), [].append)
    decode = executions.graph(QueueGraph(queue, lambda: None), "decode", GraphKind.PLAIN_DECODE)
    queue.close()
    with pytest.raises(DeviceQueueError, match="closed"):
        decode.replay()
    assert executions.losses["source_failed"] == 1  # type: ignore[index] # an enumeration of text
