"""How often drafts are really accepted, stretch by stretch, and what each graph can be expected to emit with that."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from queries.findings.timeline import Bools, Floats, Ints, Timeline

ROUNDS_MIN: Final = 8
"""Speculative rounds from which their acceptance is believed, not the scheduler's."""
CHANGE_Z: Final = 4.5
"""Significance from which acceptance has changed: below, one rate is measured over the whole stretch."""
CHANGE_MIN: Final = 0.02
SEGMENTS_MAX: Final = 8
REMEMBERED_TRIALS: Final = 2500
"""First drafts of a lane that the scheduler's own memory is taken to be worth: both measured and remembered err."""
REMEMBERED_OFF: Final = 0.03
"""Where the two differ by more, the memory lags behind a change, and counts for nothing."""
SHAPE_TOLERANCE: Final = 0.03
"""Expectations that differ by less from one rate at every depth are taken as one rate."""


@dataclass(frozen=True)
class Stretch:
    """Speculative rounds under one acceptance."""

    from_ns: int
    """Submission of its first speculative round."""
    rounds: int
    acceptance: float
    """Chance that a draft is accepted once all before it in its lane were, taken as the same at every depth."""


def emitted_per_lane(acceptance: Floats | float, drafts: Floats | float) -> Floats:
    """Expected tokens of a lane with so many drafts; the fraction of `drafts` is the share of lanes with one more."""
    accepted, drafts = np.broadcast_arrays(np.asarray(acceptance, float), np.asarray(drafts, float))
    total, reached = np.ones(accepted.shape), np.ones(accepted.shape)
    for depth in range(int(np.ceil(drafts.max(initial=0)))):
        reached = reached * accepted
        total = total + reached * np.clip(drafts - depth, 0, 1)
    return total


def acceptance_giving(tokens_per_lane: Floats, drafts: Floats) -> Floats:
    """The acceptance at which a lane is expected to emit that much."""
    low, high = np.zeros(np.shape(tokens_per_lane)), np.ones(np.shape(tokens_per_lane))
    for _ in range(30):
        middle = (low + high) / 2
        more = emitted_per_lane(middle, drafts) < tokens_per_lane
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.asarray((low + high) / 2)


def stretches_of(timeline: Timeline) -> list[Stretch]:
    """Stretches of one acceptance each, in order; the first counts for what is before it. None without drafts."""
    rows = [
        (e.started_at, e.batch_lanes, e.batch_tokens_drafted, e.batch_tokens_accepted)
        for e in timeline.executions
        if e.batch_tokens_drafted and e.batch_lanes and e.batch_tokens_accepted is not None
    ]
    if not rows:
        return []
    started, lanes, drafted, accepted = np.array(rows, dtype=np.int64).T
    drafts = drafted / lanes
    everywhere = _rate(lanes, drafts, accepted)
    expected = lanes * (emitted_per_lane(everywhere, drafts) - 1)
    cuts = _changes(accepted / np.maximum(expected, 1e-9), 0, len(rows), SEGMENTS_MAX)
    edges = [0, *cuts, len(rows)]
    return [Stretch(int(started[a]), b - a, _rate(lanes[a:b], drafts[a:b], accepted[a:b])) for a, b in pairwise(edges)]


def _rate(lanes: Ints, drafts: Floats, accepted: Ints) -> float:
    """The one acceptance under which as many drafts are accepted as were."""
    shapes, which = np.unique(drafts, return_inverse=True)
    weights = np.bincount(which, weights=lanes)
    low, high, wanted = 0.0, 1.0, float(accepted.sum())
    for _ in range(30):
        middle = (low + high) / 2
        if float(weights @ (emitted_per_lane(middle, shapes) - 1)) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _changes(values: Floats, low: int, high: int, splits: int) -> list[int]:
    """Where the mean changes, by binary segmentation."""
    count = high - low
    if count < 2 * ROUNDS_MIN or splits < 2:
        return []
    part = values[low:high]
    sums = np.cumsum(part - part.mean())[:-1]
    places = np.arange(1, count)
    spread = part.std() or 1e-9
    scores = np.abs(sums) / (spread * np.sqrt(places * (count - places) / count))
    scores[: ROUNDS_MIN - 1] = scores[count - ROUNDS_MIN :] = 0
    best = int(np.argmax(scores))
    place = low + best + 1
    step = abs(values[low:place].mean() - values[place:high].mean())
    if scores[best] < CHANGE_Z or step < CHANGE_MIN:
        return []
    return [*_changes(values, low, place, splits // 2), place, *_changes(values, place, high, splits // 2)]


def true_tokens(timeline: Timeline, stretches: list[Stretch], started: Ints, lanes: Floats, believed: Floats) -> Floats:
    """What each candidate truly can be expected to emit.

    Args:
        timeline: The executions.
        stretches: Their acceptance.
        started: Of each decision.
        lanes: Of each decision.
        believed: By decision and graph: the scheduler's expectation; NaN: no candidate.

    Returns:
        The same matrix with the measured acceptance in place of the remembered one, or between the two where they
        agree. The scheduler's is kept where too few rounds tell, and where nothing says what a graph verifies.
    """
    drafts = _drafts_per_lane(timeline, lanes, believed)
    measured = np.array([stretch.acceptance for stretch in stretches])
    rounds = np.array([stretch.rounds for stretch in stretches])
    if not len(measured) or rounds.max() < ROUNDS_MIN or np.isnan(drafts).all():
        return believed
    which = np.searchsorted([stretch.from_ns for stretch in stretches[1:]], started, side="right")
    known = np.isfinite(drafts)
    drafts = np.where(known, drafts, 0.0)
    reference = np.arange(len(drafts)), np.where(known, drafts, -1.0).argmax(axis=1)
    per_lane = believed / lanes[:, None]
    remembered = np.where(known.any(axis=1), acceptance_giving(per_lane[reference], drafts[reference]), np.nan)
    trials = rounds[which] * lanes
    weight = trials / (trials + np.where(np.abs(measured[which] - remembered) > REMEMBERED_OFF, 0, REMEMBERED_TRIALS))
    acceptance = weight * measured[which] + (1 - weight) * remembered
    result = believed.copy()
    for graph in np.flatnonzero((drafts > 0).any(axis=0)):
        with np.errstate(divide="ignore", invalid="ignore"):
            shape = (per_lane[:, graph] - 1) / (emitted_per_lane(remembered, drafts[:, graph]) - 1)
        usual = float(np.median(shape[np.isfinite(shape)])) if np.isfinite(shape).any() else 1.0
        usual = 1.0 if not abs(usual - 1) > SHAPE_TOLERANCE else usual
        tokens = lanes * (1 + usual * (emitted_per_lane(acceptance, drafts[:, graph]) - 1))
        enough: Bools = (rounds[which] >= ROUNDS_MIN) & np.isfinite(believed[:, graph]) & np.isfinite(remembered)
        enough &= drafts[:, graph] > 0
        result[enough, graph] = tokens[enough]
    return result


def _drafts_per_lane(timeline: Timeline, lanes: Floats, believed: Floats) -> Floats:
    """By decision and graph: drafts a lane, NaN where unknown. Of one budget, the more lanes share it the fewer."""
    rounds = _drafted(timeline)
    drafts = np.full(believed.shape, np.nan)
    for size in np.unique(lanes):
        rows = np.flatnonzero(lanes == size)
        drafts[rows] = _drafts_at(float(size), rounds, believed[rows])
    return drafts


def _drafted(timeline: Timeline) -> Floats:
    """Of every round with drafts: its graph, lanes, drafts a lane, and the tokens that it could verify."""
    rounds = [
        (
            graph,
            e.batch_lanes,
            e.batch_tokens_drafted / e.batch_lanes,
            max(e.batch_verification_budget or 0, e.batch_lanes + e.batch_tokens_drafted),
        )
        for graph, e in zip(timeline.graph.tolist(), timeline.executions, strict=True)
        if e.batch_tokens_drafted and e.batch_lanes
    ]
    return np.array(rounds, dtype=np.float64).reshape(-1, 4)


def _drafts_at(lanes: float, rounds: Floats, believed: Floats) -> Floats:
    """Of each graph with so many lanes: as executed, else from the expectation beside a known one."""
    drafts = np.full(believed.shape[1], np.nan)
    if not len(rounds):
        return drafts
    graph, size, each, budget = rounds.T
    at_size = size == lanes
    if not at_size.any():
        # No graph had drafts with so many: as the budgets of those that had with others would be shared.
        at_size, each = np.ones(len(size), dtype=np.bool_), np.clip(budget / lanes - 1, 0.0, each.max())
    for known in np.unique(graph[at_size]).astype(int):
        drafts[known] = np.median(each[at_size & (graph == known)])
    reference = int(np.nanargmax(drafts))
    candidates = np.isfinite(believed).any(axis=0)
    per_lane = np.full(len(drafts), np.nan)
    per_lane[candidates] = np.nanmedian((believed / lanes)[:, candidates], axis=0)
    unknown = np.flatnonzero(np.isnan(drafts) & (np.nan_to_num(per_lane) > 1.001))
    if not len(unknown):
        return drafts
    remembered = float(acceptance_giving(per_lane[reference : reference + 1], drafts[reference : reference + 1])[0])
    steps = np.arange(0, 16, 1 / 32)
    table = emitted_per_lane(remembered, steps)
    for one in unknown:
        drafts[one] = steps[min(int(np.searchsorted(table, per_lane[one])), len(steps) - 1)]
    return drafts
