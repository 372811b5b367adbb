"""From a process's monotonic clock to the calendar.

Intervals come from the monotonic clock of one process; Unix time only places them.
"""

import time
from collections.abc import Callable
from typing import NamedTuple


class MonotonicAnchor(NamedTuple):
    """One instant on both clocks. Two instants converted by one anchor keep their distance exactly.

    The monotonic clock does not follow steps of the calendar clock: a process that runs for
    days takes a new anchor now and then, between executions that no interval spans.
    """

    monotonic_ns: int
    unix_ns: int
    uncertainty_ns: int
    """How far apart the two readings may be, at most."""

    @classmethod
    def take(
        cls,
        monotonic_clock_ns: Callable[[], int] = time.monotonic_ns,
        unix_clock_ns: Callable[[], int] = time.time_ns,
        attempts: int = 5,
    ) -> "MonotonicAnchor":
        """Reads both clocks `attempts` times and keeps the closest pair of readings."""
        return min(
            (_reading(monotonic_clock_ns, unix_clock_ns) for _ in range(attempts)), key=lambda a: a.uncertainty_ns
        )

    def unix_of(self, monotonic_ns: int) -> int:
        """The Unix time, in ns, of an instant of the same process's monotonic clock."""
        return self.unix_ns + monotonic_ns - self.monotonic_ns


def _reading(monotonic_clock_ns: Callable[[], int], unix_clock_ns: Callable[[], int]) -> MonotonicAnchor:
    before = monotonic_clock_ns()
    unix_ns = unix_clock_ns()
    after = monotonic_clock_ns()
    return MonotonicAnchor((before + after) // 2, unix_ns, after - before)
