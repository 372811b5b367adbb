"""Stumbles of the host, waiting for the round they hit."""

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from engine_hooks.simulator.parameters import Rounds


class Delay(NamedTuple):
    """The host stumbles for `duration_ns` in the first decoding round planned from `at_ns` on.

    One that may only meet speculative rounds is lost if that round is plain.
    """

    at_ns: int
    duration_ns: int
    rounds: Rounds


class PendingDelays:
    """Delays in order of time, the scenario's and those asked for while it runs."""

    def __init__(self, scheduled: Iterator[Delay]) -> None:
        self._scheduled = scheduled
        self._waiting: list[Delay] = []
        self._last_scheduled: Delay | None = None
        self.next_at_ns: float = float("inf")
        self._take_scheduled()

    def add(self, delay: Delay) -> None:
        """One more, on demand."""
        heapq.heappush(self._waiting, delay)
        self.next_at_ns = self._waiting[0].at_ns

    def meet(self, now_ns: int, *, speculative: bool) -> int:
        """The delay that a decoding round planned at `now_ns` meets, in nanoseconds; one a round at most."""
        while self.next_at_ns <= now_ns:
            delay = heapq.heappop(self._waiting)
            self._take_scheduled(delay)
            if speculative or delay.rounds == Rounds.ALL:
                return delay.duration_ns
        return 0

    def _take_scheduled(self, taken: Delay | None = None) -> None:
        """Keep one scheduled delay waiting: the next follows the one that was taken."""
        if taken is None or taken == self._last_scheduled:
            self._last_scheduled = next(self._scheduled, None)
            if self._last_scheduled is not None:
                heapq.heappush(self._waiting, self._last_scheduled)
        self.next_at_ns = self._waiting[0].at_ns if self._waiting else float("inf")
