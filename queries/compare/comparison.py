"""Cells of two arms to a verdict for each group, and for all of them."""

import statistics
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from scipy import stats

from queries.compare.absent import check_arms
from queries.compare.cells import Cell
from queries.compare.errors import NothingToCompareError
from queries.compare.pairing import LeftOut, Matched, Pair, matched
from queries.compare.shifts import (
    ERROR_RATE,
    PAIRS_MIN,
    SAME_ARM_MIN,
    Shift,
    holm,
    pairs_needed,
    same_arm_band,
    shift_of,
)
from queries.errors import CallError

SMALLEST_SHIFT: Final = 0.5


class Metric(StrEnum):
    """What is compared."""

    TOKENS_PER_S = "tokens_per_s"
    PLAIN_FRACTION = "plain_fraction"


class Verdict(StrEnum):
    """What can be said of two arms."""

    BETTER = "better"
    WORSE = "worse"
    WITHIN_NOISE = "within noise"
    """The shift, if there is any, is too small to matter, and smaller than what one arm shows against itself."""
    UNDETERMINED = "undetermined"


class MetricKind(NamedTuple):
    """How a metric is read."""

    measure: Callable[[Cell], float | None]
    difference: Callable[[float, float], float]
    """Of before and after; antisymmetric, so that swapping the arms swaps the verdict."""
    more_is_better: bool
    unit: str
    """Of the shift."""


def percent_of_mean(before: float, after: float) -> float:
    """The difference in % of the pair's mean; defined where one of them is 0."""
    return 200 * (after - before) / (after + before) if after + before else 0.0


def points(before: float, after: float) -> float:
    """The difference of two fractions, in percentage points."""
    return 100 * (after - before)


METRICS: Final = {
    Metric.TOKENS_PER_S: MetricKind(lambda cell: cell.tokens_per_s, percent_of_mean, True, "%"),
    Metric.PLAIN_FRACTION: MetricKind(lambda cell: cell.plain_fraction, points, False, "points"),
}


class ArmCells(NamedTuple):
    """The paired cells of one arm in one group."""

    values: tuple[float, ...]
    """Of the metric, in the order of the pairs."""
    stuck: tuple[bool, ...]
    cells: tuple[Cell, ...]
    """The cells themselves, in the same order."""

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)


class MoreCells(NamedTuple):
    """How many more cells, both arms together, would find a shift four times out of five."""

    for_smallest_shift: int
    for_shift_seen: int | None
    """If the true shift is the one seen; None where that is none."""


class Group(NamedTuple):
    """One row of a comparison."""

    labels: tuple[str, ...]
    """Values of the labels grouped by; empty for all groups together."""
    before: ArmCells
    after: ArmCells
    shift: Shift
    p_value_adjusted: float
    """Holm's, over the rows of the table."""
    same_arm_band: float | None
    """95 % of neighbours of one arm differ by less than this, in the unit of the shift; None where too few tell."""
    same_arm_pairs: int
    stuck_p_value: float
    """Exact McNemar test: of the pairs in which one cell is stuck, how one-sided they are."""
    verdict: Verdict
    more_cells: MoreCells | None
    """None where the verdict is reached, or hangs on what one arm differs from itself, which is not known."""


class Comparison(NamedTuple):
    """Two arms compared."""

    arms: tuple[str, str]
    by: tuple[str, ...]
    metric: Metric
    smallest_shift: float
    groups: tuple[Group, ...]
    overall: Group
    left_out: tuple[LeftOut, ...]
    apart: tuple[str, ...]
    """Labels of which the arms share no value: what was changed."""
    notes: tuple[str, ...]
    """What a reader must know before trusting a verdict."""

    @property
    def rows(self) -> tuple[Group, ...]:
        """The groups, and all of them together where there are several."""
        return (*self.groups, self.overall) if len(self.groups) > 1 else self.groups

    @property
    def unit(self) -> str:
        """Of every shift."""
        return METRICS[self.metric].unit


def compared(
    cells: Sequence[Cell],
    arms: tuple[str, str] = ("before", "after"),
    by: Sequence[str] = ("host", "package"),
    metric: Metric = Metric.TOKENS_PER_S,
    smallest_shift: float = SMALLEST_SHIFT,
) -> Comparison:
    """Compare two arms, pair by pair.

    Args:
        cells: Of both arms; those of other arms are ignored.
        arms: The arm compared with, and the arm judged.
        by: Labels whose values make a row of their own.
        metric: What is compared.
        smallest_shift: What counts as a shift at all, in % (points for a fraction).

    Raises:
        NothingToCompareError: no two cells make a pair.
        CallError: the arms are one, or the smallest shift is none.
    """
    if not smallest_shift > 0:
        raise CallError(f"the smallest shift that matters is above 0, not {smallest_shift:g}")
    if arms[0] == arms[1]:
        raise CallError(f"an arm cannot be compared with itself: {arms[0]}")
    kind = METRICS[metric]
    check_arms(arms, {cell.arm for cell in cells})
    chosen = [cell for cell in cells if cell.arm in arms]
    found = matched(chosen, arms, by, kind.measure)
    check_pairs(found, arms, by)
    members = by_labels(found, by)
    drafts = [draft_of(labels, pairs, same, kind) for labels, (pairs, same) in members.items()]
    if len(drafts) > 1:
        drafts.append(draft_of((), found.pairs, found.same_arm, kind))
    rows = judged(drafts, kind, smallest_shift)
    groups = tuple(rows[: len(members)])
    return Comparison(
        arms,
        tuple(by),
        metric,
        smallest_shift,
        groups,
        rows[-1],
        found.left_out,
        found.apart,
        notes_on(found, groups, smallest_shift),
    )


def check_pairs(found: Matched, arms: tuple[str, str], by: Sequence[str]) -> None:
    """Refuse where nothing can be compared, and say why."""
    if found.pairs:
        return
    split = [name for name in by if name in found.apart]
    if split:
        raise NothingToCompareError(
            f"the arms {arms[0]} and {arms[1]} have no {split[0]} in common: leave {split[0]} out of --by"
        )
    first = found.left_out[0]
    raise NothingToCompareError(
        f"no two cells of {arms[0]} and {arms[1]} make a pair; cell {first.cell.name}: {first.reason}"
    )


def by_labels(found: Matched, by: Sequence[str]) -> dict[tuple[str, ...], tuple[list[Pair], list[tuple[Cell, Cell]]]]:
    """Pairs and neighbours of one arm for each group, groups in alphabetical order."""
    groups: dict[tuple[str, ...], tuple[list[Pair], list[tuple[Cell, Cell]]]] = {}
    for pair in found.pairs:
        groups.setdefault(tuple(pair.before.labels[name] for name in by), ([], []))[0].append(pair)
    for left, right in found.same_arm:
        group = groups.get(tuple(left.labels[name] for name in by))
        if group:
            group[1].append((left, right))
    return dict(sorted(groups.items()))


def draft_of(
    labels: tuple[str, ...], pairs: Sequence[Pair], same_arm: Sequence[tuple[Cell, Cell]], kind: MetricKind
) -> Group:
    """A group measured but not yet judged."""
    before, after = ([pair[side] for pair in pairs] for side in (0, 1))
    shift = shift_of([difference(pair, kind) for pair in pairs])
    return Group(
        labels,
        arm_cells(before, kind),
        arm_cells(after, kind),
        shift,
        shift.p_value,
        same_arm_band([difference(pair, kind) for pair in same_arm]),
        len(same_arm),
        stuck_p_value(pairs),
        Verdict.UNDETERMINED,
        None,
    )


def difference(pair: tuple[Cell, Cell], kind: MetricKind) -> float:
    """Of two cells, in the unit of the shift."""
    return kind.difference(kind.measure(pair[0]) or 0.0, kind.measure(pair[1]) or 0.0)


def arm_cells(cells: Sequence[Cell], kind: MetricKind) -> ArmCells:
    """What one arm's cells came to."""
    return ArmCells(
        tuple(kind.measure(cell) or 0.0 for cell in cells), tuple(cell.stuck for cell in cells), tuple(cells)
    )


def stuck_p_value(pairs: Sequence[Pair]) -> float:
    """Chance of so one-sided a count of newly stuck and newly free cells between arms that do not differ."""
    freed = sum(pair.before.stuck and not pair.after.stuck for pair in pairs)
    caught = sum(pair.after.stuck and not pair.before.stuck for pair in pairs)
    return float(stats.binomtest(freed, freed + caught).pvalue) if freed + caught else 1.0


def judged(drafts: Sequence[Group], kind: MetricKind, smallest_shift: float) -> list[Group]:
    """The rows with their verdicts: together they err in at most 4 % of tables of arms that do not differ."""
    adjusted = holm([draft.shift.p_value for draft in drafts])
    rows = []
    for draft, p_value in zip(drafts, adjusted, strict=True):
        row = draft._replace(p_value_adjusted=p_value)
        verdict = verdict_on(row, kind, smallest_shift)
        is_open = verdict is Verdict.UNDETERMINED and not lacks_band(row, smallest_shift)
        more = more_cells(row.shift, smallest_shift, len(drafts)) if is_open else None
        rows.append(row._replace(verdict=verdict, more_cells=more))
    return rows


def verdict_on(row: Group, kind: MetricKind, smallest_shift: float) -> Verdict:
    """What the row allows to say.

    Better or worse takes the test and the interval of the mean: the usual pair has shifted, and so has
    what all of them come to. Within noise takes both intervals, inside the band of one arm against itself
    and inside the smallest shift that matters: on a noisy host the band alone would wave everything through.
    An arm that repeats itself exactly has a band of no width: another that does the same lies inside it.
    """
    typical, mean = row.shift.hodges_lehmann_interval, row.shift.mean_interval
    if typical is None or mean is None:
        return Verdict.UNDETERMINED
    if row.same_arm_band is not None and is_negligible(row.shift, min(row.same_arm_band, smallest_shift)):
        return Verdict.WITHIN_NOISE
    if row.p_value_adjusted > ERROR_RATE:
        return Verdict.UNDETERMINED
    if min(mean.low, row.shift.hodges_lehmann) > 0:
        return Verdict.BETTER if kind.more_is_better else Verdict.WORSE
    if max(mean.high, row.shift.hodges_lehmann) < 0:
        return Verdict.WORSE if kind.more_is_better else Verdict.BETTER
    return Verdict.UNDETERMINED


def lacks_band(row: Group, smallest_shift: float) -> bool:
    """Whether nothing but the band is missing for it to be within noise."""
    return row.same_arm_band is None and is_negligible(row.shift, smallest_shift)


def is_negligible(shift: Shift, half_width: float) -> bool:
    """Whether the shift is known to be no larger than this."""
    typical, mean = shift.hodges_lehmann_interval, shift.mean_interval
    return typical is not None and mean is not None and typical.inside(half_width) and mean.inside(half_width)


def more_cells(shift: Shift, smallest_shift: float, tests: int) -> MoreCells:
    """Two cells for each pair that is missing."""

    def missing(size: float) -> int | None:
        needed = pairs_needed(size, shift.sd, tests)
        return None if needed is None else 2 * max(needed - shift.pairs, 1)

    return MoreCells(missing(smallest_shift) or 0, missing(shift.hodges_lehmann))


def notes_on(found: Matched, groups: Sequence[Group], smallest_shift: float) -> tuple[str, ...]:
    """What limits the comparison, in sentences."""
    notes = []
    small = sum(group.shift.pairs < PAIRS_MIN for group in groups)
    if small:
        notes.append(
            f"{small} of {len(groups)} groups have fewer than {PAIRS_MIN} pairs: even if all of them point one way,"
            " p is at least 0.06, so nothing is decided there"
        )
    if bandless := sum(lacks_band(group, smallest_shift) for group in groups):
        notes.append(
            f"{bandless} of {len(groups)} groups have fewer than {SAME_ARM_MIN} pairs of neighbouring cells of one arm: what an arm"
            " differs from itself is not known, so a shift of nothing is not within noise there"
        )
    first = sum(pair.before_ran_first for pair in found.pairs)
    if len(found.pairs) > 1 and first in (0, len(found.pairs)):
        notes.append("one arm always ran first: a drift of the host counts as a shift; mirror the order (ABBA)")
    if any(pair.before.position is None for pair in found.pairs):
        notes.append("some cells have no position: they were paired in the order of time")
    return tuple(notes)
