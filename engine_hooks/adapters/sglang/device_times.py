"""The device's own times of a step, behind an interface, so that the rest runs where there is no device."""

import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

from engine_hooks.adapters.device.event_source import EventSource
from engine_hooks.adapters.device.step_events import StepEvents
from engine_hooks.adapters.sglang.step import DeviceTimes, Step

logger = logging.getLogger(__name__)


class StepTimer(Protocol):
    """Times steps on the device. One thread calls it, and nothing here waits."""

    def begin(self, step: Step) -> None:
        """The step's first work is about to be submitted to the current stream."""

    def end(self, step: Step) -> None:
        """All its work was submitted. A step that was not begun has none."""

    def poll(self) -> None:
        """Give steps that have ended their times (`Step.device`)."""


class EventTimer:
    """Steps timed by pairs of device events, from their first model forward or graph replay to all that they submit.

    The launches in between are inside the interval, and on a drained queue the start event fires
    at once: a step without a graph takes as long as its launches do.
    """

    def __init__(self, source: EventSource[Any], clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """Makes the pool of events. Raises what the source raises where its device is not there."""
        self._events: StepEvents[Step] = StepEvents(source, clock_ns)
        self._source = source.gpu_time_source
        self._begun: Step | None = None

    def begin(self, step: Step) -> None:
        if step is self._begun:  # also where its beginning was not measured: no part of it is taken for all
            return
        self._begun = step
        self._events.abandon()  # the submission before it raised
        known = step.submission
        self._events.begin(step, known.eager_name, known.kind, after_idle=known.after_idle)

    def end(self, step: Step) -> None:
        if step is self._begun:
            self._begun = None
            step.timed = self._events.end() is step

    def poll(self) -> None:
        for step, times in self._events.completed():
            known = step.submission
            later_ns = times.submitted_ns - known.submitted_ns
            offset_ns = times.gpu_start_offset_ns
            step.device = DeviceTimes(
                times.gpu_time_ns,
                times.wall_time_ns + (later_ns if known.after_idle else 0),
                None if offset_ns is None else offset_ns + later_ns,
                self._source,
            )


def cuda_timer() -> StepTimer | None:
    """A timer of the current CUDA device; `None`, with a line in the log, where there is none."""
    try:
        # Torch is the engine's own, and there by now.
        import torch  # noqa: PLC0415

        from engine_hooks.adapters.torch_cuda.event_source import CudaEventSource  # noqa: PLC0415

        return EventTimer(CudaEventSource(torch.device("cuda", torch.cuda.current_device())))
    except Exception as error:
        logger.info("the device's own times are not recorded, the host's stand in: %s", error)
        return None
