"""What a device must offer so that its executions can be timed."""

from typing import NamedTuple, Protocol, TypeVar

from engine_hooks.contract.names import GpuTimeSource

EventT = TypeVar("EventT")


class HostInstant(NamedTuple):
    """When an event fired, on the host's monotonic clock. Nanoseconds."""

    host_ns: int
    uncertainty_ns: int
    """How far off `host_ns` may be, either way."""


class EventSource(Protocol[EventT]):
    """Events of one device, recorded on streams of work that it runs in order.

    An event may be recorded again and again; the latest recording counts. Nothing here waits
    for the device. Any method but `gpu_time_source` may raise whatever a broken device makes
    its library raise: the tracker counts it, and the engine does not see it.
    """

    @property
    def gpu_time_source(self) -> GpuTimeSource:
        """What clock the events read."""

    def new_event(self) -> EventT:
        """An event that was never recorded. Called while a pool is made, never for an execution."""

    def available(self) -> bool:
        """Whether events may be touched now: not while the stream's work is being captured into a graph."""

    def current_stream(self) -> object:
        """The stream that the engine submits to now."""

    def record(self, event: EventT, stream: object) -> None:
        """Let `event` fire when the device has run everything submitted to `stream` so far."""

    def done(self, event: EventT) -> bool:
        """Whether the latest recording has fired. Asks, never waits."""

    def elapsed_ns(self, earlier: EventT, later: EventT) -> int:
        """Device time from one fired event to another; negative if they fired the other way round."""

    def run_ns(self, start: EventT, end: EventT, elapsed_ns: int) -> int:
        """How long the device ran from `start` to `end`, which lie `elapsed_ns` apart: all of it on a GPU.

        Less where something else may take the device away: a thread of the CPU.
        """

    def anchor(self, event: EventT) -> HostInstant | None:
        """Record `event` so that it fires at once, and say when; `None` where the device cannot do so now.

        Takes a fraction of a millisecond at most.
        """
