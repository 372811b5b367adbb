"""A device's queue without a device: one thread that runs what is submitted, in order."""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import Final, Self

from engine_hooks.adapters.device.errors import DeviceQueueError

DEPTH_MAX: Final = 1024
"""Pieces of work that may wait, events included; a GPU's launch queue is bounded alike."""


class QueueEvent:
    """Fires when the queue has run everything submitted before the event was recorded.

    It may be recorded again; the latest recording counts. One thread records.
    """

    def __init__(self) -> None:
        self.fired_ns = 0
        """When it fired last, on the host's monotonic clock."""
        self.fired_thread_ns = 0
        """Processor time that the queue's thread had had by then."""
        self.fire: Callable[[], None] = self._fire
        """What the queue runs: bound once, so that recording makes no objects."""
        self._recorded = 0
        self._fired = 0
        self._waiter: threading.Lock | None = None

    def recording(self) -> None:
        """It is about to be submitted."""
        self._recorded += 1

    def not_recorded(self) -> None:
        """It was not submitted after all."""
        self._recorded -= 1

    def query(self) -> bool:
        """Whether the latest recording has fired; true if it never was recorded, as CUDA's."""
        return self._fired == self._recorded

    def wait(self, timeout_s: float) -> bool:
        """Blocks until it has fired; false if the timeout passed first. One thread waits."""
        if self.query():
            return True
        self._waiter = threading.Lock()
        self._waiter.acquire()
        # Asked again: it may have fired before it could know of the waiter.
        fired = self.query() or self._waiter.acquire(timeout=timeout_s)
        self._waiter = None
        return fired or self.query()

    def stamp(self, now_ns: int) -> None:
        """Fires at once, by the host's hand."""
        self.fired_ns = now_ns

    def _fire(self) -> None:
        self.fired_ns = time.monotonic_ns()
        self.fired_thread_ns = time.thread_time_ns()
        self._fired += 1
        waiter = self._waiter
        if waiter is not None and self._fired == self._recorded:
            waiter.release()


class DeviceQueue:
    """Runs submitted work in order, in one thread of its own, while the host goes on.

    One thread submits. Work that raises leaves the queue failed, as a kernel's fault does a
    CUDA context: what is submitted afterwards is refused with the first error, events still fire.
    """

    def __init__(self, depth_max: int = DEPTH_MAX) -> None:
        """Starts the thread. `depth_max`: pieces of work that may wait; further ones are refused."""
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._depth_max = depth_max
        self._closed = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="tachograph-device-queue", daemon=True)
        self._thread.start()

    def new_event(self) -> QueueEvent:
        """An event to record on this queue."""
        return QueueEvent()

    def clock_ns(self) -> int:
        """The clock that events are stamped by: the host's monotonic one."""
        return time.monotonic_ns()

    def sleep(self, duration_s: float) -> None:
        """Let the host do nothing for so long, by the same clock."""
        time.sleep(duration_s)

    def submit(self, work: Callable[[], object]) -> None:
        """Run this after everything submitted before.

        Raises:
            DeviceQueueError: the queue is closed or full, or earlier work raised.
        """
        self.check()
        self._put(work)

    def check(self) -> None:
        """Raises `DeviceQueueError` with the first error, if any work has raised so far."""
        if self._failure is not None:
            raise DeviceQueueError(
                f"work on the device queue failed: {type(self._failure).__name__}: {self._failure}"
            ) from self._failure

    def record(self, event: QueueEvent) -> None:
        """Let the event fire when everything submitted before has been run.

        Raises:
            DeviceQueueError: the queue is closed or full.
        """
        event.recording()
        try:
            self._put(event.fire)
        except DeviceQueueError:
            event.not_recorded()
            raise

    def close(self, timeout_s: float = 5.0) -> bool:
        """Runs what is waiting and ends the thread; false if it was still at it when the timeout passed."""
        if not self._closed:
            self._closed = True
            self._work.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _put(self, work: Callable[[], object]) -> None:
        if self._closed:
            raise DeviceQueueError("the device queue is closed")
        if self._work.qsize() >= self._depth_max:
            raise DeviceQueueError(f"{self._depth_max} pieces of work wait on the device queue already: wait for some")
        self._work.put(work)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except BaseException as error:  # the submitter is told, whatever it was
                self._failure = self._failure or error
            del work  # what it holds is not kept until the next one comes


class QueueGraph:
    """A piece of work that is submitted again and again, as a captured graph is replayed."""

    def __init__(self, queue: DeviceQueue, work: Callable[[], object]) -> None:
        self._queue = queue
        self._work = work

    def replay(self) -> None:
        """Submit it. Raises as `DeviceQueue.submit` does."""
        self._queue.submit(self._work)
