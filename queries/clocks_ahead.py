"""Engines whose clocks are ahead of the collector's: from when on it is told, what it leaves out, and in which words."""

from datetime import datetime, timedelta
from typing import Final

CLOCK_OFF_ABOVE_S: Final = 5.0
"""A clock that is ahead by more is told of; as the query `clock_skew` has it."""


def happened_until(last_received_at: datetime) -> datetime:
    """What begins later did not happen then, as it had arrived before: a clock that is ahead put it there.

    Args:
        last_received_at: The newest arrival of all that is looked at, by the collector's clock.
    """
    return last_received_at + timedelta(seconds=CLOCK_OFF_ABOVE_S)


def clock_words(ahead_s: float) -> str:
    """That a clock is ahead, and by how much."""
    return f"clock {age_of(ahead_s)} ahead"


def age_of(seconds: float) -> str:
    """How long ago, in its largest unit."""
    if seconds < 120:
        return f"{max(0, seconds):.0f} s"
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if minutes < 120:
        return f"{minutes} min"
    return f"{hours} h" if hours < 48 else f"{seconds / 86_400:,.0f} d"
