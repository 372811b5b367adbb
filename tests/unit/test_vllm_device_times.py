"""Device events around a step's work, on a device that is not there."""

from enum import Enum
from typing import Any, NamedTuple

import pytest

from engine_hooks.adapters.vllm import graph_hooks
from engine_hooks.adapters.vllm.device_times import DeviceTimes, device_times
from engine_hooks.adapters.vllm.graph_hooks import GraphHooks
from engine_hooks.adapters.vllm.steps import Step
from tests.fixtures.fake_device import MS, FakeDevice


class Graph(NamedTuple):
    """A `BatchExecutionDescriptor`."""

    cg_mode: Any
    num_tokens: int
    uniform_token_count: int | None
    num_active_loras: int


class Mode(Enum):
    FULL = 2


def full_graph(tokens: int, each: int | None, adapters: int = 0) -> Graph:
    return Graph(Mode.FULL, tokens, each, adapters)


@pytest.fixture
def device() -> FakeDevice:
    return FakeDevice()


@pytest.fixture
def times(device: FakeDevice) -> DeviceTimes:
    return DeviceTimes(device, device.clock_ns)


def step_at(device: FakeDevice, sequence: int = 0) -> Step:
    return Step(None, sequence, device.now_ns, 0, after_idle=False)


def test_a_step_learns_when_it_ran(device: FakeDevice, times: DeviceTimes) -> None:
    step, begun_ns = step_at(device), device.now_ns
    times.begin(step)
    device.run(20 * MS)
    times.end()
    times.collect()
    assert step.awaits_device
    assert step.device_ns is None
    device.wait()
    times.collect()
    assert not step.awaits_device
    assert step.device_ns == (begun_ns, begun_ns + 20 * MS)


def test_a_queued_step_starts_when_the_one_before_it_ends(device: FakeDevice, times: DeviceTimes) -> None:
    steps, begun_ns = [step_at(device), step_at(device, 1)], device.now_ns
    for step in steps:
        times.begin(step)
        device.run(20 * MS)
        times.end()
    device.wait()
    times.collect()
    assert [step.device_ns for step in steps] == [
        (begun_ns, begun_ns + 20 * MS),
        (begun_ns + 20 * MS, begun_ns + 40 * MS),
    ]


def test_a_step_that_was_never_closed_takes_the_hosts_times(device: FakeDevice, times: DeviceTimes) -> None:
    step = step_at(device)
    times.begin(step)
    device.run(20 * MS)
    times.abandon()
    assert not step.awaits_device
    device.wait()
    times.collect()
    assert step.device_ns is None
    times.end()  # nothing is open
    times.abandon()


def test_steps_that_fail_on_their_way_use_nothing_up(device: FakeDevice, times: DeviceTimes) -> None:
    for sequence in range(200):
        times.begin(step_at(device, sequence))
    step = step_at(device, 200)
    times.begin(step)
    device.run(20 * MS)
    times.end()
    device.wait()
    times.collect()
    assert step.device_ns is not None


def test_a_steps_first_graph_names_and_times_it(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_hooks, "device_times", lambda: DeviceTimes(device, device.clock_ns))
    hooks = GraphHooks()
    hooks.prepare()
    assert hooks.attributes() == {"drained_gpu_time": "with launch latency"}
    step, begun_ns = step_at(device), device.now_ns
    hooks.begin(step)
    for graph in (full_graph(32, 4), full_graph(8, 1)):  # the target's, then its drafter's
        hooks.replaying_v2(None, (graph,), {})
        device.run(10 * MS)
    hooks.sampled(None, None, None)
    device.wait()
    hooks.end(step)
    hooks.collect()
    assert (step.graph, step.budget) == ("FULL-8x4", 32)
    assert step.device_ns == (begun_ns, begun_ns + 20 * MS)


def test_graphs_outside_of_steps_are_nobodys(device: FakeDevice) -> None:
    hooks = GraphHooks()
    hooks.prepare()
    hooks.replaying_v2(None, (full_graph(32, 4),), {})
    hooks.sampled(None, None, None)
    step = step_at(device)
    hooks.begin(step)
    hooks.end(step)
    hooks.replaying_v2(None, (full_graph(32, 4),), {})
    assert step.graph == ""


@pytest.mark.parametrize(
    ("graph", "name"),
    [
        (full_graph(32, 4), "FULL-8x4"),
        (full_graph(512, None), "FULL-512"),
        (full_graph(8, 1, adapters=2), "FULL-8x1-lora2"),
    ],
)
def test_names_of_graphs(graph: Graph, name: str) -> None:
    assert graph_hooks.v2_graph_name(graph) == name


def test_a_broken_device_takes_the_hosts_times(device: FakeDevice, times: DeviceTimes) -> None:
    step = step_at(device)
    device.faults = {"record"}
    times.begin(step)
    times.end()
    assert not step.awaits_device


def test_without_cuda_there_are_none() -> None:
    assert device_times() is None
