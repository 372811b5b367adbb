"""What the size of the batch does to GPU times, so that only executions at like batch sizes are compared.

Many engines capture graphs padded to one shape: there it does nothing, and nothing is done here. Where GPU times go
with the lanes it shows where the batch changes: each graph is compared with itself just before and just after, so that
a clock that drifts meanwhile hardly counts. What changed at the very moment of the only change of batch cannot be told
from it, and counts as the batch's.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from queries.findings.steps import CHANGE_MIN, steps_of
from queries.findings.timeline import Bools, Floats, Ints, Timeline

BESIDE: Final = 32
"""Executions of a graph compared on either side of a change of batch, at most."""
KNOTS_MAX: Final = 8
"""So many batch sizes are told apart; between them times are taken to go in a straight line."""
SHARED_WORTH: Final = 2.0
"""What all graphs show together is worth so many changes of batch that a graph shows itself."""
EVEN_WORTH: Final = 0.05
"""The same of neighbouring batch sizes taking equally long, where nothing shows it."""
EFFECT_MIN: Final = 0.025
"""GPU times go with the batch only if the largest takes longer, or shorter, than the smallest by this much ..."""
EFFECT_Z: Final = 6.0
"""... and by that many times its error; or if it leaves fewer changes of level to explain."""


class _Changes(NamedTuple):
    """Changes of the batch, as one graph met them."""

    lanes_before: Floats
    lanes_after: Floats
    moved: Floats
    """By how much its GPU time changed, as logarithm."""
    weight: Floats
    """As so many pairs of executions."""


@dataclass(frozen=True)
class BatchSizes:
    """The batch over a timeline, and what it does to GPU times."""

    timeline: Timeline
    lanes: Floats
    """By execution: its lanes, else those of the decoding round before it."""
    knots: Floats
    """Batch sizes told apart."""
    logs: Floats
    """By graph and knot: GPU time against that at the first knot, as logarithm; 0 where the batch does nothing."""
    groups: Ints
    """By knot: batch sizes of one group are linked by graphs executed at both; of others nothing compares them."""

    @property
    def matters(self) -> bool:
        """GPU times go with the batch."""
        return bool(self.logs.any())

    @cached_property
    def alike(self) -> Timeline:
        """The timeline with every GPU time as it would be at the smallest batch."""
        if not self.matters:
            return self.timeline
        rows, graph = np.arange(len(self.lanes)), self.timeline.graph
        return replace(
            self.timeline, gpu=np.rint(self.timeline.gpu / self.factors(self.lanes)[rows, graph]).astype(int)
        )

    def factors(self, lanes: Floats) -> Floats:
        """GPU time at these batch sizes against that at the smallest, by graph."""
        if not self.matters:
            return np.ones((len(lanes), len(self.logs)))
        return np.exp(_hats(self.knots, lanes) @ self.logs.T)

    def in_bins(self, count: int) -> Floats:
        """Median lanes of each bin of the cell; where nothing decoded, of the one before."""
        rows = np.flatnonzero(self.timeline.decoding & self.timeline.in_cell)
        if not len(rows):
            return np.full(count, self.knots[0])
        bins, middle = self.timeline.bins[rows], np.empty(count)
        edges = np.searchsorted(bins, np.arange(count + 1))
        for bin_ in range(count):
            low, high = int(edges[bin_]), int(edges[bin_ + 1])
            nearest = self.lanes[rows[max(low - 1, 0)]]
            middle[bin_] = np.median(self.lanes[rows[low:high]]) if high > low else nearest
        return middle

    def compared(self, lanes: Floats) -> Bools:
        """Whether what each graph costs at these batch sizes is known: it was executed at them, or others at both.

        By batch size and graph. One never executed at any batch size counts as compared.
        """
        groups = self._groups_of_graphs()
        return np.asarray((groups == -1) | (self.group_of(lanes)[:, None] == groups))

    def group_of(self, lanes: Floats) -> Ints:
        """The group of each of these batch sizes."""
        return np.asarray(self.groups[_nearest(self.knots, lanes)])

    def lanes_of(self, graph: int) -> Floats:
        """Batch sizes that a graph was executed at."""
        return np.unique(self.lanes[self.timeline.graph == graph])

    def _groups_of_graphs(self) -> Ints:
        groups, rows = np.full(len(self.logs), -1), np.flatnonzero(self.timeline.decoding)
        groups[self.timeline.graph[rows]] = self.group_of(self.lanes[rows])
        return groups


def batch_sizes_of(timeline: Timeline) -> BatchSizes:
    """What the batch does to the GPU times of a timeline."""
    lanes = _lanes(timeline)
    sizes = np.unique(lanes[timeline.decoding])
    if len(sizes) < 2:
        knots = sizes if len(sizes) else np.ones(1)
        return BatchSizes(timeline, lanes, knots, np.zeros((len(timeline.names), 1)), np.zeros(1, dtype=np.int64))
    knots = sizes if len(sizes) <= KNOTS_MAX else np.unique(np.quantile(sizes, np.linspace(0, 1, KNOTS_MAX)))
    return BatchSizes(timeline, lanes, knots, _logs(timeline, lanes, knots), _groups(timeline, lanes, knots))


def _lanes(timeline: Timeline) -> Floats:
    """Lanes by execution. Unless all decoding rounds say theirs, they count as one batch size."""
    given = np.array([execution.batch_lanes or 0 for execution in timeline.executions], dtype=np.float64)
    rows = np.flatnonzero(timeline.decoding)
    if not len(rows) or (given[rows] == 0).any():
        return np.ones(len(given))
    before = np.maximum(np.searchsorted(rows, np.arange(len(given)), side="right") - 1, 0)
    return np.asarray(given[rows[before]])


def _logs(timeline: Timeline, lanes: Floats, knots: Floats) -> Floats:
    """By graph and knot; all 0 if GPU times do not go with the batch."""
    graphs = np.unique(timeline.graph[timeline.decoding]).tolist()
    met = {graph: _changes(timeline, lanes, timeline.graph == graph) for graph in graphs}
    together = _Changes(*(np.concatenate(parts) for parts in zip(*met.values(), strict=True)))
    shared = _fitted(together, knots, np.zeros(len(knots)), EVEN_WORTH)
    never = np.bincount(timeline.graph, minlength=len(timeline.names)) == 0
    logs = np.where(never[:, None], shared, 0.0)
    explains = _stands_out(together, knots, shared)
    for graph in graphs:
        own = _fitted(met[graph], knots, shared, SHARED_WORTH)
        gpu = timeline.gpu[timeline.graph == graph].astype(np.float64)
        left = _to_explain(gpu / np.exp(_hats(knots, lanes[timeline.graph == graph]) @ own))
        raw = _to_explain(gpu)
        explains |= left <= raw - np.log1p(CHANGE_MIN)
        # A graph of one shape among others that go with the batch.
        logs[graph] = own if left <= raw else 0.0
    return logs if explains else np.zeros_like(logs)


def _changes(timeline: Timeline, lanes: Floats, of_graph: Bools) -> _Changes:
    rows = np.flatnonzero(of_graph & timeline.decoding)
    lanes, logs = lanes[rows], np.log(np.maximum(timeline.gpu[rows], 1))
    edges = [0, *(np.flatnonzero(np.diff(lanes)) + 1).tolist(), len(rows)]
    found = list(_beside(lanes, logs, edges))
    return (
        _Changes(*(np.array(column) for column in zip(*found, strict=True))) if found else _Changes(*4 * [np.empty(0)])
    )


def _beside(lanes: Floats, logs: Floats, edges: list[int]) -> Iterator[tuple[float, float, float, float]]:
    """Each change of batch: the lanes on both sides, and the medians next to it."""
    for low, at, high in zip(edges, edges[1:], edges[2:], strict=False):
        before, after = logs[max(low, at - BESIDE) : at], logs[at : min(high, at + BESIDE)]
        weight = len(before) * len(after) / (len(before) + len(after))
        yield lanes[at - 1], lanes[at], float(np.median(after) - np.median(before)), weight


def _hats(knots: Floats, lanes: Floats) -> Floats:
    """The share of each knot in these batch sizes."""
    return np.array([np.interp(lanes, knots, one) for one in np.eye(len(knots))]).T


def _fitted(changes: _Changes, knots: Floats, around: Floats, worth: float) -> Floats:
    """The logarithm at each knot, 0 at the first, that the changes show best; near `around` where they show little."""
    crossed = _hats(knots, changes.lanes_after) - _hats(knots, changes.lanes_before)
    normal = _normal(crossed, changes.weight, worth)
    off = changes.moved - crossed @ around
    own = np.linalg.solve(normal, (crossed * changes.weight[:, None]).T[1:] @ off)
    return np.asarray(around + np.concatenate(([0.0], own)))


def _normal(crossed: Floats, weight: Floats, worth: float) -> Floats:
    even = np.diff(np.eye(crossed.shape[1]), axis=0)
    return np.asarray(((crossed * weight[:, None]).T @ crossed + worth * even.T @ even)[1:, 1:])


def _stands_out(changes: _Changes, knots: Floats, logs: Floats) -> bool:
    """Whether the effect on all graphs together is beyond what the changes disagree by."""
    if abs(logs[-1]) < np.log1p(EFFECT_MIN):
        return False
    crossed = _hats(knots, changes.lanes_after) - _hats(knots, changes.lanes_before)
    off, free = changes.moved - crossed @ logs, len(changes.moved) - len(knots) + 1
    if free < 1:
        return False
    variance = float(changes.weight @ off**2) / free
    error = np.sqrt(variance * np.linalg.inv(_normal(crossed, changes.weight, EVEN_WORTH))[-1, -1])
    return bool(abs(logs[-1]) >= EFFECT_Z * error)


def _to_explain(gpu: Floats) -> float:
    return sum(abs(step) for _, step in steps_of(gpu))


def _groups(timeline: Timeline, lanes: Floats, knots: Floats) -> Ints:
    """Knots that graphs link, by one number for each group."""
    group = np.arange(len(knots))
    nearest = _nearest(knots, lanes)
    for graph in np.unique(timeline.graph[timeline.decoding]).tolist():
        linked = np.unique(group[nearest[timeline.graph == graph]])
        group[np.isin(group, linked)] = linked[0]
    return group


def _nearest(knots: Floats, lanes: Floats) -> Ints:
    return np.asarray(np.abs(lanes[:, None] - knots).argmin(axis=1))
