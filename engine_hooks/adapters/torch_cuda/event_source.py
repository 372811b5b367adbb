"""CUDA's events, as the tracker takes them. Source: https://pytorch.org/docs/stable/generated/torch.cuda.Event.html"""

import time
from collections.abc import Callable
from typing import Final

import torch

from engine_hooks.adapters.device.event_source import HostInstant
from engine_hooks.contract.names import GpuTimeSource

ANCHOR_WITHIN_NS: Final = 200_000
"""How long an anchor waits for its event, which a stream of its own runs at once unless the device is full."""
MS_NS: Final = 1_000_000


class CudaEventSource:
    """Timing events of one CUDA device, recorded on whatever stream the engine submits to.

    Nothing is touched while the current stream is being captured: an event asked for then
    would spoil the capture. Another thread's capture is not seen; capture with
    `capture_error_mode="thread_local"` where an engine captures beside running.
    """

    gpu_time_source = GpuTimeSource.CUDA_EVENT

    def __init__(self, device: torch.device, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        """Makes the stream for anchors. Raises what torch raises where there is no such device."""
        self._device = device
        self._clock_ns = clock_ns
        self._anchors = torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]

    def new_event(self) -> torch.cuda.Event:
        """A timing event. CUDA makes its half now, not at the first recording."""
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(self._anchors)
        return event

    def available(self) -> bool:
        """Not while the current stream is being captured."""
        return not torch.cuda.is_current_stream_capturing()

    def current_stream(self) -> torch.cuda.Stream:
        """The device's current stream."""
        return torch.cuda.current_stream(self._device)

    def record(self, event: torch.cuda.Event, stream: object) -> None:
        """Let it fire when the stream has come so far."""
        event.record(stream)  # type: ignore[arg-type] # it is what `current_stream` gave

    def done(self, event: torch.cuda.Event) -> bool:
        """`cudaEventQuery`."""
        return bool(event.query())  # type: ignore[no-untyped-call]

    def elapsed_ns(self, earlier: torch.cuda.Event, later: torch.cuda.Event) -> int:
        """`cudaEventElapsedTime`: float32 milliseconds, so that long distances are rounded.

        Whether it goes below 0 is not written anywhere, and ROCm's does not: zero is asked the other way round.
        """
        elapsed_ms: float = earlier.elapsed_time(later) or -later.elapsed_time(earlier)
        return round(elapsed_ms * MS_NS)

    def run_ns(self, start: torch.cuda.Event, end: torch.cuda.Event, elapsed_ns: int) -> int:  # noqa: ARG002
        """All of it: nothing is known of who else uses the GPU."""
        return elapsed_ns

    def anchor(self, event: torch.cuda.Event) -> HostInstant | None:
        """An event on a stream that has nothing else to do fires at once; asked until it has."""
        before_ns = self._clock_ns()
        event.record(self._anchors)
        while True:
            fired = self.done(event)
            now_ns = self._clock_ns()
            if fired:
                return HostInstant((before_ns + now_ns) // 2, (now_ns - before_ns + 1) // 2)
            if now_ns - before_ns > ANCHOR_WITHIN_NS:
                return None
