"""Which cell is compared with which: neighbours of two arms in the benchmark's mirrored order."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from engine_hooks.commands.counting import counted
from queries.compare.cells import Cell

LOST_FRACTION_MAX: Final = 0.001
"""A cell that lost more of its executions than this lost about as much of its tokens/s: it is left out, and named."""
ELAPSED_FRACTION_MIN: Final = 0.5
"""Of the median elapsed time; a shorter cell was cut off."""
ALIKE: Final = ("host", "package", "recipe", "concurrency")
"""What both cells of a pair share, save where it is what tells the arms apart."""

Measure = Callable[[Cell], float | None]


class LeftOut(NamedTuple):
    """A cell that is part of no pair."""

    cell: Cell
    reason: str


class Pair(NamedTuple):
    """Two neighbours in the order, one of each arm."""

    before: Cell
    after: Cell

    @property
    def before_ran_first(self) -> bool:
        return place(self.before) < place(self.after)


class Matched(NamedTuple):
    """The cells of a comparison, matched."""

    pairs: tuple[Pair, ...]
    same_arm: tuple[tuple[Cell, Cell], ...]
    """Neighbours of one arm: they differ by noise alone."""
    left_out: tuple[LeftOut, ...]
    apart: tuple[str, ...]
    """Labels of which the arms have no value in common: what was changed."""


def matched(cells: Sequence[Cell], arms: tuple[str, str], by: Sequence[str], measure: Measure) -> Matched:
    """Match the cells of two arms.

    Within cells that are alike (host, package, recipe, concurrency, and whatever they are grouped by),
    neighbours in the order of `cell_position` are paired; where no cell has a position, in the order of time.
    As many pairs as possible are made, and of those ways the one whose partners lie closest together.
    """
    apart = labels_apart(cells, arms)
    kept, left_out = sound(cells, measure)
    pairs: list[Pair] = []
    same_arm: list[tuple[Cell, Cell]] = []
    alike = tuple(name for name in dict.fromkeys((*by, *ALIKE)) if name in by or name not in apart)
    for stratum in grouped(kept, alike).values():
        for run in runs(stratum, left_out):
            found = neighbours(run, arms[0])
            pairs += found
            partners = {id(cell) for pair in found for cell in pair}
            left_out += [LeftOut(cell, "no neighbour of the other arm") for cell in run if id(cell) not in partners]
            same_arm += neighbours_of_one_arm(run)
    return Matched(tuple(pairs), tuple(same_arm), tuple(left_out), apart)


def labels_apart(cells: Sequence[Cell], arms: tuple[str, str]) -> tuple[str, ...]:
    """Labels of which the two arms have no value in common."""
    first, second = ([cell for cell in cells if cell.arm == arm] for arm in arms)
    names = cells[0].labels if cells else ()
    return tuple(
        name for name in names if not {cell.labels[name] for cell in first} & {cell.labels[name] for cell in second}
    )


def sound(cells: Sequence[Cell], measure: Measure) -> tuple[list[Cell], list[LeftOut]]:
    """The cells fit to be compared, and the others with what is wrong with them."""
    usual_s = statistics.median(cell.elapsed_s for cell in cells) if cells else 0.0
    kept, left_out = [], []
    for cell in cells:
        if reason := unsound(cell, usual_s, measure):
            left_out.append(LeftOut(cell, reason))
        else:
            kept.append(cell)
    return kept, left_out


def unsound(cell: Cell, usual_s: float, measure: Measure) -> str:
    """Why a cell cannot be compared; '' if it can."""
    if measure(cell) is None:
        return "nothing measured"
    if cell.executions_lost > LOST_FRACTION_MAX * (cell.executions + cell.executions_lost):
        return f"lost {counted(cell.executions_lost, 'execution')}, {cell.executions:,} stored"
    if cell.elapsed_s < ELAPSED_FRACTION_MIN * usual_s:
        return f"cut off after {cell.elapsed_s:.1f} s"
    return ""


def grouped(cells: Iterable[Cell], labels: Sequence[str]) -> dict[tuple[str, ...], list[Cell]]:
    """Cells by these labels, groups in alphabetical order."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(cell.labels[name] for name in labels), []).append(cell)
    return dict(sorted(groups.items()))


def runs(stratum: Sequence[Cell], left_out: list[LeftOut]) -> list[list[Cell]]:
    """The runs of the benchmark in these cells, each in its order. A position seen again begins another run.

    Cells without a position among others with one are added to `left_out`.
    """
    in_time = sorted(stratum, key=lambda cell: (cell.started_at, cell.position or 0, cell.cell))
    if all(cell.position is None for cell in stratum):
        return [in_time]
    found: list[list[Cell]] = [[]]
    seen: set[int] = set()
    for cell in in_time:
        if cell.position is None:
            left_out.append(LeftOut(cell, "no position in the benchmark's order"))
            continue
        if cell.position in seen:
            found.append([])
            seen.clear()
        seen.add(cell.position)
        found[-1].append(cell)
    return [sorted(run, key=place) for run in found]


def place(cell: Cell) -> float:
    """Where a cell stands in the order: its position, else its start in s."""
    return cell.started_at.timestamp() if cell.position is None else cell.position


def neighbours(run: Sequence[Cell], first_arm: str) -> list[Pair]:
    """As many pairs of neighbours of two arms as there can be, those closest together where there is a choice."""
    # Of the ways to pair the first n cells: how many pairs, how close together, and whether the last two are one.
    best: list[tuple[int, float, bool]] = [(0, 0.0, False)] * min(2, len(run) + 1)
    for left, right in pairwise(run):
        count, closeness, _ = best[-2]
        paired = (count + 1, closeness - (place(right) - place(left)), True)
        alone = (*best[-1][:2], False)
        best.append(max(alone, paired) if left.arm != right.arm else alone)
    pairs: list[Pair] = []
    end = len(run)
    while end > 1:
        is_pair = best[end][2]
        if is_pair:
            first, second = run[end - 2 : end]
            pairs.append(Pair(first, second) if first.arm == first_arm else Pair(second, first))
        end -= 2 if is_pair else 1
    return pairs[::-1]


def neighbours_of_one_arm(run: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Neighbours of the same arm, no cell twice; where the order never has two side by side, the arm's next cell."""
    adjacent = disjoint(run)
    if adjacent:
        return adjacent
    return [
        pair
        for arm in sorted({cell.arm for cell in run})
        for pair in disjoint([cell for cell in run if cell.arm == arm])
    ]


def disjoint(cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Pairs of consecutive cells of one arm that share no cell."""
    pairs: list[tuple[Cell, Cell]] = []
    for left, right in pairwise(cells):
        if left.arm == right.arm and not (pairs and pairs[-1][1] is left):
            pairs.append((left, right))
    return pairs
