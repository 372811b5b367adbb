"""Time ranges that a viewer can choose: up to now, or held."""

from datetime import datetime
from typing import NamedTuple


class TimeRange(NamedTuple):
    """A stretch of time."""

    name: str
    """On the page and in the URL."""
    since: str
    """The query parameter `from`; '' is all time."""
    words: str
    """In a sentence."""
    length_s: float | None
    """None is all time."""
    until: str = ""
    """The query parameter `to`; '' is now."""

    @property
    def is_steady(self) -> bool:
        """Whether what is known of it hardly changes while one looks, so that it is asked for seldom: held, or long.

        All time is not: it may be a minute, of a record just imported.
        """
        return self.is_held or (self.length_s is not None and self.length_s >= LONG_S)

    @property
    def is_held(self) -> bool:
        """Whether it stays as it is while time goes on."""
        return self.name == HELD


DEFAULT_RANGE = "30 min"
ALL_TIME = "all"
HELD = "fixed"
LONG_S = 12 * 3600
EVER = "1970-01-01"

RANGES = {
    choice.name: choice
    for choice in (
        TimeRange("10 min", "-10m", "in the last 10 minutes", 600),
        TimeRange("30 min", "-30m", "in the last 30 minutes", 1800),
        TimeRange("2 h", "-2h", "in the last 2 hours", 7200),
        TimeRange("12 h", "-12h", "in the last 12 hours", 43_200),
        TimeRange("24 h", "-24h", "in the last 24 hours", 86_400),
        TimeRange("7 d", "-7d", "in the last 7 days", 604_800),
        TimeRange(ALL_TIME, "", "in all stored time", None),
    )
}


def held_range(since: datetime | None, until: datetime, words: str) -> TimeRange:
    """A range that stays as it is.

    Args:
        since: None is the beginning of all time.
        until: Its end, not part of it.
        words: In a sentence.
    """
    length_s = None if since is None else (until - since).total_seconds()
    return TimeRange(HELD, since.isoformat() if since else "", words, length_s, until.isoformat())


def bounds(time_range: TimeRange) -> dict[str, str]:
    """The parameters of a question about people's marks or alerts, which has no `last_s`."""
    return {"from_": time_range.since or EVER} | ({"to": time_range.until} if time_range.until else {})


def time_parameters(time_range: TimeRange) -> dict[str, str | int]:
    """The parameters of a question about a time range."""
    begin: dict[str, str | int] = {"from_": time_range.since} if time_range.since else {"last_s": 0}
    return begin | ({"to": time_range.until} if time_range.until else {})
