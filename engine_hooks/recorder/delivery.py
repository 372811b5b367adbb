"""The background half of the recorder: one thread that empties the buffer into an outlet."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.recorder.encoder import BATCH_SPANS_MAX
from engine_hooks.recorder.losses import LossReason
from engine_hooks.recorder.outlets import Outlet

logger = logging.getLogger(__name__)

_LINGER_SHARE_MIN: Final = 1 / 8
"""Of the interval: no turn is shorter."""
_GIVE_UP_S: Final = 1.0
"""How long an outlet that was closed may take to return."""


def next_linger_s(linger_s: float, taken: int, interval_s: float) -> float:
    """How long the next turn waits: as long as a batch takes to come together, and never longer than the interval.

    A request has its price whatever it holds. At an engine's pace the interval is what bounds its size, and what one
    waits for a record to be seen; a faster one is served more often, so that its buffer holds.

    Args:
        linger_s: How long the last turn waited.
        taken: Records that it found.
        interval_s: The longest.
    """
    for_a_batch_s = linger_s * BATCH_SPANS_MAX / max(taken, 1)
    return min(max(for_a_batch_s, interval_s * _LINGER_SHARE_MIN), interval_s)


class Delivery:
    """Takes records out of a buffer, in batches, and delivers them.

    Belongs to one process; a forked child needs another. The buffer is shared with the thread that
    records; everything else is the delivery's own.
    """

    def __init__(self, buffer: deque[GraphExecution], open_outlet: Callable[[], Outlet], interval_s: float) -> None:
        self.losses = dict.fromkeys(LossReason, 0)
        self.exported = 0
        self._outlet: Outlet | None = None
        self._buffer = buffer
        self._open_outlet = open_outlet
        self._interval_s = interval_s
        self._linger_s = interval_s * _LINGER_SHARE_MIN  # the first records are seen soon
        self._turn = threading.Condition()
        self._stopping = False
        self._flushes_asked = 0
        self._flushes_done = 0
        self._thread = threading.Thread(target=self._run, name="tachograph-recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def flush(self, timeout_s: float) -> bool:
        """Waits until all that is in the buffer now was exported or given up; false if the timeout passed first."""
        with self._turn:
            self._flushes_asked += 1
            asked = self._flushes_asked
            self._turn.notify_all()
            return self._turn.wait_for(lambda: self._flushes_done >= asked, timeout_s)

    def stop(self, timeout_s: float) -> bool:
        """Exports what is left and ends the thread; false if records were still waiting when the timeout passed."""
        with self._turn:
            self._stopping = True
            self._turn.notify_all()
        self._thread.join(timeout_s)
        finished = not self._thread.is_alive()
        if not finished:
            self._abandon()
        return finished

    def _abandon(self) -> None:
        self.losses[LossReason.STOPPED] += len(self._take(len(self._buffer)))
        self._close_outlet()  # makes a delivery under way return
        self._thread.join(_GIVE_UP_S)

    def _close_outlet(self) -> None:
        with self._turn:
            outlet, self._outlet = self._outlet, None
        if outlet is not None:
            outlet.close()

    # ---- the background thread

    def _run(self) -> None:
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))  # the export must not trace itself
        self._outlet = self._opened()
        while not self._stopping:
            asked = self._await_turn()
            self._linger_s = next_linger_s(self._linger_s, self._drain(), self._interval_s)
            with self._turn:
                self._flushes_done = asked
                self._turn.notify_all()
        self._drain()
        self._close_outlet()

    def _opened(self) -> Outlet | None:
        try:
            return self._open_outlet()
        except Exception as error:  # whatever it is that cannot be set up, the engine goes on
            logger.error("no graph execution can be sent: %s", error)  # noqa: TRY400
            return None

    def _await_turn(self) -> int:
        """Lets records come together, less long if there is a flush to serve or an end to come."""
        with self._turn:
            self._turn.wait_for(lambda: self._stopping or self._flushes_asked > self._flushes_done, self._linger_s)
            return self._flushes_asked

    def _drain(self) -> int:
        """Everything in the buffer now, and how much it was; what comes in meanwhile waits for the next turn."""
        found = waiting = len(self._buffer)
        while waiting > 0 and (batch := self._take(min(waiting, BATCH_SPANS_MAX))):
            self._deliver(batch)
            waiting -= len(batch)
        return found

    def _take(self, count: int) -> list[GraphExecution]:
        batch: list[GraphExecution] = []
        try:
            while len(batch) < count:
                batch.append(self._buffer.popleft())
        except IndexError:  # the rest was taken by whoever stops
            pass
        return batch

    def _deliver(self, batch: list[GraphExecution]) -> None:
        outlet = self._outlet
        lost = {LossReason.EXPORT_FAILED: len(batch)} if outlet is None else outlet.deliver(batch)
        for reason, count in lost.items():
            self.losses[reason] += count
        self.exported += len(batch) - sum(lost.values())
