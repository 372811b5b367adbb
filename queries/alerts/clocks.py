"""The two clocks of an evaluator. Intervals come from the monotonic one, so that a jump of the calendar moves no alert."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Time, handed in."""

    def monotonic(self) -> float:
        """Seconds that only grow."""

    def now(self) -> datetime:
        """The calendar, UTC: only ever written down, never subtracted."""


class SystemClock:
    """This machine's."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)
