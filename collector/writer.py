"""Group commit: one thread takes all requests that wait and stores them with one insert.

An acknowledgement means stored. A request seen before, in this batch or in the past days, is
answered with what became of it then.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeVar

import structlog
import tenacity
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.acceptance import AcceptanceError, MalformedRequestError, Outcome, QueueFullError, StoreUnavailableError
from collector.clickhouse import first_line
from collector.decoding.wire import request_id_of, spans_of
from collector.metrics import CollectorMetrics
from collector.request_store import ReceivedRequest

T = TypeVar("T")
log = structlog.get_logger(__name__)

_UNREADABLE: Final = frozenset(
    {"PROTOBUF_BAD_CAST", "UNKNOWN_PROTOBUF_FORMAT", "INCORRECT_DATA", "CANNOT_PARSE_PROTOBUF"}
)
"""ClickHouse's errors on bytes that upb takes for OTLP and ClickHouse does not: a fault of a request, not of the store."""

_REQUEST_OVERHEAD_BYTES: Final = 1024
"""What a waiting request takes beside its bytes, so that many tiny ones have a bound as well."""


class Store(Protocol):
    """Where requests are kept: `RequestStore`, which says what the methods promise."""

    def outcomes(self, request_ids: Iterable[str]) -> dict[str, Outcome]: ...

    def insert(self, batch: list[ReceivedRequest]) -> None: ...


class WriterLimits(NamedTuple):
    """Bounds of the writer."""

    queue_bytes: int = 64 * 1024 * 1024
    """Requests that wait, together. Beyond it, requests are turned away."""
    batch_bytes: int = 16 * 1024 * 1024
    """Requests of one insert, together; one larger request makes a batch of its own."""
    commit_interval_s: float = 0.1
    """From the start of an insert to the start of the next, so that few parts are made. A full batch does not wait."""
    retry_for_s: float = 3.0
    """How long a failing insert is tried again before its senders are told to come back. 0 is one attempt."""


@dataclass
class _Waiting:
    """A request, and everyone who waits for its outcome."""

    received: ReceivedRequest
    answers: "list[Future[Outcome]]" = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.received.request) + _REQUEST_OVERHEAD_BYTES


class Writer:
    """An `Acceptor` that stores at once. One thread; `start` it once, `stop` it once."""

    def __init__(
        self,
        store: Store,
        metrics: CollectorMetrics,
        limits: WriterLimits | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._limits = limits or WriterLimits()
        self._now_ns = now_ns
        self._queue: deque[_Waiting] = deque()
        self._queue_bytes = 0
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._trouble = ""
        self._thread = threading.Thread(target=self._run, name="tachograph-writer", daemon=True)
        metrics.queue_limit_bytes.set(self._limits.queue_bytes)
        metrics.queue_bytes.set_function(lambda: self._queue_bytes)
        metrics.queue_requests.set_function(lambda: len(self._queue))

    def trouble(self) -> str:
        """Why the last batch was not stored; empty when it was."""
        return self._trouble

    def start(self) -> None:
        """Begin to store what comes in."""
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Take nothing more, store what waits, and end the thread; what cannot be stored is answered so."""
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
        self._thread.join(timeout_s)

    def accept(self, request: bytes) -> "Future[Outcome]":
        """See `Acceptor.accept`."""
        answer: Future[Outcome] = Future()
        if spans_of(request) == 0:
            answer.set_result(Outcome())
            return answer
        received = ReceivedRequest(request_id_of(request), request, self._now_ns() // 1_000_000)
        self._enqueue(_Waiting(received, [answer]))
        return answer

    def _enqueue(self, waiting: _Waiting) -> None:
        with self._changed:
            if self._stopping.is_set():
                raise StoreUnavailableError("the collector is stopping")
            if self._queue and self._queue_bytes + waiting.size > self._limits.queue_bytes:
                raise QueueFullError("requests arrive faster than they are stored")
            self._queue.append(waiting)
            self._queue_bytes += waiting.size
            self._changed.notify_all()

    def _run(self) -> None:
        while batch := self._next_batch():
            started = time.monotonic()
            self._answer(batch)
            self._metrics.insert_duration.observe(time.monotonic() - started)
            self._pause_until(started + self._limits.commit_interval_s)

    def _next_batch(self) -> list[_Waiting]:
        """All that wait, up to a batch's bytes, each request once. Empty when stopping and nothing is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._stopping.is_set())
            batch: dict[str, _Waiting] = {}
            taken = 0
            while self._queue and (not taken or taken + self._queue[0].size <= self._limits.batch_bytes):
                waiting = self._queue.popleft()
                taken += waiting.size
                batch.setdefault(waiting.received.request_id, _Waiting(waiting.received)).answers += waiting.answers
            self._queue_bytes -= taken
            return list(batch.values())

    def _pause_until(self, instant: float) -> None:
        """Let requests gather until then, or until a batch is full."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping.is_set() or self._queue_bytes >= self._limits.batch_bytes,
                timeout=max(0.0, instant - time.monotonic()),
            )

    def _answer(self, batch: list[_Waiting]) -> None:
        """Store a batch and answer everyone who waits for it, whatever happens."""
        try:
            self._settle(batch)
            self._trouble = ""
        except Exception as error:  # The thread must live: each sender is told, and the next batch gets its chance.
            expected = isinstance(error, ClickHouseError | AcceptanceError)
            log.warning("batch not stored", requests=len(batch), error=first_line(error), exc_info=not expected)
            self._trouble = f"ClickHouse did not store the last batch: {first_line(error)}"
            for waiting in batch:
                _fail(waiting, StoreUnavailableError(self._trouble))

    def _settle(self, batch: list[_Waiting]) -> None:
        known = self._persistently(lambda: self._store.outcomes(one.received.request_id for one in batch))
        new = [one for one in batch if one.received.request_id not in known]
        for waiting in batch:
            if outcome := known.get(waiting.received.request_id):
                self._resolve(waiting, outcome._replace(duplicate=True))
        try:
            self._insert(new)
        except ClickHouseError as error:
            if not _unreadable(error):
                raise
            self._insert_each(new)

    def _insert(self, new: list[_Waiting]) -> None:
        """Store what is not known, as one batch, and answer."""
        if not new:
            return
        self._persistently(lambda: self._store.insert([one.received for one in new]))
        outcomes = self._persistently(lambda: self._store.outcomes(one.received.request_id for one in new))
        for waiting in new:
            self._resolve(waiting, outcomes.get(waiting.received.request_id, Outcome()))

    def _insert_each(self, new: list[_Waiting]) -> None:
        """One unreadable request sinks a batch: store each by itself, to find it."""
        for waiting in new:
            try:
                self._insert([waiting])
            except ClickHouseError as error:
                if not _unreadable(error):
                    raise
                _fail(waiting, MalformedRequestError("ClickHouse cannot read the body as an ExportTraceServiceRequest"))

    def _persistently(self, attempt: Callable[[], T]) -> T:
        """Try until it succeeds, time is up, or the fault is not one that passes."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda error: isinstance(error, ClickHouseError) and not _unreadable(error)
            ),
            stop=tenacity.stop_after_delay(self._limits.retry_for_s) | tenacity.stop_when_event_set(self._stopping),
            wait=tenacity.wait_random_exponential(multiplier=0.05, max=1),
            sleep=tenacity.sleep_using_event(self._stopping),
            after=self._count_failure,
            reraise=True,
        )
        return retrying(attempt)

    def _count_failure(self, state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        self._metrics.insert_failures.labels(getattr(error, "name", None) or type(error).__name__).inc()

    def _resolve(self, waiting: _Waiting, outcome: Outcome) -> None:
        """Answer everyone; whoever sent the same bytes after the first sent a duplicate."""
        for answer in waiting.answers:
            self._metrics.count_outcome(outcome)
            answer.set_result(outcome)
            outcome = outcome._replace(duplicate=True)


def _unreadable(error: BaseException) -> bool:
    return getattr(error, "name", None) in _UNREADABLE


def _fail(waiting: _Waiting, error: Exception) -> None:
    for answer in waiting.answers:
        if not answer.done():
            answer.set_exception(error)
