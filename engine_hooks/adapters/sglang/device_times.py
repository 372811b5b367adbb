"""The device's own times of a step, behind an interface, so that the rest runs where there is no device."""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from engine_hooks.adapters.device.event_source import EventSource
from engine_hooks.adapters.device.pairs import EventPair
from engine_hooks.adapters.device.tracker import ExecutionTracker
from engine_hooks.contract.names import GpuTimeSource

if TYPE_CHECKING:
    from engine_hooks.adapters.sglang.steps import Step

logger = logging.getLogger(__name__)


class DeviceTimes(NamedTuple):
    """Times of one step, as the contract defines them. Nanoseconds."""

    gpu_time_ns: int
    wall_time_ns: int
    start_offset_ns: int | None
    """Device start - submission; `None` where it is not known."""
    source: GpuTimeSource


class StepTimer(Protocol):
    """Times steps on the device. One thread calls it, and nothing here waits."""

    def begin(self, step: "Step") -> None:
        """The step's first work is about to be submitted to the current stream."""

    def end(self, step: "Step") -> None:
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
        self._tracker = ExecutionTracker(source, clock_ns=clock_ns)
        self._source = source.gpu_time_source
        self._open: tuple[Step, EventPair[Any]] | None = None

    def begin(self, step: "Step") -> None:
        if self._open is not None:
            if self._open[0] is step:
                return
            self._tracker.abandon(self._open[1])  # its submission raised
        known = step.submission
        if known.after_idle:
            self._tracker.idle()
        self._open = step, self._tracker.begin(known.eager_name, known.kind, {_STEP: step})

    def end(self, step: "Step") -> None:
        if self._open is None or self._open[0] is not step:
            return
        pair = self._open[1]
        self._open = None
        self._tracker.end(pair)
        step.timed = pair.measured

    def poll(self) -> None:
        for pair, times in self._tracker.completed():
            step: Step = (pair.fields or {})[_STEP]
            known = step.submission
            later_ns = times.submitted_ns - known.submitted_ns
            offset_ns = times.gpu_start_offset_ns
            step.device = DeviceTimes(
                times.gpu_time_ns,
                times.wall_time_ns + (later_ns if known.after_idle else 0),
                None if offset_ns is None else offset_ns + later_ns,
                self._source,
            )


_STEP = "step"


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
