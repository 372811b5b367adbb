"""What each graph truly costs, half-second by half-second: GPU time at the present clock + the idle time it really causes."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from queries.findings.batch import BatchSizes, batch_sizes_of
from queries.findings.lateness import late_ratios
from queries.findings.steps import steps_of
from queries.findings.timeline import Floats, Ints, Timeline

SAMPLES: Final = 48
"""Executions, the nearest in time, whose median GPU time is a graph's cost."""
FRESH_NS: Final = 1_000_000_000
"""A GPU time measured so near an instant holds there as it is."""
WITNESS_NS: Final = 8_000_000_000
"""A graph bears witness to the clock at an instant if it was executed so near to it."""
CLOCK_NOISE: Final = 0.006
"""Changes of the clock below this are noise."""
SLOW_SCATTER: Final = 1.3
"""A slow host may take that many times its usual time before it counts as a stumble as well."""
SYSTEMATIC_FEEDBACK: Final = 0.5
"""Share of decoding rounds with completion feedback from which every round is charged its handoff."""


@dataclass(frozen=True)
class Costs:
    """Matrices by bin (half a second of the cell) and graph, in ns. NaN: never measured."""

    gpu: Floats
    late: Floats
    """Idle time before a pipelined round, because the host is systematically slower than the device."""
    handoff: Floats
    """Idle time for completion feedback, where most rounds need it."""
    late_ratio: Floats
    """Host time over GPU time where the host is systematically late; else 0."""
    slow: Floats
    """By execution of the timeline: how long a slow host usually takes for it, in ns; 0 where the host is not slow."""
    stumble: Ints
    """By execution of the timeline: idle time before it that neither a slow host nor a handoff explains, in ns."""
    batch: BatchSizes
    """What the batch does to GPU times."""

    @property
    def total(self) -> Floats:
        """GPU time + idle time."""
        return self.gpu + np.maximum(self.late, self.handoff)


def costs_of(timeline: Timeline) -> Costs:
    """The true costs over a timeline."""
    batch = batch_sizes_of(timeline)
    gpu = _Levels(batch.alike).gpu_times()
    gpu = gpu * batch.factors(batch.in_bins(len(gpu)))
    ratio = late_ratios(timeline, gpu)
    late = np.where(ratio > 0, (ratio - 1) * gpu, 0)
    handoff = np.repeat(_handoffs(timeline, len(gpu))[:, None], gpu.shape[1], axis=1)
    slow = _slow_times(timeline, ratio)
    stumble = _stumbles(timeline, slow, handoff[:, 0])
    return Costs(gpu, np.where(handoff > 0, 0, late), handoff, ratio, slow, stumble, batch)


def _slow_times(timeline: Timeline, ratio: Floats) -> Floats:
    """A host may become slow in the middle of a bin: those beside it count too."""
    around = [np.clip(timeline.bins + step, 0, len(ratio) - 1) for step in (-1, 0, 1)]
    return np.asarray(np.max([ratio[bins, timeline.graph] for bins in around], axis=0) * timeline.round_gpu)


def _stumbles(timeline: Timeline, slow: Floats, handoff: Floats) -> Ints:
    usual = handoff[np.clip(timeline.bins, 0, len(handoff) - 1)]
    beyond_slow = np.maximum(timeline.host - SLOW_SCATTER * slow, 0)
    stumble = np.where(slow > 0, np.minimum(timeline.gap, beyond_slow), timeline.gap - usual)
    return np.maximum(stumble, 0).astype(np.int64)


class _Levels:
    """Median GPU times by graph, each graph's history cut where its level changed."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        rows = [np.flatnonzero(timeline.graph == graph) for graph in range(len(timeline.names))]
        self.started = [timeline.started[of_graph] for of_graph in rows]
        self.gpu = [timeline.round_gpu[of_graph].astype(np.float64) for of_graph in rows]
        self.cuts = [[0, *(place for place, _ in steps_of(gpu)), len(gpu)] for gpu in self.gpu]
        self.changed = any(len(cuts) > 2 for cuts in self.cuts)
        """Without any change of level the clock has run evenly."""
        self._clocks: dict[tuple[int, int, int], float] = {}
        self.medians = [
            [float(np.median(gpu[a:b])) for a, b in pairwise(cuts) if b > a]
            for gpu, cuts in zip(self.gpu, self.cuts, strict=True)
        ]

    def gpu_times(self) -> Floats:
        """By bin of the cell and graph."""
        bins = int(self.timeline.bins[self.timeline.in_cell].max()) + 1
        middles = [
            self.timeline.since_ns + bin_ * self.timeline.bin_ns + self.timeline.bin_ns // 2 for bin_ in range(bins)
        ]
        return np.array([[self._level(graph, at) for graph in range(len(self.gpu))] for at in middles])

    def _level(self, graph: int, at_ns: int) -> float:
        """Median of the nearest executions at the same level, brought to the clock of this instant."""
        started, gpu = self.started[graph], self.gpu[graph]
        if not len(gpu):
            return np.nan
        nearest = self._nearest(graph, at_ns)
        low, high = self._segment(graph, nearest)
        low = max(low, min(nearest - SAMPLES // 2, high - SAMPLES))
        high = min(high, low + SAMPLES)
        if not self.changed or max(at_ns - started[low], started[high - 1] - at_ns) <= FRESH_NS:
            return float(np.median(gpu[low:high]))
        then, which = np.unique(
            (started[low:high] - self.timeline.since_ns) // self.timeline.bin_ns, return_inverse=True
        )
        now = (at_ns - self.timeline.since_ns) // self.timeline.bin_ns
        clocks = np.array([self._clock_between(graph, int(bin_), now) for bin_ in then])
        return float(np.median(gpu[low:high] * clocks[which]))

    def _clock_between(self, graph: int, one: int, other: int) -> float:
        """`clock` from bin to bin, once."""
        key = graph, one, other
        if key not in self._clocks:
            since, length = self.timeline.since_ns + self.timeline.bin_ns // 2, self.timeline.bin_ns
            self._clocks[key] = self.clock(since + one * length, since + other * length, but=graph)
        return self._clocks[key]

    def clock(self, one_ns: int, other_ns: int, but: int = -1) -> float:
        """How much slower the device runs at one instant than at another before or after, as the graphs agree.

        One graph that became slower by itself is outvoted; of two that differ, the one that changed less is believed.
        """
        ratios = [
            there / here
            for graph in range(len(self.gpu))
            if graph != but
            and (here := self._level_near(graph, one_ns)) is not None
            and (there := self._level_near(graph, other_ns)) is not None
        ]
        return _consensus(np.sort(np.array(ratios)))

    def _level_near(self, graph: int, at_ns: int) -> float | None:
        """The level of a graph at an instant; `None` if it was not executed around then."""
        if not len(self.gpu[graph]):
            return None
        nearest = self._nearest(graph, at_ns)
        if abs(int(self.started[graph][nearest]) - at_ns) > WITNESS_NS:
            return None
        return self.medians[graph][bisect_right(self.cuts[graph], nearest) - 1]

    def _nearest(self, graph: int, at_ns: int) -> int:
        started = self.started[graph]
        place = int(np.searchsorted(started, at_ns))
        if place == len(started) or (place and at_ns - started[place - 1] < started[place] - at_ns):
            place -= 1
        return place

    def _segment(self, graph: int, place: int) -> tuple[int, int]:
        cuts = self.cuts[graph]
        segment = bisect_right(cuts, place)
        return cuts[segment - 1], cuts[segment]


def _consensus(ratios: Floats) -> float:
    """The middle one, in doubt the one nearer to 1; noise is 1."""
    if not len(ratios):
        return 1.0
    middle = ratios[(len(ratios) - 1) // 2 : len(ratios) // 2 + 1]
    ratio = float(middle[np.argmin(np.abs(np.log(middle)))])
    return 1.0 if abs(ratio - 1) < CLOCK_NOISE else ratio


def _handoffs(timeline: Timeline, count: int) -> Floats:
    """Median idle time after a decoding round with feedback, by bin; 0 where few rounds need feedback."""
    rounds = timeline.decoding & timeline.ordinary & timeline.in_cell
    if not timeline.feedback[rounds].any():
        return np.zeros(count)
    bins, feedback, gaps = timeline.bins[rounds], timeline.feedback[rounds], timeline.gap[rounds]
    result = np.zeros(count)
    for bin_ in range(count):
        lo, hi = np.searchsorted(bins, (bin_ - 2, bin_ + 3))
        if hi > lo and feedback[lo:hi].mean() >= SYSTEMATIC_FEEDBACK:
            result[bin_] = np.median(gaps[lo:hi][feedback[lo:hi]])
    return result
