"""Events of a device queue, as the tracker takes them."""

from engine_hooks.adapters.device.event_source import HostInstant
from engine_hooks.adapters.torch_cpu.device_queue import DeviceQueue, QueueEvent
from engine_hooks.contract.names import GpuTimeSource


class QueueEventSource:
    """The events of one `DeviceQueue`, by the host's clock.

    GPU time is what the queue's thread computed. While the operating system runs something
    else, while another thread holds the interpreter, or while a drained queue's start event
    has fired and its work is yet to come, the device stands still: that is wall time alone.
    """

    gpu_time_source = GpuTimeSource.HOST

    def __init__(self, queue: DeviceQueue) -> None:
        self._queue = queue

    def new_event(self) -> QueueEvent:
        """An event that was never recorded."""
        return self._queue.new_event()

    def available(self) -> bool:
        """Always: nothing is captured here."""
        return True

    def current_stream(self) -> object:
        """There is one."""
        return None

    def record(self, event: QueueEvent, stream: object) -> None:  # noqa: ARG002 - there is one
        """Let it fire in its turn."""
        self._queue.record(event)

    def done(self, event: QueueEvent) -> bool:
        """Whether it has fired."""
        return event.query()

    def elapsed_ns(self, earlier: QueueEvent, later: QueueEvent) -> int:
        """Exact: both were stamped by one clock."""
        return later.fired_ns - earlier.fired_ns

    def run_ns(self, start: QueueEvent, end: QueueEvent, elapsed_ns: int) -> int:
        """Processor time of the queue's thread."""
        return min(max(end.fired_thread_ns - start.fired_thread_ns, 0), elapsed_ns)

    def anchor(self, event: QueueEvent) -> HostInstant:
        """The device's clock is the host's."""
        now_ns = self._queue.clock_ns()
        event.stamp(now_ns)
        return HostInstant(now_ns, 0)
