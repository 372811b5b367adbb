"""What each graph truly costs, half-second by half-second: GPU time at the present clock + the idle time it really causes."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from queries.findings.timeline import Floats, Ints, Timeline

SAMPLES: Final = 24
"""Executions, the nearest in time, whose median GPU time is a graph's cost."""
REFERENCE_SAMPLES: Final = 2
"""Executions that a graph needs near an instant to witness how fast the clock runs."""
CLOCK_NOISE: Final = 0.006
"""Changes of the clock below this are noise."""
LATE_ROUNDS: Final = 6
"""Rounds near an instant from which their host times are enough: of the graph itself, else of any of its kind."""
RUN_ROUNDS: Final = 9
"""Else: so many of the last rounds of its kind."""
RUN_ROUNDS_MIN: Final = 5
"""Of fewer rounds all must be late."""
LATE_ABOVE: Final = 1.02
"""Host time over GPU time from which a round is late."""
LATE_SHARE: Final = 0.5
LATE_SCATTER_MAX: Final = 0.2
"""Standard deviation of the logarithm of late host times up to which they are one slow host; stumbles scatter more."""
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
    clock: Floats
    """By bin: how slow the device runs, over how it ran in the first one."""
    late_ratio: Floats
    """Host time over GPU time where the host is systematically late; else 0."""
    stumble: Ints
    """By execution of the timeline: idle time before it that neither a slow host nor a handoff explains, in ns."""

    @property
    def total(self) -> Floats:
        """GPU time + idle time."""
        return self.gpu + np.maximum(self.late, self.handoff)


def costs_of(timeline: Timeline) -> Costs:
    """The true costs over a timeline."""
    medians = _Medians(timeline)
    gpu = medians.levels()
    ratio = _late_ratios(timeline, gpu)
    late = np.where(ratio > 0, (ratio - 1) * gpu, 0)
    handoff = np.repeat(_handoffs(timeline, len(gpu))[:, None], gpu.shape[1], axis=1)
    first = medians.first_bin
    clock = np.array([medians.clock(-first, bin_ - first) for bin_ in range(len(gpu))])
    stumble = _stumbles(timeline, ratio, handoff[:, 0])
    return Costs(gpu, np.where(handoff > 0, 0, late), handoff, clock, ratio, stumble)


def _stumbles(timeline: Timeline, ratio: Floats, handoff: Floats) -> Ints:
    bins = np.clip(timeline.bins, 0, len(ratio) - 1)
    slow = ratio[bins, timeline.graph] * timeline.gpu
    beyond_slow = np.maximum(timeline.host - SLOW_SCATTER * slow, 0)
    usual = handoff[bins]
    stumble = np.where(slow > 0, np.minimum(timeline.gap, beyond_slow), timeline.gap - usual)
    return np.maximum(stumble, 0).astype(np.int64)


class _Medians:
    """Median GPU times by bin and graph, the bins before the cell included."""

    def __init__(self, timeline: Timeline) -> None:
        self.graphs = len(timeline.names)
        self.first_bin = int(timeline.bins.min())
        self.bins = int(timeline.bins[timeline.in_cell].max()) + 1 - self.first_bin
        where = (timeline.bins - self.first_bin) * self.graphs + timeline.graph
        order = np.argsort(where, kind="stable")
        filled, starts = np.unique(where[order], return_index=True)
        samples = np.split(timeline.gpu[order].astype(np.float64), starts[1:])
        self.samples = dict(zip(filled.tolist(), samples, strict=True))
        self.filled = [np.unique(filled[filled % self.graphs == graph] // self.graphs) for graph in range(self.graphs)]
        self._near: dict[int, Floats] = {}
        self._clock: dict[tuple[int, int], float] = {}

    def levels(self) -> Floats:
        """By bin of the cell and graph."""
        bins = range(-self.first_bin, self.bins)
        return np.array([[self._level(bin_, graph) for graph in range(self.graphs)] for bin_ in bins])

    def _level(self, bin_: int, graph: int) -> float:
        """Median of the nearest executions, each brought to the clock of this bin."""
        filled = self.filled[graph]
        nearest = filled[np.argsort(np.abs(filled - bin_), kind="stable")]
        found: list[Floats] = []
        for other in nearest.tolist():
            found.append(self.samples[other * self.graphs + graph] * self.clock(other, bin_))
            if sum(map(len, found)) >= SAMPLES:
                break
        return float(np.median(np.concatenate(found))) if found else np.nan

    def clock(self, one: int, other: int) -> float:
        """How much slower the device runs in bin `other` than in bin `one`, as all graphs agree.

        One graph that became slower by itself is outvoted; of two that differ, the one that changed less is believed.
        """
        if abs(one - other) <= 1:
            return 1.0
        if (one, other) not in self._clock:
            ratios = np.sort(self._near_medians(other) / self._near_medians(one))
            ratios = ratios[~np.isnan(ratios)]
            self._clock[one, other] = _consensus(ratios)
        return self._clock[one, other]

    def _near_medians(self, bin_: int) -> Floats:
        """Median GPU time of each graph within one bin of this one."""
        if bin_ not in self._near:
            medians = np.full(self.graphs, np.nan)
            for graph in range(self.graphs):
                keys = (near * self.graphs + graph for near in (bin_ - 1, bin_, bin_ + 1))
                samples = [self.samples[key] for key in keys if key in self.samples]
                if sum(map(len, samples)) >= REFERENCE_SAMPLES:
                    medians[graph] = np.median(np.concatenate(samples))
            self._near[bin_] = medians
        return self._near[bin_]


def _consensus(ratios: Floats) -> float:
    """The middle one, in doubt the one nearer to 1; noise is 1."""
    if not len(ratios):
        return 1.0
    middle = ratios[(len(ratios) - 1) // 2 : len(ratios) // 2 + 1]
    ratio = float(middle[np.argmin(np.abs(np.log(middle)))])
    return 1.0 if abs(ratio - 1) < CLOCK_NOISE else ratio


def _late_ratios(timeline: Timeline, gpu: Floats) -> Floats:
    """Host time over GPU time where it is systematic, by bin and graph; else 0."""
    known = (timeline.host >= 0) & timeline.decoding & ~timeline.idle
    known[1:] &= ~timeline.feedback[:-1]
    host, bins, graphs = timeline.host[known], timeline.bins[known], timeline.graph[known]
    speculative = timeline.speculative[known]
    clipped = np.clip(bins, 0, len(gpu) - 1)
    ratios = host / gpu[clipped, graphs]
    if not (ratios > LATE_ABOVE).any():
        return np.zeros_like(gpu)
    kinds = {int(g): bool(s) for g, s in zip(graphs, speculative, strict=True)}
    result = np.zeros_like(gpu)
    for graph, is_speculative in kinds.items():
        own = graphs == graph
        same = speculative == is_speculative
        for bin_ in range(len(gpu)):
            lo, hi = np.searchsorted(bins, (bin_ - 1, bin_ + 2))
            near = (ratios[lo:hi][own[lo:hi]], ratios[lo:hi][same[lo:hi]])
            enough = (samples for samples in near if len(samples) >= LATE_ROUNDS)
            result[bin_, graph] = _systematic(next(enough, ratios[:hi][same[:hi]][-RUN_ROUNDS:]))
    return result


def _systematic(ratios: Floats) -> float:
    """The median of late host times over GPU times, if they are one slow host; else 0.

    A few rounds that were late without exception are taken for one: a graph hardly ever run must not look cheap.
    """
    late = ratios[ratios > LATE_ABOVE]
    if not len(late) or len(late) < (LATE_SHARE if len(ratios) >= RUN_ROUNDS_MIN else 1) * len(ratios):
        return 0.0
    logs = np.log(late)
    scatter = 1.4826 * float(np.median(np.abs(logs - np.median(logs))))
    return float(np.median(late)) if scatter <= LATE_SCATTER_MAX else 0.0


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
