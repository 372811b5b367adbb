"""When a device was busy: the union of its operations' intervals, over all streams.

Idle time is the complement of the union. Of each stream by itself it would count time in
which the device worked for another stream.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
NOTHING: Final = np.zeros(0, np.int64)


class BusyTime:
    """The union of intervals, asked in logarithmic time. Times in ns.

    Intervals may overlap, touch, repeat, be empty and come in any order; none ends before it starts.
    """

    def __init__(self, started_at: Times, ended_at: Times) -> None:
        order = np.argsort(started_at, kind="stable")
        starts = started_at[order]
        latest_end = np.maximum.accumulate(ended_at[order]) if len(order) else NOTHING
        after_a_gap = np.ones(len(order), np.bool_)
        after_a_gap[1:] = starts[1:] > latest_end[:-1]
        self.started_at = starts[after_a_gap]
        """Of each busy stretch, in order; no two touch."""
        self.ended_at = latest_end[np.append(after_a_gap[1:], True)] if len(order) else NOTHING
        self._before = np.concatenate(([0], np.cumsum(self.ended_at - self.started_at)))

    @property
    def total_ns(self) -> int:
        """How long the device was busy."""
        return int(self._before[-1])

    @property
    def span_ns(self) -> int:
        """From the first operation's start to the last one's end."""
        return int(self.ended_at[-1] - self.started_at[0]) if len(self.started_at) else 0

    def until(self, moment: int) -> int:
        """Busy ns before `moment`."""
        stretch = int(np.searchsorted(self.started_at, moment, "right")) - 1
        if stretch < 0:
            return 0
        return int(self._before[stretch]) + min(moment, int(self.ended_at[stretch])) - int(self.started_at[stretch])

    def idle_between(self, start: int, end: int) -> int:
        """Ns of [start, end] in which the device did nothing."""
        return end - start - (self.until(end) - self.until(start))
