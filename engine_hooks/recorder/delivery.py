"""The background half of the recorder: one thread that empties the buffer into an outlet."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.recorder.encoder import BATCH_SPANS_MAX
from engine_hooks.recorder.losses import LossReason
from engine_hooks.recorder.outage import Outage
from engine_hooks.recorder.outlets import Outlet

logger = logging.getLogger(__name__)

_LINGER_SHARE_MIN: Final = 1 / 8
"""Of the interval: no turn is shorter."""
_GIVEN_UP: Final = {LossReason.BUFFER_FULL, LossReason.EXPORT_FAILED, LossReason.STOPPED}
"""A batch of which something was lost for these did not reach the collector."""
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

    While the collector is away the batch in hand is tried again and the rest waits in the buffer, `capacity` records
    in all. Then the oldest go: those in the buffer at once, and the batch in hand with its next failure, so that no
    batch which a collector never takes stops the others for good.
    """

    def __init__(
        self,
        buffer: deque[GraphExecution],
        open_outlet: Callable[[], Outlet],
        interval_s: float,
        capacity: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.exported = 0
        self.too_late = 0
        """Records that came after the end. The recording thread counts these."""
        self._overflowed = 0
        """Records that made room for others. The recording thread counts these."""
        self._overflows_seen = 0
        self._given_up = dict.fromkeys(LossReason, 0)
        self._outage = Outage(clock)
        self._outlet: Outlet | None = None
        self._buffer = buffer
        self._capacity = capacity
        self._in_hand = 0
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

    @property
    def losses(self) -> Mapping[LossReason, int]:
        """Records lost, by reason; every reason is there."""
        lost = dict(self._given_up)
        lost[LossReason.BUFFER_FULL] += self._overflowed
        lost[LossReason.STOPPED] += self.too_late
        return lost

    def take_in(self, execution: GraphExecution) -> None:
        """Puts a record into the buffer; in place of the oldest one there, if it is full. For the recording thread."""
        if len(self._buffer) + self._in_hand >= self._capacity:
            self._overflowed += 1
            try:
                self._buffer.popleft()
            except IndexError:  # all of it is in hand: it is this one that does not fit
                return
        self._buffer.append(execution)

    def flush(self, timeout_s: float) -> bool:
        """Waits until all that is in the buffer now was exported or given up; false if the timeout passed first."""
        with self._turn:
            self._flushes_asked += 1
            asked = self._flushes_asked
            self._wake()
            return self._turn.wait_for(lambda: self._flushes_done >= asked, timeout_s)

    def stop(self, timeout_s: float) -> bool:
        """Exports what is left and ends the thread; false if records were still waiting when the timeout passed."""
        with self._turn:
            self._stopping = True
            self._wake()
        self._thread.join(timeout_s)
        finished = not self._thread.is_alive()
        if not finished:
            self._abandon()
        return finished

    def _wake(self) -> None:
        """Ends the thread's waiting, for records or for another attempt."""
        self._turn.notify_all()
        if self._outlet is not None:
            self._outlet.hurry()

    def _abandon(self) -> None:
        self._given_up[LossReason.STOPPED] += len(self._take(len(self._buffer)))
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
        while waiting > 0 and (batch := self._take_in_hand(min(waiting, BATCH_SPANS_MAX))):
            self._deliver(batch)
            waiting -= len(batch)
        self._in_hand = 0
        return found

    def _take_in_hand(self, count: int) -> list[GraphExecution]:
        self._in_hand = count  # before they leave the buffer: nobody else takes their place
        batch = self._take(count)
        self._in_hand = len(batch)
        return batch

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
        if outlet is None:
            self._given_up[LossReason.EXPORT_FAILED] += len(batch)
            return
        lost = outlet.deliver(batch, partial(self._goes_on, outlet.where))
        for reason, count in lost.items():
            self._given_up[reason] += count
        self.exported += len(batch) - lost.total()
        sent = len(batch) - lost[LossReason.NOT_ENCODABLE]
        if sent and not _GIVEN_UP & lost.keys():
            self._outage.reached(outlet.where, sent, len(self._buffer), self._lost_to_outages)

    def _goes_on(self, where: str, error: Exception) -> bool:
        """After an attempt that failed: whether the batch in hand, the oldest there is, still has room."""
        self._outage.fails(where, error, self._lost_to_outages)
        seen, self._overflows_seen = self._overflows_seen, self._overflowed
        return self._overflowed == seen

    @property
    def _lost_to_outages(self) -> int:
        return sum(count for reason, count in self.losses.items() if reason in _GIVEN_UP)
