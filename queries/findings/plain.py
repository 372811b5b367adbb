"""Being in plain decode: how long, whether rightly, what led there and what ended it."""

from typing import Final

import numpy as np

from engine_hooks.contract.names import Purpose
from queries.findings.decisions import Decisions
from queries.findings.findings import BeingInPlain, EndedBy, Ending, PlainSpan, Poison, Verdict
from queries.findings.moves import Estimates
from queries.findings.timeline import Bools, Floats, Timeline
from queries.stuck import stuck_bounds

SPAN_NS: Final = 1_000_000_000
"""Shorter stretches of plain decode are no spans."""
RIGHT_FROM: Final = 0.9
WRONG_UP_TO: Final = 0.1
"""Share of the time in plain decode that was truly best, from which the verdict is right, and up to which wrong."""
MOSTLY: Final = 0.5


def being_in_plain(timeline: Timeline, decisions: Decisions | None, estimates: Estimates | None) -> BeingInPlain:
    """The verdict on a cell's plain decode. Where the alternatives were not recorded nothing is called wrong."""
    ordinary = timeline.in_cell & timeline.ordinary & timeline.decoding
    # The wall time as recorded, as docs/metrics.md has it: `gap` is cut to what the device really idled.
    plain_ns = int(timeline.wall[ordinary & ~timeline.speculative].sum())
    decoding_ns = int(timeline.wall[ordinary].sum())
    fraction = plain_ns / decoding_ns if decoding_ns else 0.0
    choice = bool(timeline.speculative.any()) or (decisions is not None and _speculative_candidates(decisions))
    stuck = stuck_bounds().stuck(plain_ns, decoding_ns, can_speculate=choice)
    if not choice:
        return BeingInPlain(Verdict.NO_CHOICE, fraction, stuck, 1.0 if plain_ns else None, ())
    if decisions is None or estimates is None:
        return BeingInPlain(Verdict.UNKNOWN if plain_ns else Verdict.NONE, fraction, stuck, None, ())
    spans = tuple(_spans(decisions, estimates))
    best = _truly_best_fraction(decisions, decisions.in_plain)
    verdict, unmeasured = _verdict(best, stuck, spans), _unmeasured(decisions, decisions.in_plain)
    if unmeasured and (spans or stuck):
        return BeingInPlain(Verdict.UNKNOWN, fraction, stuck, None, spans, unmeasured)
    return BeingInPlain(verdict, fraction, stuck, best, spans)


def _speculative_candidates(decisions: Decisions) -> bool:
    candidates = np.asarray(np.isfinite(decisions.estimates).any(axis=0))
    candidates[decisions.plain] = False
    return bool(candidates.any())


def _verdict(best: float | None, stuck: bool, spans: tuple[PlainSpan, ...]) -> Verdict:
    if best is None or not (spans or stuck):
        return Verdict.NONE
    if best >= RIGHT_FROM:
        return Verdict.RIGHT
    return Verdict.WRONG if best <= WRONG_UP_TO else Verdict.MIXED


def _unmeasured(decisions: Decisions, among: Bools) -> str:
    """What is not known of most of the time of these decisions; '' where enough is."""
    weights, untold = decisions.weights_ns, decisions.untold.any(axis=1) & among
    if weights[untold].sum() <= MOSTLY * weights[among].sum():
        return ""
    row = int(decisions.row[np.flatnonzero(untold)[0]])
    graphs = ", ".join(
        decisions.timeline.names[graph] for graph in np.flatnonzero(decisions.untold[untold].any(axis=0))
    )
    return f"the cost of {graphs} at {decisions.timeline.executions[row].batch_lanes} lanes was not measured"


def _truly_best_fraction(decisions: Decisions, among: Bools) -> float | None:
    among = among & ~decisions.untold.any(axis=1)
    weights = decisions.weights_ns[among]
    return float(weights @ decisions.truly_best[among]) / float(weights.sum()) if weights.sum() else None


def _spans(decisions: Decisions, estimates: Estimates) -> list[PlainSpan]:
    """Uninterrupted plain decode: refreshes, probes and prefills do not interrupt it, and are no decisions here."""
    timeline, in_plain = decisions.timeline, decisions.in_plain
    edges = np.flatnonzero(np.diff(np.concatenate(([False], in_plain, [False])).astype(np.int8)))
    spans = []
    for first, after in edges.reshape(-1, 2).tolist():
        since = int(timeline.started[decisions.row[first]])
        until = int(timeline.observed[decisions.row[after - 1]])
        if until - since >= SPAN_NS:
            spans.append(_span(decisions, estimates, first, after))
    return spans


def _span(decisions: Decisions, estimates: Estimates, first: int, after: int) -> PlainSpan:
    timeline, part = decisions.timeline, np.arange(len(decisions.row))
    among = (part >= first) & (part < after)
    best = _truly_best_fraction(decisions, among) or 0.0
    believed, believed_other = _margin(decisions, decisions.believed_rates, part == first)
    true, true_other = _margin(decisions, decisions.rates, among)
    expected, expected_other = _margin(decisions, decisions.believed_tokens / decisions.costs, among)
    right, unmeasured = best >= MOSTLY, _unmeasured(decisions, among)
    poisons, before = ((), False) if right or unmeasured else _poisoned_by(decisions, estimates, first)
    return PlainSpan(
        from_sequence=int(timeline.sequence[decisions.row[first]]),
        to_sequence=int(timeline.sequence[decisions.row[after - 1]]),
        since_ns=int(timeline.started[decisions.row[first]]),
        until_ns=int(timeline.observed[decisions.row[after - 1]]),
        decisions=after - first,
        right=right,
        truly_best_fraction=best,
        believed_margin_percent=believed,
        believed_best_other=believed_other,
        true_margin_percent=true,
        truly_best_other=true_other,
        tokens_lost=float(decisions.tokens_lost[among].sum()),
        poisoned_by=poisons,
        poisoned_before=before,
        ended=_ending(decisions, estimates, after),
        unmeasured=unmeasured,
        expected_margin_percent=expected,
        expected_best_other=expected_other,
    )


def _margin(decisions: Decisions, rates: Floats, among: Bools) -> tuple[float, str]:
    """Mean lead of the chosen graph over the best other, in per cent, and which that most often was."""
    chosen, others = decisions.chosen[among], rates[among]
    rows = np.arange(len(chosen))
    own = others[rows, chosen]
    others = np.where(np.isnan(others), -np.inf, others)
    others[rows, chosen] = -np.inf
    best = others.argmax(axis=1)
    lead = 100 * (own / others[rows, best] - 1)
    return float(lead.mean()), decisions.timeline.names[int(np.bincount(best).argmax())]


def _poisoned_by(decisions: Decisions, estimates: Estimates, decision: int) -> tuple[tuple[Poison, ...], bool]:
    """What had lifted the estimates of graphs truly better than the chosen one, at a decision."""
    rates = decisions.rates[decision]
    with np.errstate(invalid="ignore"):
        better = rates > rates[decisions.chosen[decision]]
    found: list[Poison] = []
    before = False
    for graph in np.flatnonzero(better & estimates.inflated[decision]).tolist():
        poisons, earlier = estimates.poisons_of(graph, decision)
        found += poisons
        before |= earlier
    return tuple(sorted(found, key=lambda poison: poison.at_ns)), before


def _ending(decisions: Decisions, estimates: Estimates, after: int) -> Ending:
    """Why the decision after a stretch was no longer plain."""
    if after >= len(decisions.row):
        return Ending(EndedBy.STILL_GOING)
    timeline = decisions.timeline
    for graph in decisions.plain.tolist():
        for known, poison in estimates.lifts.get(graph, []):
            if known == after:
                return Ending(EndedBy.PLAIN_INFLATED, poison.graph, poison.sequence)
    first, last = int(decisions.row[max(after - 3, 0)]), int(decisions.row[after])
    for row in range(first, last):
        execution = timeline.executions[row]
        chosen = timeline.graph[row] == decisions.chosen[after]
        if execution.graph_purpose == Purpose.REFRESH and chosen:
            return Ending(EndedBy.REFRESH, execution.graph_name, execution.graph_sequence)
    return Ending(EndedBy.CHANGED)
