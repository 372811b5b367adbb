"""From a process's monotonic clock to the calendar.

Intervals come from the monotonic clock of one process; Unix time only places them.
"""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

RENEWED_NS: Final = 2_000_000_000
"""The calendar is looked at again after so long: clocks drift apart by some 20 us in it, and 1 ms while NTP steers."""
STEP_NS: Final = 5_000_000
"""Further off than this, and the calendar was set: no drift."""
STEP_WAITS_NS: Final = 60_000_000_000
"""So long does an engine that is never idle keep to the calendar as it was before it was set."""


class MonotonicAnchor(NamedTuple):
    """One instant on both clocks. Two instants converted by one anchor keep their distance exactly.

    The monotonic clock does not follow steps of the calendar clock: a process that runs for
    days takes a new anchor now and then (`Calendar`).
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


class Calendar:
    """The calendar as a process follows it for days: an anchor that is renewed every few seconds.

    Drift goes in unseen, a few microseconds each time. Where the calendar was set, the interval between two executions
    would get longer or shorter by as much: that waits until the engine is idle, for a minute at most.
    """

    def __init__(
        self,
        monotonic_clock_ns: Callable[[], int] = time.monotonic_ns,
        unix_clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._clocks = monotonic_clock_ns, unix_clock_ns
        self._anchor = MonotonicAnchor.take(*self._clocks)
        self._due_ns = self._anchor.monotonic_ns + RENEWED_NS
        self._was_set = False
        """And the anchor is still the one from before."""

    def unix_of(self, monotonic_ns: int) -> int:
        """The Unix time, in ns, of an instant of the monotonic clock."""
        return self._anchor.unix_of(monotonic_ns)

    def look(self, now_ns: int, *, idle: bool = False) -> None:
        """Renew the anchor where that is due, which is one comparison where it is not.

        Args:
            now_ns: The present, by the monotonic clock.
            idle: Whether no interval spans the present.
        """
        if now_ns < self._due_ns and not (idle and self._was_set):
            return
        self._due_ns = now_ns + RENEWED_NS
        newer = MonotonicAnchor.take(*self._clocks)
        self._was_set = abs(newer.unix_ns - self._anchor.unix_of(newer.monotonic_ns)) > STEP_NS
        if idle or not self._was_set or now_ns - self._anchor.monotonic_ns > STEP_WAITS_NS:
            self._anchor, self._was_set = newer, False
