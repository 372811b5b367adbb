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

_GIVE_UP_S: Final = 1.0
"""How long an outlet that was closed may take to return."""


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
            self._drain()
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
        """Sleeps one interval, less if there is a flush to serve or an end to come."""
        with self._turn:
            self._turn.wait_for(lambda: self._stopping or self._flushes_asked > self._flushes_done, self._interval_s)
            return self._flushes_asked

    def _drain(self) -> None:
        """Everything in the buffer now; what comes in meanwhile waits for the next turn."""
        waiting = len(self._buffer)
        while waiting > 0 and (batch := self._take(min(waiting, BATCH_SPANS_MAX))):
            self._deliver(batch)
            waiting -= len(batch)

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
