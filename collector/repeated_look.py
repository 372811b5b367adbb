"""Threads that see to the store now and again."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import structlog
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.acceptance import StoreUnavailableError
from collector.errors import CollectorError
from collector.store.clickhouse import first_line

OTHERS_CORES_MAX: Final = 0.5
"""No more than so many cores count as others' work: those who work that much would be slowed down by a look, and not be told from it."""
REST_WITHIN_S: Final = 120.0
"""A look may be under way for so long before it is no more waited for."""

AGAIN: Final = 2
"""Looks that failed one after the other, from which on somebody has to look: one alone is a stumble of the store."""

log = structlog.get_logger(__name__)


class LookState(NamedTuple):
    """How the looks of one thread come out."""

    failure: str
    """What is not done while they fail: `cells not judged`; empty where the last one went well."""
    done_s_ago: float
    """Since the last that went well ended, in s; since the thread was made where none did."""
    failed_looks: int = 0
    """Since the process began."""
    failed_in_row: int = 0
    """Up to the last one; 0 where that went well."""
    failing_s: float = 0.0
    """Since the first of those failed, in s."""
    error: str = ""
    """Why the last one failed, in one line; empty where it went well."""


class _Course(NamedTuple):
    """What a `LookState` is told from; instants are monotonic, in s. Replaced as a whole: other threads read it."""

    done_at: float
    failed_looks: int = 0
    failed_in_row: int = 0
    failing_since: float = 0.0
    error: str = ""

    def done(self, now: float) -> "_Course":
        return _Course(now, self.failed_looks)

    def failed(self, now: float, error: str) -> "_Course":
        since = self.failing_since if self.failed_in_row else now
        return _Course(self.done_at, self.failed_looks + 1, self.failed_in_row + 1, since, error)


class RepeatedLook(ABC):
    """One such thread. `start` it once, `stop` it once. A look that fails, however it does, is told in the log and in `look_state`,
    and comes again the next time.

    Args:
        name: What it sees to, in a word or two: the thread's name, and the looks' in metrics and /state.
        failure: What is not done where a look fails, as the log says it.
        every_s: The pause between two looks, in s.
        looks_at_once: Begin with a look, not with a pause.
        share_max: Of the time, at most so much is spent on looking: after a long look the pause is longer.
        work_clock: CPU time in s of all who may work on a look, others' work included. Of the time that a look took, no more than
            that counts for `share_max`: the rest was waiting, for a processor that others had. None counts all of it.
        ends_within_s: `stop` waits so long for the look under way, in s; None is to its end.
        clock: Monotonic, in s.
    """

    def __init__(
        self,
        name: str,
        failure: str,
        every_s: float,
        *,
        looks_at_once: bool = False,
        share_max: float = float("inf"),
        work_clock: Callable[[], float] | None = None,
        ends_within_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._failure = failure
        self._every_s = every_s
        self._first_after_s = 0.0 if looks_at_once else every_s
        self._share_max = share_max
        self._work_clock = work_clock
        self._paused_at, self._paused_work_s = clock(), work_clock() if work_clock else 0.0
        self._ends_within_s = ends_within_s
        self._clock = clock
        self._course = _Course(clock())
        self._stopping = threading.Event()
        self._looking = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the look under way."""
        self._stopping.set()
        self._thread.join(self._ends_within_s)

    @property
    def look_state(self) -> LookState:
        """How its looks come out; from any thread, at once."""
        now, course = self._clock(), self._course
        done_s_ago = now - course.done_at
        if not course.failed_in_row:
            return LookState("", done_s_ago, course.failed_looks)
        failing_s = now - course.failing_since
        return LookState(self._failure, done_s_ago, course.failed_looks, course.failed_in_row, failing_s, course.error)

    @abstractmethod
    def see_to_it(self) -> None:
        """One look.

        Raises:
            CollectorError: the store does not answer.
            ClickHouseError: it fails.
        """

    @contextmanager
    def resting(self, within_s: float = REST_WITHIN_S) -> Iterator[None]:
        """No look is under way within: one that would begin is left out.

        Raises:
            StoreUnavailableError: one has been under way for so long.
        """
        if not self._looking.acquire(timeout=within_s):
            raise StoreUnavailableError(f"{self._thread.name} has been under way for {within_s:.0f} s: try again later")
        try:
            yield
        finally:
            self._looking.release()

    def look_once(self) -> float:
        """One look, and its failure in the log; none while it rests. Returns the pause that it wants after it, in s."""
        if not self._looking.acquire(blocking=False):
            return self._every_s
        try:
            return self._look()
        finally:
            self._looking.release()

    def _look(self) -> float:
        spent = self._spending()
        try:
            self.see_to_it()
        except Exception as error:  # Else the thread would end, and nobody be told.
            self._course = self._course.failed(self._clock(), first_line(error))
            self._tell(error)
        else:
            self._course = self._course.done(self._clock())
        return max(self._every_s, spent() / self._share_max)

    def _tell(self, error: Exception) -> None:
        """What is not done is a warning at first, and an error where it fails again."""
        state = self.look_state
        is_ours = isinstance(error, CollectorError | ClickHouseError)
        told = {"error": state.error, "exc_info": None if is_ours else error}
        if state.failed_in_row < AGAIN:
            log.warning(self._failure, **told)
        else:
            log.error(self._failure, **told, failed_in_row=state.failed_in_row, failing_s=round(state.failing_s))

    def _spending(self) -> Callable[[], float]:
        """Call it before a look. What it returns tells after it how long the look worked, in s."""
        began, clock = self._clock(), self._work_clock
        if clock is None:
            return lambda: self._clock() - began
        worked_s = clock()
        others = (worked_s - self._paused_work_s) / max(began - self._paused_at, 1e-9)

        def spent() -> float:
            self._paused_at, self._paused_work_s = self._clock(), clock()
            took_s = self._paused_at - began
            # Others work on meanwhile, as they did in the pause before.
            return min(took_s, self._paused_work_s - worked_s - min(others, OTHERS_CORES_MAX) * took_s)

        return spent

    def _run(self) -> None:
        pause_s = self._first_after_s
        while not self._stopping.wait(pause_s):
            pause_s = self.look_once()
