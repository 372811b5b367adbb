"""Where a series changes its level: candidates by ruptures, each then tested on its own (decision record 0013)."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import ruptures
from scipy import ndimage, stats

POINTS_MIN: Final = 5
"""On each side of a change: one bad cell, or two, are none."""
POINTS_NEEDED: Final = 2 * POINTS_MIN
"""Of a series; in a shorter one no change is looked for."""
NEARBY: Final = 60
"""Points on each side by which a change is measured and tested."""
LOCAL: Final = 7
"""Points of the running median that a lone outlier is held against."""
OUTLIER_SDS: Final = 3.0
PENALTY: Final = 10.0
"""Of one more change, in squared noise times the logarithm of the points."""
P_MAX: Final = 1e-5
STEP_TO_SLOPE: Final = 0.95
"""Two levels must fit this much better than one slope."""
LOWEST_TO_MEDIAN: Final = 0.01
"""Changes are taken as ratios, and nothing is a ratio to 0."""
SHIFT_MIN_PERCENT: Final = 1.0
CONFIDENCE: Final = 0.95
MAD_TO_SD: Final = 1.4826

Floats = npt.NDArray[np.float64]


class ChangePoint(NamedTuple):
    """One change of level."""

    start: int
    """The first point of the new level."""
    before: float
    """Median of up to 60 points before it, back to the change before."""
    after: float
    shift_percent: float
    """Hodges-Lehmann, in % of `before`."""
    shift_interval_percent: tuple[float, float]
    """95 %, the Mann-Whitney test inverted."""
    p_value: float
    """Mann-Whitney, two-sided, of this change alone."""


def change_points(series: Sequence[float], shift_min_percent: float = SHIFT_MIN_PERCENT) -> list[ChangePoint]:
    """The changes of level in a series in order of time; points need not be evenly spaced.

    Slow drift is no change of level, neither are lone outliers.

    Args:
        series: Values of at least 0; below 1 % of the median of those above 0 they count as that.
        shift_min_percent: Smaller changes are not told.
    """
    values = np.asarray(series, dtype=np.float64)
    if len(values) < POINTS_NEEDED or not values.any():
        return []
    logs = np.log(np.maximum(values, LOWEST_TO_MEDIAN * float(np.median(values[values > 0]))))
    ends = candidates(logs)
    while True:
        found = [measured(logs, index, *sides(index, ends, len(logs))) for index in ends]
        doubtful = [change for change in found if not holds(logs, change, ends, shift_min_percent)]
        if not doubtful:
            return found
        ends.remove(max(doubtful, key=lambda change: change.p_value).start)


def candidates(logs: Floats) -> list[int]:
    """Indices that a penalised least-squares fit of levels suggests, outliers pulled in beforehand."""
    local = ndimage.median_filter(logs, LOCAL, mode="nearest")
    noise = max(spread(logs - local), 1e-9)
    tamed = np.where(np.abs(logs - local) > OUTLIER_SDS * noise, local, logs)
    search = ruptures.KernelCPD(kernel="linear", min_size=POINTS_MIN).fit(tamed.reshape(-1, 1) / noise)
    return [int(index) for index in search.predict(pen=PENALTY * math.log(len(logs)))[:-1]]


def spread(values: Floats) -> float:
    """Standard deviation, whatever a few outliers do."""
    return MAD_TO_SD * float(np.median(np.abs(values - np.median(values))))


def sides(index: int, ends: Sequence[int], length: int, nearby: int = NEARBY) -> tuple[int, int]:
    """From where to where a change is measured: to its neighbours, at most so many points."""
    before = max((end for end in ends if end < index), default=0)
    after = min((end for end in ends if end > index), default=length)
    return max(before, index - nearby), min(after, index + nearby)


def measured(logs: Floats, index: int, first: int, last: int) -> ChangePoint:
    """A change with its figures."""
    before, after = logs[first:index], logs[index:last]
    differences = np.sort(np.subtract.outer(after, before).ravel())
    low, high = rank_interval(differences, len(before), len(after))
    return ChangePoint(
        index,
        float(np.exp(np.median(before))),
        float(np.exp(np.median(after))),
        percent(float(np.median(differences))),
        (percent(low), percent(high)),
        float(stats.mannwhitneyu(before, after).pvalue),
    )


def rank_interval(differences: Floats, before: int, after: int) -> tuple[float, float]:
    """The shifts that a Mann-Whitney test at 5 % does not reject, its statistic taken as normal."""
    sd = math.sqrt(before * after * (before + after + 1) / 12)
    beyond = max(0, math.floor(before * after / 2 - NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * sd) - 1)
    return float(differences[beyond]), float(differences[len(differences) - 1 - beyond])


def percent(log_ratio: float) -> float:
    """A difference of logarithms as a change in %."""
    return 100 * math.expm1(log_ratio)


def holds(logs: Floats, change: ChangePoint, ends: Sequence[int], shift_min_percent: float) -> bool:
    """Whether a change is sure, large enough, and a step rather than a slope."""
    if change.p_value > P_MAX or abs(change.shift_percent) < shift_min_percent:
        return False
    first, last = sides(change.start, ends, len(logs), len(logs))
    return is_step(logs[first : change.start], logs[change.start : last])


def is_step(before: Floats, after: Floats) -> bool:
    """Whether two levels fit better than one straight line; by absolute distances, so that outliers say little."""
    both = np.concatenate([before, after])
    places = np.arange(len(both), dtype=np.float64)
    slope, intercept, *_ = stats.theilslopes(both, places)
    by_line = np.abs(both - (intercept + slope * places)).sum()
    by_levels = np.abs(before - np.median(before)).sum() + np.abs(after - np.median(after)).sum()
    return bool(by_levels < STEP_TO_SLOPE * by_line)
