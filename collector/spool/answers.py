"""Who waits for what: each sender is told what became of its request as soon as it is known, and at the latest soon.

ClickHouse tells, where it stores in time. Where it does not, the request is walked in Python: an engine is not kept
waiting for a store that is away.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from collector.acceptance import Outcome, ReceivedRequest
from collector.spool.verdict import verdict_of

_LAST_ANSWERS_S: Final = 1.0


class Waiting:
    """One sender's request, and the answer that it waits for."""

    def __init__(self, received: ReceivedRequest, release: Callable[[], None]) -> None:
        self.received = received
        self.answer: Future[Outcome] = Future()
        # Begun, so that nobody can cancel it: a sender that gives up leaves an answer that nobody reads, and no other.
        self.answer.set_running_or_notify_cancel()
        self.due_at = 0.0
        self.duplicate = False
        self._release = release

    def tell(self, outcome: Outcome) -> None:
        """Answer; what was held for it is let go."""
        self._release()
        self.answer.set_result(outcome._replace(duplicate=True) if self.duplicate else outcome)

    def fail(self, error: Exception) -> None:
        """Answer that it is not kept."""
        self._release()
        self.answer.set_exception(error)


class Answers:
    """Requests that are on disk and not answered. `start` once, `stop` once."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Waiting]] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="tachograph-answers", daemon=True)

    def start(self) -> None:
        """Begin to look after who waits."""
        self._thread.start()

    def stop(self) -> None:
        """Answer those who still wait, within a second: the doors are closed by then, so that few can hear it."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(_LAST_ANSWERS_S)

    def close(self) -> None:
        """The doors are about to shut: nobody waits for ClickHouse's word any more. Before `stop`."""
        with self._changed:
            self._closing = True
        self.hurry()

    def expect(self, waiting: list[Waiting], within_s: float) -> None:
        """These are on disk, in the order of their coming; ClickHouse has so long to tell of them."""
        with self._changed:
            for one in waiting:
                one.due_at = 0.0 if self._closing else time.monotonic() + within_s
                self._waiting.setdefault(one.received.request_id, []).append(one)
            self._changed.notify_all()

    def settle(self, request_id: str, outcome: Outcome) -> None:
        """ClickHouse has told what became of a request."""
        with self._changed:
            answered = self._waiting.pop(request_id, [])
        for one in answered:
            one.tell(outcome)

    def hurry(self) -> None:
        """ClickHouse will not tell of those who wait now."""
        with self._changed:
            for request_id in self._waiting:
                self._waiting[request_id][0].due_at = 0.0
            self._changed.notify_all()

    def _run(self) -> None:
        while due := self._next_due():
            outcome = verdict_of(due[0].received.request)
            for one in due:
                one.tell(outcome)

    def _next_due(self) -> list[Waiting]:
        """Those who waited too long for one request; waits for them. None when stopping and nobody waits."""
        with self._changed:
            while True:
                request_id = next(iter(self._waiting), None)
                if request_id is None:
                    if self._stopping:
                        return []
                    self._changed.wait()
                    continue
                left_s = self._waiting[request_id][0].due_at - time.monotonic()
                if left_s <= 0 or self._stopping:
                    return self._waiting.pop(request_id)
                self._changed.wait(left_s)
