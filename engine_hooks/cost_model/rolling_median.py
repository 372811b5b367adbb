"""The median of the last few samples, cheap to keep up to date."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable


class RollingMedian:
    """Median of the last `window` integers.

    With an even number of samples it is the mean of the middle two, floored (convention A2).
    """

    __slots__ = ("_arrived", "_sorted", "_window")

    def __init__(self, window: int, samples: Iterable[int] = ()) -> None:
        self._window = window
        self._arrived: deque[int] = deque()
        self._sorted: list[int] = []
        for sample in samples:
            self.add(sample)

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, sample: int) -> None:
        """Take in a sample; beyond the window the oldest leaves."""
        arrived, ordered = self._arrived, self._sorted
        if len(arrived) == self._window:
            del ordered[bisect_left(ordered, arrived.popleft())]
        arrived.append(sample)
        insort(ordered, sample)

    def median(self) -> int:
        """The median of the samples in the window; 0 of none."""
        ordered = self._sorted
        count = len(ordered)
        if not count:
            return 0
        middle = count >> 1
        return ordered[middle] if count & 1 else (ordered[middle - 1] + ordered[middle]) >> 1

    def least(self) -> int:
        """The least sample in the window; 0 of none."""
        return self._sorted[0] if self._sorted else 0

    def samples(self) -> list[int]:
        """The samples in the window, oldest first."""
        return list(self._arrived)
