"""The device's own times of a step, by a pair of events: before its first graph, and after its sampling and drafting.

Only where model runner and engine core share a process (one GPU, or one for each engine core). With workers in
processes of their own (tensor or pipeline parallel) the host's times stand in.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from engine_hooks.adapters.device.event_source import EventSource
from engine_hooks.adapters.device.step_events import StepEvents
from engine_hooks.adapters.vllm.steps import Step
from engine_hooks.contract.names import GraphKind


class DeviceTimes:
    """Puts events around the device work of steps, and gives the steps their times once the events have fired."""

    def __init__(self, source: EventSource[Any], clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """Makes all events there will ever be."""
        self._events: StepEvents[Step] = StepEvents(source, clock_ns)

    def begin(self, step: Step) -> None:
        """Right before the step's first work on the device. Never waits."""
        self.abandon()  # of a step that failed on its way
        if self._events.begin(step, step.graph, GraphKind.STATE):
            step.awaits_device = True

    def end(self) -> None:
        """Right after its last work was submitted."""
        self._events.end()

    def abandon(self) -> None:
        """A step ended whose work was never closed by `end`: the host's times stand in."""
        if step := self._events.abandon():
            step.awaits_device = False

    def collect(self) -> None:
        """Tells every step that the device has passed its times. Never waits."""
        for step, times in self._events.completed():
            step.awaits_device = False
            if times.gpu_start_offset_ns is not None:
                start_ns = times.submitted_ns + times.gpu_start_offset_ns
                step.device_ns = start_ns, start_ns + times.gpu_time_ns


def device_times() -> DeviceTimes | None:
    """Times by CUDA's events; `None` where this process has not set up CUDA, which is not done here either."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    from engine_hooks.adapters.torch_cuda.event_source import CudaEventSource  # noqa: PLC0415 -- it imports torch

    return DeviceTimes(CudaEventSource(torch.device("cuda", torch.cuda.current_device())))
