"""Threads that see to the store now and again."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

import structlog
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.clickhouse import first_line
from collector.errors import CollectorError

log = structlog.get_logger(__name__)


class RepeatedLook(ABC):
    """One such thread. `start` it once, `stop` it once. A store that fails is told in the log and seen to the next time.

    Args:
        thread: The thread's name.
        failure: What the log says of a store that fails.
        every_s: The pause between two looks, in s.
        looks_at_once: Begin with a look, not with a pause.
        share_max: Of the time, at most so much is spent on looking: after a long look the pause is longer.
        work_clock: CPU time in s of all who may work on a look, others' work included. Of the time that a look took, no more than
            this counts for `share_max`: the rest was waiting, for a processor that others had. None counts all of it.
        ends_within_s: `stop` waits so long for the look under way, in s; None is to its end.
        clock: Monotonic, in s.
    """

    def __init__(
        self,
        thread: str,
        failure: str,
        every_s: float,
        *,
        looks_at_once: bool = False,
        share_max: float = float("inf"),
        work_clock: Callable[[], float] | None = None,
        ends_within_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failure = failure
        self._every_s = every_s
        self._first_after_s = 0.0 if looks_at_once else every_s
        self._share_max = share_max
        self._work_clock = work_clock or clock
        self._ends_within_s = ends_within_s
        self._clock = clock
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=thread, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the look under way."""
        self._stopping.set()
        self._thread.join(self._ends_within_s)

    @abstractmethod
    def see_to_it(self) -> None:
        """One look.

        Raises:
            CollectorError: the store does not answer.
            ClickHouseError: it fails.
        """

    def look_once(self) -> float:
        """One look, and its failure in the log. Returns the pause that it wants after it, in s."""
        began, worked = self._clock(), self._work_clock()
        try:
            self.see_to_it()
        except (CollectorError, ClickHouseError) as error:
            log.warning(self._failure, error=first_line(error))
        spent_s = min(self._clock() - began, self._work_clock() - worked)
        return max(self._every_s, spent_s / self._share_max)

    def _run(self) -> None:
        pause_s = self._first_after_s
        while not self._stopping.wait(pause_s):
            pause_s = self.look_once()
