"""Intervals and verdicts over paired cells."""

import statistics
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

CONFIDENCE: Final = 0.95
PAIRS_MIN: Final = 6
"""Fewer pairs that differ decide nothing: an exact two-sided sign test of five cannot go below p = 0.06."""
RESAMPLES: Final = 9999


class Interval(NamedTuple):
    """A mean with its 95 % interval; one observation alone has none."""

    mean: float
    ci95: tuple[float, float] | None


class Verdict(StrEnum):
    """What a paired comparison says."""

    BETTER = "better"
    WORSE = "worse"
    UNDETERMINED = "undetermined"


class PairedComparison(NamedTuple):
    """How `after` does against `before`, over pairs that met the same conditions."""

    pairs: int
    shift_percent: Interval
    """Of the pairs' difference, in percent of the mean before."""
    verdict: Verdict


def t_interval(values: Sequence[float]) -> Interval:
    """Mean and Student's interval. For figures without heavy tails, over seeds."""
    from scipy import stats  # noqa: PLC0415 (takes a second)

    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, None)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    return Interval(mean, (mean - half, mean + half))


def bootstrap_interval(values: Sequence[float]) -> Interval:
    """Mean and percentile bootstrap interval: a few stuck cells make the tail heavy.

    The same values give the same interval. The accelerated bootstrap is too sure of itself
    here: of nineteen pairs alike and one apart it says that the arms differ.
    """
    from scipy import stats  # noqa: PLC0415 (takes a second)

    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, None)
    if min(values) == max(values):
        return Interval(mean, (mean, mean))
    resampled = stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        batch=500,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    low, high = resampled.confidence_interval
    return Interval(mean, (float(low), float(high)))


def compare_pairs(before: Sequence[float], after: Sequence[float]) -> PairedComparison:
    """Compare two arms, pair by pair. More is better."""
    scale = 100 / statistics.fmean(before)
    differences = [scale * (b - a) for a, b in zip(before, after, strict=True)]
    shift = bootstrap_interval(differences)
    return PairedComparison(len(before), shift, verdict_on(shift, sum(map(bool, differences))))


def verdict_on(shift: Interval, differing: int) -> Verdict:
    """Better or worse if the interval leaves zero on one side, and enough pairs differ at all."""
    if differing < PAIRS_MIN or shift.ci95 is None:
        return Verdict.UNDETERMINED
    low, high = shift.ci95
    if low > 0:
        return Verdict.BETTER
    return Verdict.WORSE if high < 0 else Verdict.UNDETERMINED
