"""From the spool into ClickHouse: one thread, one insert at a time, in order, and each exactly once.

A batch is fixed on disk before its first attempt, and bears a hash of its content as deduplication token: however
often it is tried, also by the next process, it is the same insert. What ClickHouse cannot take is halved until the one
request is found that is at fault, which is set aside; the rest goes on. All other faults are the store's: the batch is
tried until it is in.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

import structlog
import tenacity
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.acceptance import Outcome, ReceivedRequest, StoreUnavailableError, token_of
from collector.disk_space import is_want_of_space
from collector.errors import CollectorError
from collector.spool.answers import Answers
from collector.spool.database import DiskFullError, spool_error
from collector.spool.faults import from_the_engine, of_the_data
from collector.spool.records import Batch
from collector.spool.spool import Spool
from collector.spool.verdict import verdict_of
from collector.store.clickhouse import first_line
from collector.telemetry.metrics import CollectorMetrics
from engine_hooks.commands.counting import counted

log = structlog.get_logger(__name__)

_WORTH_WAITING_BATCHES: Final = 8
"""With more than so many full batches before it, a request is not stored soon."""
_REST_WITHIN_S: Final = 30.0
_LOOK_EVERY_S: Final = 1.0
"""How often the spool is asked whether `tachograph spool retry` wants something back."""
_REMEMBERED_MS: Final = 6 * 86_400_000
"""ClickHouse keeps outcomes for 7 days: of what came within this, it has them."""


class InsertUnknownError(CollectorError):
    """ClickHouse took an insert, and knows nothing of what was in it."""


class Store(Protocol):
    """Where requests are kept: `RequestStore`, which says what the methods promise."""

    def outcomes(self, request_ids: Iterable[str]) -> dict[str, Outcome]: ...

    def insert(self, batch: list[ReceivedRequest], token: str = "") -> None: ...

    def forget(self, batch: list[ReceivedRequest]) -> bool: ...

    def has_lost(self, batch: list[ReceivedRequest]) -> bool: ...

    def mend(self, batch: list[ReceivedRequest], token: str) -> list[str]: ...


class DrainLimits(NamedTuple):
    """Bounds of the drain."""

    batch_bytes: int = 32 * 1024 * 1024
    """Requests of one insert, together; one larger request makes a batch of its own."""
    gather_s: float = 0.3
    """After an insert, how long the next waits at most for the senders who have just been answered to send again. However
    small it is, an insert costs as much as storing some 5,000 executions, and its parts are merged later. A full batch
    does not wait."""
    retry_wait_max_s: float = 5.0
    """Longest pause between two attempts while ClickHouse is away."""
    suspect_after_s: float = 30.0
    """How long ClickHouse may answer a batch with an error before others are tried, to see whether it is the batch."""
    answer_within_s: float = 5.0
    """How long a sender waits for ClickHouse's word before its request is judged here, while ClickHouse stores. Judging
    here takes twice the CPU time of storing, and more: under load, senders that wait are served sooner. Exporters wait 10 s."""


class Drain:
    """`start` once, `stop` once. Tells `answers` each request's outcome as ClickHouse has it.

    Args:
        open_store: Opens the store with its schema; raises what passes when tried again. Called at the start, and
            again after a fault.
    """

    def __init__(
        self,
        spool: Spool,
        open_store: Callable[[], Store],
        answers: Answers,
        metrics: CollectorMetrics,
        limits: DrainLimits,
    ) -> None:
        self._spool = spool
        self._open_store = open_store
        self._store: Store | None = None
        self._metrics = metrics
        self._limits = limits
        self._answers = answers
        self._moving = threading.Lock()
        self._is_resting = False
        self._wake = threading.Condition()
        self._stopping = threading.Event()
        self._stop_at = float("inf")
        self._trouble = ""
        self._since = 0.0
        self._thread = threading.Thread(target=self._run, name="tachograph-drain", daemon=True)

    def start(self) -> None:
        """Begin to store what the spool holds."""
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Store what waits, for at most so long; whether the thread has ended. What is left stays in the spool."""
        self._stop_at = time.monotonic() + timeout_s
        self._stopping.set()
        self.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def notify(self) -> None:
        """Something came into the spool."""
        with self._wake:
            self._wake.notify_all()

    def trouble(self) -> str:
        """Why nothing is stored at present; empty when all is well."""
        return self._trouble

    @contextmanager
    def resting(self, within_s: float = _REST_WITHIN_S) -> Iterator[None]:
        """Nothing moves from the spool into the store within; what comes in waits, and is answered at once.

        Raises:
            StoreUnavailableError: an insert has been under way for so long.
        """
        if not self._moving.acquire(timeout=within_s):
            raise StoreUnavailableError(f"an insert has been under way for {within_s:.0f} s: see /readyz")
        self._is_resting = True
        self._answers.hurry()
        try:
            yield
        finally:
            self._is_resting = False
            self._moving.release()

    def patience_s(self) -> float:
        """How long a sender should wait for an outcome: not at all while there is trouble or rest, or much before it."""
        behind = self._spool.state().pending_bytes > _WORTH_WAITING_BATCHES * self._limits.batch_bytes
        return 0.0 if self._trouble or self._is_resting or behind else self._limits.answer_within_s

    # ---- the thread

    def _run(self) -> None:
        while not self._ended():
            try:
                self._step()
            except Exception as error:  # The thread must live: a full disk gets room, and the next step its chance.
                self._failed(error)
                self._stopping.wait(_LOOK_EVERY_S)

    def _step(self) -> None:
        with self._moving:
            self._spool.take_back()
            batch = self._spool.next_batch(self._limits.batch_bytes)
            if batch is None:
                self._open_ahead()
            is_in = batch is not None and self._move(batch)
        if batch is None:
            self._rest()
        elif is_in:
            self._gather(len(batch.requests))

    def _open_ahead(self) -> None:
        """Nothing waits: the store has its schema, and what the settings pin, before anything comes in."""
        if self._store is None and not self._stopping.is_set():
            self._store = self._open_store()
            self._recovered()

    def _ended(self) -> bool:
        if not self._stopping.is_set():
            return False
        return not self._spool.state().pending_requests or time.monotonic() >= self._stop_at

    def _rest(self) -> None:
        """Nothing waits: let go of space, and wait for something."""
        self._spool.give_back_space()
        with self._wake:
            self._wake.wait_for(
                lambda: self._stopping.is_set() or self._spool.state().pending_requests, timeout=_LOOK_EVERY_S
            )

    def _gather(self, answered: int) -> None:
        """Wait for as many requests as were answered, beside those that wait already; not for long."""
        expected = self._spool.state().pending_requests + answered
        with self._wake:
            self._wake.wait_for(lambda: self._stopping.is_set() or self._has_gathered(expected), self._limits.gather_s)

    def _has_gathered(self, expected: int) -> bool:
        state = self._spool.state()
        return state.pending_requests >= expected or state.pending_bytes >= self._limits.batch_bytes

    def _move(self, batch: Batch) -> bool:
        """Store one batch, or find what is wrong with it; whether it is in. Returns early when stopping."""
        move = _Move(batch, frozenset() if batch.attempted else None, again=batch.attempted)
        try:
            self._persistently(move)
        except Exception as error:
            if of_the_data(error) or (self._is_suspect(move, error) and self._others_go_in(batch)):
                self._refused(batch, error)
            elif self._stopping.is_set():
                self._stop_at = 0.0  # The store is away: what waits is for the next start.
            return False
        return True

    def _persistently(self, move: "_Move") -> None:
        """Try until it is in, the fault is found to be its own, or the collector stops."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: not of_the_data(error)),
            stop=lambda state: self._stopping.is_set() or self._is_suspect(move, _error_of(state)),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=self._limits.retry_wait_max_s),
            sleep=tenacity.sleep_using_event(self._stopping),
            after=lambda state: self._failed(_error_of(state)),
            reraise=True,
        )
        retrying(self._attempt, move)

    def _attempt(self, move: "_Move") -> None:
        began = time.monotonic()
        try:
            outcomes = self._stored(move)
        except Exception:
            move.again = True
            self._store = None  # Opened anew: the server may have come back as another one, without a schema.
            raise
        self._spool.finish(move.batch, outcomes)
        self._metrics.insert_duration.observe(time.monotonic() - began)
        self._recovered()
        for request_id, outcome in outcomes.items():
            self._metrics.count_outcome(outcome)
            self._answers.settle(request_id, outcome)

    def _stored(self, move: "_Move") -> dict[str, Outcome]:
        """Insert what is not known, and return what became of each request."""
        self._store = store = self._store or self._open_store()
        batch = move.batch
        known = store.outcomes(one.request_id for one in batch.requests)
        if move.before is None:
            move.before = frozenset(known)
        # An attempt that failed half-way may have recorded an outcome and not stored its executions: only what was known
        # before the first attempt is left out. What is stored already is not stored again, span by span.
        new = [one for one in batch.requests if one.request_id not in move.before]
        if new:
            known |= self._inserted(store, move, new)
        return {one.request_id: _outcome_of(one, known, move.before) for one in batch.requests}

    def _inserted(self, store: Store, move: "_Move", new: list[ReceivedRequest]) -> dict[str, Outcome]:
        """Insert these, and return what ClickHouse says of them.

        Raises:
            InsertUnknownError: nothing, for the first time.
        """
        batch = move.batch
        # With fewer rows it is another insert, and must bear another token.
        store.insert(new, batch.token if not move.before else token_of(one.request_id for one in new))
        if move.is_lost or (move.again and store.has_lost(new)):
            # Of what is forgotten, nothing tells any more that it was lost.
            move.is_lost = True
            log.warning("insert made again, because ClickHouse went down in the middle of it", requests=len(new))
            store.forget(new)
            store.insert(new, token_of((batch.token, "again")))
        if move.again and (mended := store.mend(new, batch.token)):
            log.warning("rollups completed, because ClickHouse went down in the middle of an insert", tables=mended)
        known = store.outcomes(one.request_id for one in new)
        if not (unknown := _unknown(new, known)):
            return known
        if not move.is_unknown:
            move.is_unknown = True
            raise InsertUnknownError(
                f"ClickHouse took {counted(unknown, 'request')} and knows nothing of them: they are inserted again"
            )
        # By the same token it passes for a repetition. What is stored after all is not stored again, span by span. Not where
        # nothing can be forgotten: there a replica that lags behind knows nothing either, and all would count twice.
        if store.forget(new):
            store.insert(new, token_of((batch.token, "unknown")))
            known = store.outcomes(one.request_id for one in new)
        if unknown := _unknown(new, known):
            log.error("ClickHouse took requests and knows nothing of them: look for them", requests=unknown)
        return known

    def _refused(self, batch: Batch, error: Exception) -> None:
        """Halve a batch, so that the next attempts find what is wrong; a request that stands alone is set aside."""
        if len(batch.requests) > 1:
            self._spool.split(batch)
            return
        (one,) = batch.requests
        log.warning("request set aside", request_id=one.request_id, spans=one.spans, error=first_line(error))
        self._spool.set_aside(batch, first_line(error))
        self._recovered()
        self._answers.hurry()

    def _is_suspect(self, move: "_Move", error: Exception) -> bool:
        """Whether ClickHouse is there and has refused this batch for long."""
        return from_the_engine(error) and time.monotonic() - move.began > self._limits.suspect_after_s

    def _others_go_in(self, batch: Batch) -> bool:
        """Whether the store takes what comes after, so that the fault must be the batch's own."""
        following = self._spool.next_batch(self._limits.batch_bytes, after=batch.last_position)
        if following is None:
            return False
        try:
            self._attempt(_Move(following, frozenset() if following.attempted else None, again=following.attempted))
        except Exception as error:
            self._failed(error)
            return False
        return True

    # ---- what is told

    def _failed(self, error: Exception) -> None:
        """Count a failed attempt, and say so; the log leaves out what repeats (collector.telemetry.logs)."""
        name = getattr(error, "name", None) or type(error).__name__
        self._metrics.insert_failures.labels(name).inc()
        if of_the_data(error):
            return
        expected = isinstance(error, ClickHouseError | CollectorError) or is_want_of_space(error)
        log.warning("not storing", error=first_line(error), exc_info=None if expected else error)
        if not self._trouble:
            self._since = time.monotonic()
        self._trouble = self._told(error)
        self._answers.hurry()

    def _told(self, error: Exception) -> str:
        if isinstance(error, DiskFullError):
            return f"the spool cannot be written: {first_line(error)}"
        if isinstance(error, sqlite3.Error):
            return str(spool_error(self._spool.file, error))
        return f"ClickHouse does not store: {first_line(error)}"

    def _recovered(self) -> None:
        if self._trouble:
            waiting = self._spool.state().pending_requests
            log.info("storing again", after_s=round(time.monotonic() - self._since, 1), requests_waiting=waiting)
        self._trouble = ""


@dataclass
class _Move:
    """A batch on its way into the store."""

    batch: Batch
    before: frozenset[str] | None
    """Requests of it that the store knew before the first attempt, so that they are not of this batch's storing."""
    began: float = field(default_factory=time.monotonic)
    again: bool = False
    """An attempt came before, by this process or another."""
    is_lost: bool = False
    """ClickHouse has noted it and does not have it, or not all of it."""
    is_unknown: bool = False
    """ClickHouse took it once, and knew nothing of it."""


def _unknown(requests: Iterable[ReceivedRequest], known: Mapping[str, Outcome]) -> int:
    """How many of these ClickHouse should know, and does not."""
    return sum(one.request_id not in known and _is_remembered(one) for one in requests)


def _is_remembered(one: ReceivedRequest) -> bool:
    """Whether ClickHouse has its outcome for certain, if it has stored it."""
    return time.time() * 1000 - one.received_unix_ms < _REMEMBERED_MS


def _outcome_of(one: ReceivedRequest, known: Mapping[str, Outcome], before: frozenset[str]) -> Outcome:
    """What became of a request. ClickHouse has forgotten where it waited for more than a week."""
    outcome = known.get(one.request_id)
    if outcome is None:
        return verdict_of(one.request)
    return outcome._replace(duplicate=True) if one.request_id in before else outcome


def _error_of(state: tenacity.RetryCallState) -> Exception:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, Exception)  # noqa: S101 # called after failures only
    return error
