"""Changes found in the series of a fleet, each with what else became different at that time."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from queries.changes.detection import POINTS_MIN, POINTS_NEEDED, ChangePoint, change_points
from queries.changes.history import METRICS, Metric, Point, Series

SPARKS: Final = "▁▂▃▄▅▆▇█"
SPARK_WIDTH: Final = 32


class Difference(NamedTuple):
    """A label that was another one before."""

    label: str
    before: str
    after: str


class Change(NamedTuple):
    """One change of one series."""

    labels: tuple[str, ...]
    after: datetime
    """The last step at the old level began then."""
    at: datetime
    """The first step at the new level began then."""
    point: ChangePoint
    is_worse: bool
    differences: tuple[Difference, ...]
    """Labels most usual in the five points before and after."""
    values: tuple[float, ...]
    """Of the whole series."""


class Extent(NamedTuple):
    """How much of a series there was to look through."""

    labels: tuple[str, ...]
    points: int
    first: datetime
    """The first step began then."""
    last: datetime

    @property
    def is_enough(self) -> bool:
        """Whether a change could have been found."""
        return self.points >= POINTS_NEEDED


def extents_of(series: Sequence[Series]) -> tuple[Extent, ...]:
    """How much there is of each series, in their order."""
    return tuple(Extent(one.labels, len(one.points), one.points[0].at, one.points[-1].at) for one in series)


def changes_in(series: Sequence[Series], metric: Metric, shift_min_percent: float) -> list[Change]:
    """Every change, the latest first."""
    found = [
        change_of(one, point, METRICS[metric].more_is_better)
        for one in series
        for point in change_points([point.value for point in one.points], shift_min_percent)
    ]
    return sorted(found, key=lambda change: change.at, reverse=True)


def change_of(series: Series, point: ChangePoint, more_is_better: bool) -> Change:
    """A change point of a series, on the calendar."""
    before, after = series.points[: point.start], series.points[point.start :]
    return Change(
        series.labels,
        before[-1].at,
        after[0].at,
        point,
        (point.shift_percent < 0) == more_is_better,
        differences_between(before[-POINTS_MIN:], after[:POINTS_MIN]),
        tuple(point.value for point in series.points),
    )


def differences_between(before: Sequence[Point], after: Sequence[Point]) -> tuple[Difference, ...]:
    """Labels whose most usual value is another one."""
    return tuple(
        Difference(label, old, new)
        for label in before[0].labels
        if (old := usual(before, label)) != (new := usual(after, label))
    )


def usual(points: Sequence[Point], label: str) -> str:
    """The most usual value of a label."""
    return Counter(point.labels[label] for point in points).most_common(1)[0][0]


def sparkline(values: Sequence[float], index: int) -> tuple[str, str]:
    """The series before a change and after it, one character for as many points each, by their median."""
    size = max(1, -(-len(values) // SPARK_WIDTH))
    before, after = (
        [part[i : i + size] for i in range(0, len(part), size)] for part in (values[:index], values[index:])
    )
    medians = [sorted(chunk)[len(chunk) // 2] for chunk in (*before, *after)]
    low, high = min(medians), max(medians)
    step = (high - low) / (len(SPARKS) - 1) or 1.0
    text = "".join(SPARKS[round((value - low) / step)] for value in medians)
    return text[: len(before)], text[len(before) :]
