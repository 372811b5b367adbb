"""Time ranges that a viewer can choose."""

from typing import NamedTuple


class TimeRange(NamedTuple):
    """A stretch of time up to now."""

    name: str
    """On the page and in the URL."""
    since: str
    """The query parameter `from`; '' is all time."""
    words: str
    """In a sentence."""

    @property
    def is_long(self) -> bool:
        """Whether questions about it take long, so that they are asked seldom."""
        return self.name in LONG_RANGES


DEFAULT_RANGE = "30 min"
ALL_TIME = "all"
LONG_RANGES = ("12 h", "24 h", "7 d")
"""All time is not among them: it may be a minute, of a record just imported."""

RANGES = {
    choice.name: choice
    for choice in (
        TimeRange("10 min", "-10m", "in the last 10 minutes"),
        TimeRange("30 min", "-30m", "in the last 30 minutes"),
        TimeRange("2 h", "-2h", "in the last 2 hours"),
        TimeRange("12 h", "-12h", "in the last 12 hours"),
        TimeRange("24 h", "-24h", "in the last 24 hours"),
        TimeRange("7 d", "-7d", "in the last 7 days"),
        TimeRange(ALL_TIME, "", "in all stored time"),
    )
}


def since(time_range: TimeRange) -> dict[str, str | int]:
    """The parameters of a question about a time range."""
    return {"from_": time_range.since} if time_range.since else {"last_s": 0}
