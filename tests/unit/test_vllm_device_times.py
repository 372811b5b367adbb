"""Device events around a step's work, on a device that is not there."""

import pytest

from engine_hooks.adapters.vllm.device_times import DeviceTimes, device_times
from engine_hooks.adapters.vllm.steps import Step
from tests.fixtures.fake_device import MS, FakeDevice


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


def test_a_broken_device_takes_the_hosts_times(device: FakeDevice, times: DeviceTimes) -> None:
    step = step_at(device)
    device.faults = {"record"}
    times.begin(step)
    times.end()
    assert not step.awaits_device


def test_without_cuda_there_are_none() -> None:
    assert device_times() is None
