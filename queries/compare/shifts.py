"""By how much two arms differ: shifts of pairs, their intervals, and what it would take to be sure.

Source of the estimator and its interval: Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3.1-3.3.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

CONFIDENCE: Final = 0.95
"""Of intervals."""
ERROR_RATE: Final = 0.04
"""Of whole tables of arms that do not differ, so many are decided at most; under 5 % also in any 1,000 of them."""
NORMAL: Final = NormalDist()
POWER: Final = 0.8
RESAMPLES: Final = 4999
DRAWN_AT_ONCE: Final = 500_000
"""Values of the bootstrap held in memory, 4 MB."""
PAIRS_EXACT_MAX: Final = 50
"""Beyond it the signed-rank statistic is taken as normal."""
PAIRS_MIN: Final = 6
"""Five pairs that all point one way still have p = 0.0625, two-sided: no 95 % interval, no verdict."""
SAME_ARM_MIN: Final = 3
"""Fewer neighbours of one arm make no band."""
SIGNED_RANK_EFFICIENCY: Final = 3 / math.pi
"""Of the signed-rank test against the t test where differences are normal."""

Floats = npt.NDArray[np.float64]


class Interval(NamedTuple):
    """A 95 % interval, in the unit of the shift."""

    low: float
    high: float

    def inside(self, half_width: float) -> bool:
        """Whether it lies within ± this, limits and all: no difference at all lies in a band of no width."""
        return -half_width <= self.low and self.high <= half_width


class Shift(NamedTuple):
    """What the pairs of a group say, in % of the pair's mean (points, where the metric is a fraction)."""

    pairs: int
    hodges_lehmann: float
    """Median of the means of every two differences: one odd cell does not move it."""
    hodges_lehmann_interval: Interval | None
    """The signed-rank test inverted, exact up to 50 pairs; None for fewer than six."""
    mean: float
    mean_interval: Interval | None
    """Percentile bootstrap over pairs; None for fewer than six."""
    p_value: float
    """Two-sided Wilcoxon signed-rank test, pairs without a difference left out."""
    sd: float
    """Standard deviation of the pairs' differences; 0 for a single pair."""


def shift_of(differences: Sequence[float]) -> Shift:
    """Estimate, intervals and test from the pairs' differences; there is at least one."""
    values = np.asarray(differences, dtype=np.float64)
    averages = walsh_averages(values)
    enough = len(values) >= PAIRS_MIN
    return Shift(
        pairs=len(values),
        hodges_lehmann=float(np.median(averages)),
        hodges_lehmann_interval=signed_rank_interval(averages, len(values)) if enough else None,
        mean=float(values.mean()),
        mean_interval=bootstrap_interval(values) if enough else None,
        p_value=signed_rank_p(values),
        sd=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
    )


def walsh_averages(values: Floats) -> Floats:
    """The mean of every two values, each with itself too, ascending."""
    rows, columns = np.triu_indices(len(values))
    return np.sort((values[rows] + values[columns]) / 2)


def signed_rank_interval(averages: Floats, pairs: int) -> Interval:
    """The shifts that a two-sided signed-rank test at 5 % does not reject."""
    limit = rank_limit(pairs)
    return Interval(float(averages[limit]), float(averages[len(averages) - 1 - limit]))


def rank_limit(pairs: int) -> int:
    """The largest rank sum whose chance, or that of any smaller one, is at most 2.5 % between arms that do not differ.

    So many ordered averages lie outside the interval on each side.
    """
    tail = (1 - CONFIDENCE) / 2
    if pairs > PAIRS_EXACT_MAX:
        mean = pairs * (pairs + 1) / 4
        sd = math.sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24)
        return max(0, math.floor(mean - NORMAL.inv_cdf(1 - tail) * sd - 0.5))
    chances = np.ones(1)
    for rank in range(1, pairs + 1):
        with_rank = np.concatenate([np.zeros(rank), chances])
        chances = (np.concatenate([chances, np.zeros(rank)]) + with_rank) / 2
    return int(np.searchsorted(np.cumsum(chances), tail, side="right")) - 1


def signed_rank_p(values: Floats) -> float:
    """Chance of ranks as one-sided as these between arms that do not differ."""
    differing = values[values != 0]
    return float(stats.wilcoxon(differing).pvalue) if len(differing) else 1.0


def bootstrap_interval(values: Floats) -> Interval:
    """Of the mean, by drawing pairs anew. The same values give the same interval."""
    if values.min() == values.max():
        return Interval(float(values[0]), float(values[0]))
    low, high = stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        method="percentile",
        vectorized=True,
        batch=max(1, DRAWN_AT_ONCE // len(values)),
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Interval(float(low), float(high))


def same_arm_band(differences: Sequence[float]) -> float | None:
    """Within what (±) 95 % of neighbours of one arm differ; None where there are too few to tell."""
    if len(differences) < SAME_ARM_MIN:
        return None
    return NORMAL.inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(np.mean(np.square(differences)))


def pairs_needed(shift: float, sd: float, tests: int) -> int | None:
    """How many pairs find a shift of this size four times out of five, among so many tests; None for no shift at all.

    Takes the differences as normal, and the level of the strictest of the tests.
    """
    if shift == 0:
        return None
    quantiles = NORMAL.inv_cdf(1 - ERROR_RATE / 2 / tests) + NORMAL.inv_cdf(POWER)
    return max(PAIRS_MIN, math.ceil((quantiles * sd / shift) ** 2 / SIGNED_RANK_EFFICIENCY))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values such that deciding by all of a table errs in it no more often than by one of them, after Holm 1979."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, floor = [1.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        floor = max(floor, min(1.0, p_values[index] * (len(p_values) - place)))
        adjusted[index] = floor
    return adjusted
