"""What an engine holds: wrapped graphs, stretches of work, records with what is known late, and what goes wrong."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from engine_hooks.adapters.device.executions import DeviceExecutions
from engine_hooks.adapters.device.tracker import TrackerSettings
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GpuTimeSource, GraphKind, Purpose
from engine_hooks.contract.validation import refusal
from engine_hooks.cost_model.model import measurement_of
from tests.fixtures.fake_device import MS, DeviceFaultError, FakeDevice, FakeEvent


class FakeGraph:
    """A captured graph of 5 ms."""

    def __init__(self, device: FakeDevice) -> None:
        self.device = device
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1
        self.device.run(5 * MS)

    def pool(self) -> str:
        return "the graph's own"


class Recording:
    """Executions of a fake device whose clock is the host's, and what was recorded of them."""

    def __init__(self, **settings: int) -> None:
        self.device = FakeDevice(now_ns=time.monotonic_ns())
        self.recorded: list[GraphExecution] = []
        self.observed: list[tuple[GraphExecution, int]] = []
        self.executions: DeviceExecutions[FakeEvent] = DeviceExecutions(
            self.device,
            self.recorded.append,
            settings=TrackerSettings(**settings),
            observed=lambda execution, at_ns: self.observed.append((execution, at_ns)),
            clock_ns=self.device.clock_ns,
        )
        self.executions.poll()
        self.graph = FakeGraph(self.device)
        self.decode = self.executions.graph(self.graph, "decode", GraphKind.PLAIN_DECODE)


def test_a_wrapped_graph_is_recorded_at_each_replay() -> None:
    at = Recording()
    at.decode.replay()
    at.decode.replay({"batch_lanes": 4, "graph_purpose": Purpose.REFRESH})
    at.device.wait()
    assert at.executions.poll() == 2
    first, second = at.recorded
    assert (first.graph_name, first.graph_kind, first.graph_sequence) == ("decode", GraphKind.PLAIN_DECODE, 0)
    assert first.graph_gpu_time_source == GpuTimeSource.CUDA_EVENT
    assert abs(first.started_at - time.time_ns()) < 60_000 * MS
    assert (first.graph_queue_depth, first.graph_after_idle) == (0, True)
    assert (second.graph_queue_depth, second.batch_lanes, second.graph_purpose) == (1, 4, Purpose.REFRESH)
    assert (second.graph_gpu_time_ns, second.graph_gpu_start_offset_ns) == (5 * MS, 5 * MS)
    assert all(refusal(execution, EngineResource("host1:1")) is None for execution in at.recorded)
    assert at.decode.pool() == "the graph's own"
    assert at.graph.replays == 2


def test_a_stretch_of_work_and_what_becomes_known_late() -> None:
    at = Recording()
    fields: dict[str, Any] = {}
    with at.executions.measured("P128", GraphKind.SPECULATIVE, fields) as pair:
        at.device.run(3 * MS)
        at.device.run(4 * MS)
    at.decode.replay()
    at.device.wait()
    fields["batch_tokens_accepted"] = 7
    assert at.executions.poll(until=pair.sequence) == 1
    assert (at.recorded[0].graph_gpu_time_ns, at.recorded[0].batch_tokens_accepted) == (7 * MS, 7)
    assert at.executions.poll() == 1


def test_a_scheduler_learns_when_the_end_was_observed() -> None:
    at = Recording()
    at.decode.replay()
    submitted_ns = at.device.now_ns
    at.device.now_ns += 9 * MS
    at.executions.poll()
    ((execution, observed_ns),) = at.observed
    assert observed_ns == submitted_ns + 9 * MS
    measurement = measurement_of(execution, observed_ns)
    assert measurement.drained
    assert measurement.now_ns - (measurement.duration_ns or 0) == submitted_ns


@pytest.mark.parametrize("fields", [{"no_such_field": 1}, {"graph_name": "twice"}])
def test_fields_that_are_none_cost_that_record_alone(fields: dict[str, Any]) -> None:
    at = Recording()
    at.decode.replay(fields)
    at.decode.replay()
    at.device.wait()
    assert at.executions.poll() == 1
    assert at.recorded[0].graph_sequence == 1
    assert at.executions.losses["record_failed"] == 1  # type: ignore[index] # an enumeration of text


def test_a_recorder_that_raises_does_not_reach_the_engine() -> None:
    device = FakeDevice()

    def refuse(execution: GraphExecution) -> None:
        raise OSError("disk full")

    executions: DeviceExecutions[FakeEvent] = DeviceExecutions(device, refuse)
    executions.graph(FakeGraph(device), "decode", GraphKind.PLAIN_DECODE).replay()
    device.wait()
    assert executions.poll() == 0
    assert executions.losses["record_failed"] == 1  # type: ignore[index]


def test_a_replay_that_raises_is_the_engines_to_see() -> None:
    at = Recording()

    def fail() -> None:
        raise DeviceFaultError("illegal memory access")

    broken = at.executions.graph(SimpleNamespace(replay=fail), "decode", GraphKind.PLAIN_DECODE)
    with pytest.raises(DeviceFaultError, match="illegal memory access"):
        broken.replay()
    assert at.executions.losses["launch_failed"] == 1  # type: ignore[index]


def test_a_broken_device_leaves_the_replays_alone() -> None:
    at = Recording()
    at.device.faults |= {"available", "record", "done", "elapsed_ns", "anchor"}
    for _ in range(3):
        at.decode.replay()
        at.device.wait()
        assert at.executions.poll() == 0
    assert at.graph.replays == 3
    assert at.executions.losses["source_failed"] == 3  # type: ignore[index]


def test_an_exhausted_pool_takes_fields_and_keeps_none() -> None:
    at = Recording(pairs=2)
    for lanes in range(4):
        pair = at.decode.replay()
        pair.fields = {"batch_lanes": lanes}
    assert not pair.measured
    assert at.graph.replays == 4
    at.device.wait()
    at.executions.poll()
    assert [execution.batch_lanes for execution in at.recorded] == [0, 1]
    assert at.executions.losses["pool_exhausted"] == 2  # type: ignore[index]


def test_closing_records_what_ends_in_time_and_says_what_does_not() -> None:
    device = FakeDevice()
    recorded: list[GraphExecution] = []
    executions: DeviceExecutions[FakeEvent] = DeviceExecutions(device, recorded.append)
    graph = executions.graph(FakeGraph(device), "decode", GraphKind.PLAIN_DECODE)
    graph.replay()
    assert not executions.close(timeout_s=0.01)
    device.wait()
    assert executions.close(timeout_s=0.01)
    assert len(recorded) == 1


class Placed:
    """An engine of 5 ms rounds that is never idle, beside a calendar that goes its own way."""

    def __init__(self) -> None:
        self.device = FakeDevice(now_ns=1_000 * MS)
        self.ahead_ns = 0
        self.looked = 0
        self.off_ns: list[int] = []
        self.executions: DeviceExecutions[FakeEvent] = DeviceExecutions(
            self.device, self._record, clock_ns=self.device.clock_ns, unix_clock_ns=self._unix_ns
        )
        self.decode = self.executions.graph(FakeGraph(self.device), "decode", GraphKind.PLAIN_DECODE)

    def _unix_ns(self) -> int:
        self.looked += 1
        return self.device.now_ns + self.ahead_ns

    def _record(self, execution: GraphExecution) -> None:
        self.off_ns.append(execution.started_at + execution.duration_ns - (self.device.now_ns + self.ahead_ns))

    def run(self, seconds: float, drift_ns: int = 0) -> None:
        for _ in range(int(seconds * 200)):
            self.decode.replay()
            self.device.wait()
            self.ahead_ns += drift_ns
            self.executions.poll()


def test_an_engine_that_is_never_idle_follows_the_calendar_as_it_drifts() -> None:
    at = Placed()
    at.run(60, drift_ns=100)  # 20 us a second
    assert max(map(abs, at.off_ns)) <= 45_000  # what comes together in 2 s
    assert at.looked <= 31 * 5  # five readings each time


def test_a_calendar_that_was_set_waits_for_idleness() -> None:
    at = Placed()
    at.run(1)
    at.ahead_ns += 3_000 * MS
    at.run(30)
    assert at.off_ns[-1] == -3_000 * MS
    at.executions.idle()
    at.run(1)
    assert at.off_ns[-1] == 0


def test_a_calendar_that_was_set_waits_for_a_minute_at_most() -> None:
    at = Placed()
    at.ahead_ns += 3_000 * MS
    at.run(63)
    assert at.off_ns[0] == -3_000 * MS
    assert at.off_ns[-1] == 0
