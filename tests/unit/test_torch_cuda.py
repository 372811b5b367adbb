"""PyTorch on CUDA: the adapter on a stand-in for `torch.cuda` everywhere, and on the real one where there is a GPU."""

import inspect
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine_hooks.adapters.torch_cuda.event_source import ANCHOR_WITHIN_NS, CudaEventSource
from engine_hooks.adapters.torch_cuda.executions import cuda_executions, cuda_resource
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GpuTimeSource, GraphKind
from engine_hooks.contract.validation import clock_trouble, refusal
from engine_hooks.recorder.recorder import Recorder
from tests.fixtures.fake_device import MS, FakeDevice, FakeEvent

PAGE = Path(__file__).parents[2] / "docs" / "torch.md"
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU here")
MILLISECOND_CYCLES = 1_500_000
"""About a millisecond of `torch.cuda._sleep` at 1.5 GHz; what it really takes is measured."""


class StandInEvent:
    """`torch.cuda.Event` over a fake device."""

    device: FakeDevice

    def __init__(self, *, enable_timing: bool = False) -> None:
        assert enable_timing
        self.event = FakeEvent()

    def record(self, stream: object) -> None:
        self.device.record(self.event, stream)

    def query(self) -> bool:
        return self.device.done(self.event)

    def elapsed_time(self, later: "StandInEvent") -> float:
        return max(self.device.elapsed_ns(self.event, later.event) / MS, 0.0)  # as ROCm's, the harder case


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    """`torch.cuda` on a device that is not there, whose clock is the host's."""
    fake = FakeDevice(now_ns=time.monotonic_ns(), stream="the engine's")
    monkeypatch.setattr(StandInEvent, "device", fake, raising=False)
    monkeypatch.setattr(torch.cuda, "Event", StandInEvent)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device, priority: f"anchors of {device}, priority {priority}")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: fake.stream)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: fake.capturing)
    return fake


def test_events_go_to_the_stream_that_the_engine_submits_to(device: FakeDevice) -> None:
    recorded: list[GraphExecution] = []
    executions = cuda_executions(recorded.append, clock_ns=device.clock_ns)
    for stream in ("the engine's", "another"):
        device.stream = stream
        with executions.measured("decode", GraphKind.PLAIN_DECODE):
            device.run(5 * MS)
    assert executions.in_flight == 2
    device.wait()
    assert executions.poll() == 2
    assert [e.graph_gpu_time_ns for e in recorded] == [5 * MS, 5 * MS]
    assert {e.graph_gpu_time_source for e in recorded} == {GpuTimeSource.CUDA_EVENT}
    assert recorded[0].graph_gpu_start_offset_ns == 0


def test_a_start_before_the_present_anchor_is_placed_as_well(device: FakeDevice) -> None:
    recorded: list[GraphExecution] = []
    executions = cuda_executions(recorded.append, clock_ns=device.clock_ns)
    for _ in range(2):
        with executions.measured("decode", GraphKind.PLAIN_DECODE):
            device.run(3_000 * MS)
    device.now_ns += 4_000 * MS
    executions.poll()
    anchored = executions._tracker._host_clock._instant
    assert anchored is not None
    assert anchored.host_ns == device.now_ns  # a second after the second one has begun
    device.wait()
    executions.poll()
    assert [e.graph_gpu_start_offset_ns for e in recorded] == [0, 3_000 * MS]


def test_a_capture_is_left_alone(device: FakeDevice) -> None:
    executions = cuda_executions([].append)
    device.capturing = True
    with executions.measured("decode", GraphKind.PLAIN_DECODE) as pair:
        pass
    assert executions.poll() == 0
    assert not pair.measured


def test_a_full_device_gives_no_anchor_and_is_not_waited_for(device: FakeDevice) -> None:
    def ticking() -> int:
        device.now_ns += 10_000
        return device.now_ns

    source = CudaEventSource(torch.device("cuda", 0), ticking)
    event = source.new_event()
    device.late_ns = 10 * MS
    began_ns = device.now_ns
    assert source.anchor(event) is None
    assert device.now_ns - began_ns < 2 * ANCHOR_WITHIN_NS
    device.late_ns = 20_000
    instant = source.anchor(event)
    assert instant is not None
    assert abs(instant.host_ns - event.event.fires_ns) <= instant.uncertainty_ns  # type: ignore[attr-defined]


def test_the_example_on_the_page_runs(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    sent: list[GraphExecution] = []
    steps = iter([True, True, True, False])

    def replay() -> None:
        device.run(5 * MS)

    def take_in_results() -> int:
        device.wait()
        return 16

    monkeypatch.setattr(Recorder, "record", lambda _recorder, execution: sent.append(execution))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: SimpleNamespace(name="GPU", uuid="GPU-1"))
    names = {
        "decode_graph": SimpleNamespace(replay=replay),
        "running": lambda: next(steps),
        "take_in_results": take_in_results,
    }
    exec(compile(text, "docs/torch.md", "exec"), names)  # noqa: S102 - our own page
    assert [(e.graph_sequence, e.batch_lanes, e.batch_tokens_emitted) for e in sent] == [(n, 16, 16) for n in range(3)]
    names["recorder"].stop()  # type: ignore[attr-defined]


def test_this_torch_has_what_the_adapter_calls() -> None:
    assert {"record", "query", "elapsed_time"} <= set(dir(torch.cuda.Event))
    assert {"replay"} <= set(dir(torch.cuda.CUDAGraph))
    assert "priority" in inspect.signature(torch.cuda.Stream.__new__).parameters
    assert "device" in inspect.signature(torch.cuda.current_stream).parameters
    assert not torch.cuda.is_available() or not torch.cuda.is_current_stream_capturing()


# ---- on a GPU


@contextmanager
def captured(cycles: int) -> Iterator[torch.cuda.CUDAGraph]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.cuda._sleep(cycles)
    yield graph
    torch.cuda.synchronize()


@on_gpu
def test_replays_of_a_real_graph() -> None:
    recorded: list[GraphExecution] = []
    executions = cuda_executions(recorded.append)
    with captured(5 * MILLISECOND_CYCLES) as graph:
        decode = executions.graph(graph, "decode", GraphKind.PLAIN_DECODE)
        began_ns = time.monotonic_ns()
        for _ in range(3):
            decode.replay()
        assert executions.in_flight >= 2
        torch.cuda.synchronize()
        took_ns = time.monotonic_ns() - began_ns
        time.sleep(0.05)  # the host stumbles
        decode.replay()
        assert executions.close(10)
    gpu_times_ns = [e.graph_gpu_time_ns for e in recorded]
    assert [e.graph_queue_depth for e in recorded] == [0, 1, 2, 0]
    assert max(gpu_times_ns[1:3]) < 1.2 * min(gpu_times_ns[1:3])
    assert sum(gpu_times_ns[:3]) == pytest.approx(took_ns, rel=0.2)
    assert recorded[3].graph_wall_time_ns - recorded[3].graph_gpu_time_ns == pytest.approx(50 * MS, rel=0.2)
    assert recorded[2].graph_gpu_start_offset_ns == pytest.approx(sum(gpu_times_ns[:2]), rel=0.1)
    assert all(refusal(e, EngineResource("host1:1")) is None and not clock_trouble(e) for e in recorded)
    assert not any(executions.losses.values())


@on_gpu
def test_a_real_capture_is_not_spoilt_and_another_stream_is_followed() -> None:
    recorded: list[GraphExecution] = []
    executions = cuda_executions(recorded.append)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), executions.measured("decode", GraphKind.PLAIN_DECODE):
        torch.cuda._sleep(MILLISECOND_CYCLES)
        executions.poll()
    stream: Any = torch.cuda.Stream()
    with torch.cuda.stream(stream), executions.measured("decode", GraphKind.PLAIN_DECODE):
        graph.replay()
    assert executions.close(10)
    assert [e.graph_sequence for e in recorded] == [0]
    assert recorded[0].graph_gpu_time_ns > 0.2 * MS


@on_gpu
def test_a_real_gpu_is_named_in_the_resource() -> None:
    resource = cuda_resource(EngineResource("host1:1", engine_attributes={"all_reduce": "nccl"}))
    assert len(resource.gpu_ids) == 1
    assert resource.engine_attributes["drained_gpu_time"] == "with launch latency"
    assert resource.engine_attributes["all_reduce"] == "nccl"


@on_gpu
def test_nothing_waits_for_a_real_gpu() -> None:
    executions = cuda_executions([].append)
    with captured(200 * MILLISECOND_CYCLES) as graph:
        decode = executions.graph(graph, "decode", GraphKind.PLAIN_DECODE)
        decode.replay()
        began_ns = time.monotonic_ns()
        decode.replay()
        executions.poll()
        assert time.monotonic_ns() - began_ns < 50 * MS
        assert executions.in_flight == 2
