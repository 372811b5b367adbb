"""The `Acceptor` behind the doors: on disk first, then in ClickHouse.

One thread puts all requests that wait into the spool with one commit; another moves them from there into ClickHouse;
a third answers senders for whom that takes too long.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

import structlog

from collector.acceptance import AcceptanceError, Outcome, QueueFullError, ReceivedRequest, StoreUnavailableError
from collector.decoding.wire import request_id_of, spans_of
from collector.spool.answers import Answers, Waiting
from collector.spool.database import DiskFullError
from collector.spool.drain import Drain, DrainLimits, Store
from collector.spool.records import Kept
from collector.spool.spool import REQUEST_OVERHEAD_BYTES, Spool
from collector.spool.turned_away import TurnedAway
from collector.store.clickhouse import first_line
from collector.telemetry.metrics import CollectorMetrics

log = structlog.get_logger(__name__)

_FULL_RETRY_AFTER_S: Final = 5
"""When to ask again for room on disk: it comes as fast as ClickHouse takes what waits."""
_USUAL_BYTES: Final = 64 * 1024
"""A request of common size, for whoever asks whether there is room."""
_WHY_FULL: Final = {
    "memory": "requests arrive faster than they can be written to disk",
    "spool_bytes": "the spool holds as many bytes as it may (TACHOGRAPH_SPOOL_BYTES_MAX)",
    "disk_free": "the disk of the spool has less free than is to be kept (TACHOGRAPH_DISK_FREE_BYTES_MIN)",
    "disk_full": "the disk of the spool is full",
    "spool_gone": "the spool is gone from its directory, or its disk does not answer: restart the collector once it is back",
    "store_bytes": "the store takes as many bytes as it may (TACHOGRAPH_STORE_BYTES_MAX)",
}

_TOLD_ELSEWHERE: Final = ("memory", "store_bytes")
"""A burst, which is over when the disk has taken it; and what the store's bound tells itself."""


class WriterLimits(NamedTuple):
    """Bounds of the writer."""

    queue_bytes: int = 64 * 1024 * 1024
    """Requests in memory that are not answered, together. Beyond it, requests are turned away."""
    drain: DrainLimits = DrainLimits()
    stop_s: float = 5.0
    """How long a stop goes on storing what waits."""


class Writer:
    """An `Acceptor`. `start` it once, `stop` it once; the spool is the caller's to close."""

    def __init__(
        self,
        spool: Spool,
        open_store: Callable[[], Store],
        metrics: CollectorMetrics,
        limits: WriterLimits | None = None,
        now_ns: Callable[[], int] = time.time_ns,
        *,
        is_store_full: Callable[[], bool] = lambda: False,
    ) -> None:
        self.spool = spool
        self._is_store_full = is_store_full
        self._metrics = metrics
        self._limits = limits or WriterLimits()
        self._now_ns = now_ns
        self._queue: deque[Waiting] = deque()
        self._held_bytes = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._turned_away = TurnedAway()
        self._answers = Answers()
        self._drain = Drain(spool, open_store, self._answers, metrics, self._limits.drain)
        self._thread = threading.Thread(target=self._run, name="tachograph-spool", daemon=True)
        metrics.queue_limit_bytes.set(self._limits.queue_bytes)
        metrics.queue_bytes.set_function(lambda: self._held_bytes)
        metrics.queue_requests.set_function(lambda: len(self._queue))

    def trouble(self) -> str:
        """Why nothing is stored at present; empty when all is well. Requests may be accepted all the same."""
        return self._drain.trouble()

    def want_of_room(self) -> str:
        """Why a request of 64 KiB would be turned away; empty where there is room for it."""
        reason = self._no_room_for(_USUAL_BYTES)
        return _WHY_FULL[reason] if reason else ""

    def spool_trouble(self) -> str:
        """Why requests are turned away for want of room in the spool or on its disk, in words; empty where none are."""
        reason = self.no_room_in_spool()
        return _WHY_FULL[reason] if reason else ""

    def no_room_in_spool(self) -> str:
        """The same as `Spool.no_room_for` has it, of a request of 64 KiB, or of the largest that was turned away lately."""
        ever = self._turned_away.ever
        reason = self.spool.no_room_for(max(_USUAL_BYTES, self._turned_away.largest_bytes()))
        if not reason:
            self._turned_away.end(ever)
        return reason

    def resting(self) -> AbstractContextManager[None]:
        """See `Drain.resting`."""
        return self._drain.resting()

    def start(self) -> None:
        """Begin to keep what comes in, and to store what waits from before."""
        self._answers.start()
        self._drain.start()
        self._thread.start()

    def hurry(self) -> None:
        """The doors are about to shut: who waits is answered as soon as its request is on disk. Before `stop`."""
        self._answers.close()

    def stop(self) -> None:
        """Take nothing more, store what waits for `stop_s` at most, and end; what is left stays in the spool."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()
        if not self._drain.stop(self._limits.stop_s):
            log.warning("stopped while an insert was under way; it is tried again at the next start")
        self._answers.stop()

    def accept(self, request: bytes, door: str) -> "Future[Outcome]":
        """See `Acceptor.accept`."""
        spans = spans_of(request)
        if spans == 0:
            answer: Future[Outcome] = Future()
            answer.set_result(Outcome())
            return answer
        received = ReceivedRequest.of(request_id_of(request), request, self._now_ns() // 1_000_000, door, spans)
        return self._enqueue(received)

    def _enqueue(self, received: ReceivedRequest) -> "Future[Outcome]":
        size = received.size + REQUEST_OVERHEAD_BYTES
        with self._changed:
            if self._stopping:
                raise StoreUnavailableError("the collector is stopping")
            is_burst = self._held_bytes > 0 and self._held_bytes + size > self._limits.queue_bytes
            reason = "memory" if is_burst else self._no_room_for(size)
            if not reason:
                self._held_bytes += size
                waiting = Waiting(received, lambda: self._release(size))
                self._queue.append(waiting)
                self._changed.notify_all()
        if reason:  # Told without the lock: a log that nobody reads must not hold up whoever writes to disk.
            raise self._full(reason, size)
        if self._turned_away.largest_bytes():
            self.no_room_in_spool()  # Maybe it is over.
        return waiting.answer

    def _no_room_for(self, size: int) -> str:
        return "store_bytes" if self._is_store_full() else self.spool.no_room_for(size)

    def _release(self, size: int) -> None:
        with self._changed:
            self._held_bytes -= size

    def _full(self, reason: str, size: int) -> QueueFullError:
        self._metrics.turned_away.labels(reason).inc()
        if reason not in _TOLD_ELSEWHERE:
            self._turned_away.add(_WHY_FULL[reason], size)
        return QueueFullError(_WHY_FULL[reason], 1 if reason == "memory" else _FULL_RETRY_AFTER_S)

    def _run(self) -> None:
        while group := self._next_group():
            try:
                self._keep(group)
            except DiskFullError as error:
                together = sum(one.received.size + REQUEST_OVERHEAD_BYTES for one in group)
                self._turn_away(group, error, lambda: self._full("disk_full", together))  # noqa: B023 -- called at once
            except Exception as error:  # The thread must live: each sender is told, and the next group gets its chance.
                reason = f"the request cannot be kept: {first_line(error)}"
                self._turn_away(group, error, lambda: StoreUnavailableError(reason))  # noqa: B023 -- called at once

    def _next_group(self) -> list[Waiting]:
        """All that wait, up to a batch's bytes. Empty when stopping and nothing is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._stopping)
            group: list[Waiting] = []
            taken = 0
            while self._queue and taken < self._limits.drain.batch_bytes:
                group.append(self._queue.popleft())
                taken += group[-1].received.size
            return group

    def _keep(self, group: list[Waiting]) -> None:
        """Put requests on disk, and see to their answers."""
        taken = self.spool.append(one.received for one in group)
        for waiting, kept in zip(group, taken, strict=True):
            waiting.duplicate = kept is not Kept.NEW
            if waiting.duplicate:
                self._metrics.count_outcome(Outcome(duplicate=True))
        untold = [one for one, kept in zip(group, taken, strict=True) if isinstance(kept, Kept)]
        self._answers.expect(untold, self._drain.patience_s())
        self._drain.notify()
        for waiting, kept in zip(group, taken, strict=True):
            if isinstance(kept, Outcome):
                waiting.tell(kept)

    def _turn_away(self, group: list[Waiting], error: Exception, answer: Callable[[], AcceptanceError]) -> None:
        """Nothing of a group was kept: say so to each of its senders, and to the log."""
        expected = isinstance(error, DiskFullError)
        log.warning("requests not kept", error=first_line(error), exc_info=None if expected else error)
        for waiting in group:
            waiting.fail(answer())
