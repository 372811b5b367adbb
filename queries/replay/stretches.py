"""Stretches of time over which a noisy quantity keeps its level."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CHANGE_Z: Final = 5.0
"""A level has changed where the means on both sides are so many standard errors apart: of a thousand
executions without any change, chance does that once in some thousand series."""
SHORTEST: Final = 8
"""Values of a stretch, at least."""
STRETCHES_MAX: Final = 24
NORMAL_MAD: Final = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation."""


class Stretch(NamedTuple):
    """Values `first` to `last - 1` have one level."""

    first: int
    last: int


def stretches_of(values: Floats) -> list[Stretch]:
    """The stretches of a series: split where the level changes most, as long as chance does not explain it.

    Binary segmentation: each split is the one that sets the means of both sides furthest apart, in standard
    errors. The noise is taken from neighbours' differences, which no change of level inflates.
    """
    noise = noise_of(values)
    if not noise or len(values) < 2 * SHORTEST:
        return [Stretch(0, len(values))]
    sums = np.concatenate(([0.0], np.cumsum(values)))
    found: list[Stretch] = []
    waiting = [Stretch(0, len(values))]
    while waiting:
        stretch = waiting.pop()
        split = best_split(sums, stretch, noise) if len(found) + len(waiting) < STRETCHES_MAX else None
        if split is None:
            found.append(stretch)
        else:
            waiting += [Stretch(stretch.first, split), Stretch(split, stretch.last)]
    return sorted(found)


def best_split(sums: Floats, stretch: Stretch, noise: float) -> int | None:
    """Where to split, if anywhere; `sums[i]` is the sum of the values before `i`."""
    first, last = stretch
    at: NDArray[Any] = np.arange(first + SHORTEST, last - SHORTEST + 1)
    if not len(at):
        return None
    left, right = at - first, last - at
    apart = (sums[at] - sums[first]) / left - (sums[last] - sums[at]) / right
    z = np.abs(apart) / (noise * np.sqrt(1 / left + 1 / right))
    return int(at[np.argmax(z)]) if z.max() > CHANGE_Z else None


def noise_of(values: Floats) -> float:
    """Standard deviation of a value about its level, by the median of neighbours' differences; 0 if it has none."""
    if len(values) < 2:
        return 0.0
    return float(np.median(np.abs(np.diff(values))) * NORMAL_MAD / np.sqrt(2))


def spread_of(values: Floats) -> float:
    """Standard deviation by the median absolute deviation: a few outliers do not count."""
    return float(np.median(np.abs(values - np.median(values))) * NORMAL_MAD) if len(values) else 0.0


class Steps(NamedTuple):
    """A quantity that keeps its value from one instant to the next; before the first instant it has the first value."""

    from_ns: tuple[int, ...]
    values: tuple[float, ...]

    def at(self, ns: int) -> float:
        """Its value at an instant."""
        return self.values[max(bisect_right(self.from_ns, ns) - 1, 0)]

    def exponential(self) -> "Steps":
        """The same of the quantity whose logarithm this is."""
        return Steps(self.from_ns, tuple(np.exp(self.values).tolist()))


def steps_of(at_ns: Sequence[int], values: Floats) -> Steps:
    """A series of measurements as the level it keeps from stretch to stretch: the median of each."""
    stretches = stretches_of(values)
    return Steps(
        tuple(at_ns[stretch.first] for stretch in stretches),
        tuple(float(np.median(values[stretch.first : stretch.last])) for stretch in stretches),
    )
