"""Estimate inflation: delays lifted estimates, and so moved decisions to worse graphs."""

from math import erf, sqrt
from typing import Final

import numpy as np

from engine_hooks.commands.counting import counted
from queries.findings.decisions import WORSE_BY, Decisions
from queries.findings.evidence import Witness, ms
from queries.findings.findings import (
    BeingInPlain,
    EstimateInflation,
    Evidence,
    Kind,
    PlainSpan,
    Poison,
    Turned,
    Verdict,
)
from queries.findings.moves import Estimates
from queries.findings.timeline import Bools, Ints

FAULT_S: Final = 1.0
"""Seconds of decisions turned to worse graphs from which inflation is a fault."""
STUCK_SHARE: Final = 0.5
"""Share of the time in plain decode that inflation must have caused for it to be what keeps the cell there."""
COST_NOISE: Final = 0.003
"""Relative error of a true cost."""
TOKENS_NOISE: Final = 0.5
"""Relative standard deviation of the tokens of one lane in one speculative round."""
UNRECORDED: Final = 0.85
"""Factor on the confidence where no recorded execution accounts for an inflated estimate."""


def inflation_of(
    decisions: Decisions, estimates: Estimates, plain: BeingInPlain, witness: Witness
) -> EstimateInflation | None:
    """The finding; `None` where inflated estimates changed nothing for the worse for as long as a second."""
    turned, better = turned_decisions(decisions, estimates)
    if not turned.any():
        return None
    poisons, before = _poisons(estimates, turned, better)
    if not poisons and not before:
        return None
    others = _also_needed(decisions, estimates, turned, poisons)
    weights = decisions.weights_ns
    seconds = float(weights[turned].sum()) / 1e9
    if seconds < FAULT_S:
        return None
    timeline, rows = decisions.timeline, np.arange(len(turned))
    gains = (decisions.rates[rows, better] - decisions.of_chosen(decisions.rates)) * weights
    at = decisions.row[turned]
    spans = tuple(span for span in plain.spans if not span.right and (span.poisoned_by or span.poisoned_before))
    stuck = _stuck(decisions, turned, plain)
    groups = _groups(decisions, turned, better, gains)
    return EstimateInflation(
        kind=Kind.ESTIMATE_INFLATION,
        since_ns=int(timeline.started[at[0]]),
        until_ns=int(timeline.observed[at[-1]]),
        fraction=min(seconds / timeline.seconds, 1.0),
        loss_percent=100 * float(gains[turned].sum()) / float(decisions.best_rates @ weights),
        tokens_lost=float(gains[turned].sum()),
        confidence=_confidence(decisions, turned, better, seconds) * (1.0 if _recorded(poisons) else UNRECORDED),
        evidence=tuple(_evidence(_of_moves(poisons, others, before, witness), groups, spans, witness)),
        poisons=poisons,
        poisoned_before=before,
        turned=groups,
        decisions_turned=int(turned.sum()),
        seconds_turned=seconds,
        spans=spans,
        stuck=stuck,
        also_poisons=others,
    )


def turned_decisions(decisions: Decisions, estimates: Estimates) -> tuple[Bools, Ints]:
    """Which decisions inflated estimates turned for the worse, and which graph each would have taken.

    Charged no more than true cost and the model's usual overhead, another graph would have won, by what the
    scheduler expected of it; and it is truly better than the chosen one by more than 1 %.
    """
    fairly = np.fmin(decisions.estimates, estimates.fair)
    rates = decisions.believed_tokens / fairly
    better = np.where(np.isnan(rates), -np.inf, rates).argmax(axis=1)
    rows = np.arange(len(better))
    true = decisions.rates
    truly = true[rows, better] > (1 + WORSE_BY) * decisions.of_chosen(true)
    return (better != decisions.chosen) & truly & estimates.inflated[rows, better], better


def _poisons(estimates: Estimates, turned: Bools, better: Ints) -> tuple[tuple[Poison, ...], bool]:
    """What had inflated the graphs that decisions were turned from."""
    found: dict[tuple[str, int], Poison] = {}
    before = False
    for graph in np.unique(better[turned]).tolist():
        poisons, earlier = _poisons_at(estimates, graph, np.flatnonzero(turned & (better == graph)))
        found |= poisons
        before |= earlier
    return tuple(sorted(found.values(), key=lambda poison: poison.at_ns)), before


def _poisons_at(estimates: Estimates, graph: int, of_graph: Ints) -> tuple[dict[tuple[str, int], Poison], bool]:
    """What had inflated one graph at these decisions; whether that was before the first."""
    found: dict[tuple[str, int], Poison] = {}
    before = False
    starts = of_graph[np.diff(of_graph, prepend=-2) > 1]
    lifted = [known for known, _ in estimates.lifts.get(graph, [])]
    after_lifts = of_graph[np.searchsorted(of_graph, [k for k in lifted if k <= of_graph[-1]])]
    for decision in np.union1d(starts, after_lifts).tolist():
        poisons, earlier = estimates.poisons_of(graph, decision)
        found |= {(poison.graph, poison.at_ns): poison for poison in poisons}
        before |= earlier
    return found, before


def _also_needed(
    decisions: Decisions, estimates: Estimates, turned: Bools, named: tuple[Poison, ...]
) -> tuple[Poison, ...]:
    """What had inflated the graphs that would have won over the chosen one next, had they alone been charged fairly.

    They are truly better than it too: without both, decisions were turned to them only, or not at all.
    """
    own = np.arange(len(turned)), decisions.chosen
    with np.errstate(invalid="ignore"):
        would_win = decisions.believed_tokens / estimates.fair > decisions.believed_rates[own][:, None]
        better = decisions.rates > (1 + WORSE_BY) * decisions.rates[own][:, None]
    among = turned[:, None] & would_win & better & estimates.inflated
    found: dict[tuple[str, int], Poison] = {}
    for graph in np.flatnonzero(among.any(axis=0)).tolist():
        found |= _poisons_at(estimates, graph, np.flatnonzero(among[:, graph]))[0]
    known = {(poison.graph, poison.at_ns) for poison in named}
    return tuple(sorted((one for key, one in found.items() if key not in known), key=lambda poison: poison.at_ns))


def _recorded(poisons: tuple[Poison, ...]) -> bool:
    return any(poison.sequence is not None for poison in poisons)


def _stuck(decisions: Decisions, turned: Bools, plain: BeingInPlain) -> bool:
    """Never where plain decode was right: then no decision for it is turned, nor is the verdict wrong."""
    if not plain.stuck or plain.verdict not in (Verdict.WRONG, Verdict.MIXED):
        return False
    weights = decisions.weights_ns
    in_plain = decisions.in_plain
    return bool(weights[turned & in_plain].sum() >= STUCK_SHARE * weights[in_plain].sum())


def _groups(decisions: Decisions, turned: Bools, better: Ints, gains: np.ndarray) -> tuple[Turned, ...]:
    names, groups = decisions.timeline.names, []
    for graph, chosen in sorted(set(zip(better[turned].tolist(), decisions.chosen[turned].tolist(), strict=True))):
        among = turned & (better == graph) & (decisions.chosen == chosen)
        seconds = float(decisions.weights_ns[among].sum()) / 1e9
        groups.append(Turned(names[graph], names[chosen], int(among.sum()), seconds, float(gains[among].sum())))
    return tuple(sorted(groups, key=lambda group: -group.tokens_lost))


def _confidence(decisions: Decisions, turned: Bools, better: Ints, seconds: float) -> float:
    """The chance that the decisions turned are worse by over 1 %, and for over a second, given the scatter."""
    rows = np.flatnonzero(turned)
    rates = decisions.rates
    gain = float(np.average(rates[rows, better[rows]] / rates[rows, decisions.chosen[rows]] - 1))
    error = sqrt(2 * COST_NOISE**2 + TOKENS_NOISE**2 / max(decisions.trials, 1.0))
    return _normal((gain - WORSE_BY) / error) * _normal((seconds - FAULT_S) / (0.3 * FAULT_S))


def _normal(z: float) -> float:
    return (1 + erf(z / sqrt(2))) / 2


def _evidence(
    moves: list[Evidence], groups: tuple[Turned, ...], spans: tuple[PlainSpan, ...], witness: Witness
) -> list[Evidence]:
    return [
        *moves,
        *(_of_turned(group, witness) for group in groups),
        *(_of_span(span, witness) for span in spans),
    ]


def _of_moves(
    poisons: tuple[Poison, ...], others: tuple[Poison, ...], before: bool, witness: Witness
) -> list[Evidence]:
    return [
        *(_of_poison(poison, witness) for poison in poisons),
        *(_of_poison(poison, witness, besides=True) for poison in others),
        *([_of_before(witness)] if before else []),
    ]


def _of_poison(poison: Poison, witness: Witness, *, besides: bool = False) -> Evidence:
    rose = f"the estimate of {poison.graph} rose from {ms(poison.estimate_before_ns)} to {ms(poison.estimate_after_ns)}"
    if besides:
        rose += ", which charged fairly would have won as well"
    if poison.sequence is None:
        says = f"{rose} though no recorded execution accounts for it: the one that lifted it was lost."
    else:
        says = (
            f"Execution {poison.sequence} of {poison.graph} held up the pipeline for {ms(poison.wall_time_ns)} with "
            f"{ms(poison.gpu_time_ns)} on the GPU, submitted at queue depth {poison.queue_depth}: {rose}."
        )
    return witness.that(
        says[0].upper() + says[1:],
        "estimate_moves",
        "executions",
        sequences=(poison.sequence,),
        graph_wall_time_ns=(poison.wall_time_ns or 0, "ns"),
        graph_gpu_time_ns=(poison.gpu_time_ns or 0, "ns"),
        estimate_before_ns=(poison.estimate_before_ns, "ns"),
        estimate_after_ns=(poison.estimate_after_ns, "ns"),
    )


def _of_before(witness: Witness) -> Evidence:
    return witness.that("An estimate was inflated already when the cell begins.", "estimate_history")


def _of_turned(group: Turned, witness: Witness) -> Evidence:
    return witness.that(
        f"{counted(group.decisions, 'decision')} over {group.seconds:.1f} s took {group.to_graph} in place of {group.from_graph}, "
        f"which at its true cost would have won: {group.tokens_lost:,.0f} tokens lost.",
        "turned_decisions",
        "estimate_inflation",
        decisions=(group.decisions, "decisions"),
        seconds=(group.seconds, "s"),
        tokens_lost=(group.tokens_lost, "tokens"),
    )


def _of_span(span: PlainSpan, witness: Witness) -> Evidence:
    return witness.that(
        f"Plain decode began to win with execution {span.from_sequence}, by {span.believed_margin_percent:.1f} % as "
        f"believed then; it lasted {counted(span.decisions, 'decision')}, {span.seconds:.1f} s, and truly lay "
        f"{-span.true_margin_percent:.1f} % behind {span.truly_best_other} over them; its end: {span.ended.of_a_cell}.",
        "candidates",
        "stuck_plain",
        "decision_margins",
        sequences=(span.from_sequence, span.to_sequence, span.ended.sequence),
        believed_margin_percent=(span.believed_margin_percent, "%"),
        true_margin_percent=(span.true_margin_percent, "%"),
        decisions=(span.decisions, "decisions"),
        seconds=(span.seconds, "s"),
        tokens_lost=(span.tokens_lost, "tokens"),
    )
