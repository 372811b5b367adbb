"""What else holds of a cell: acceptance, feedback, idleness, losses, the calendar, and that plain decode is right."""

from typing import Final

import numpy as np

from engine_hooks.commands.counting import counted
from queries.findings.acceptance import Stretch
from queries.findings.batch import BatchSizes
from queries.findings.evidence import Witness
from queries.findings.findings import AcceptanceCollapse, BeingInPlain, Finding, Kind, Verdict, Waiting, tokens_short
from queries.findings.record import CellRecord
from queries.findings.timeline import IDLE_UNMARKED_NS, Timeline

COLLAPSE_MIN: Final = 0.08
"""Acceptance has collapsed when it fell by at least this much."""
FEEDBACK_SHARE: Final = 0.5
"""Share of ordinary decoding rounds with completion feedback from which a cell is bound by it."""
IDLE_MIN_NS: Final = 50_000_000
"""Shorter idleness is not worth a finding."""
AHEAD_MIN_NS: Final = 1_000_000_000
"""Arrival before completion by more than this shows a clock that is ahead ..."""
AHEAD_OF_OTHERS_NS: Final = 120_000_000_000
"""... and so does an end this long after the latest end of other engines that arrived at the same time."""
AHEAD_OTHERS_MIN: Final = 3


def acceptance_collapse_of(timeline: Timeline, stretches: list[Stretch], witness: Witness) -> AcceptanceCollapse | None:
    """The largest fall of acceptance within the cell."""
    falls = [
        (before.acceptance - after.acceptance, before, after)
        for n, before in enumerate(stretches)
        for after in stretches[n + 1 :]
        if after.from_ns >= timeline.since_ns
    ]
    fall, before, after = max(falls, key=lambda one: one[0], default=(0.0, None, None))
    if before is None or after is None or fall < COLLAPSE_MIN:
        return None
    row = int(np.searchsorted(timeline.started, after.from_ns))
    fell = next(one for one in stretches if one.from_ns > before.from_ns)
    return AcceptanceCollapse(
        kind=Kind.ACCEPTANCE_COLLAPSE,
        since_ns=fell.from_ns,
        until_ns=timeline.until_ns,
        fraction=(timeline.until_ns - fell.from_ns) / max(timeline.until_ns - timeline.since_ns, 1),
        loss_percent=0.0,
        tokens_lost=0.0,
        confidence=0.98 if min(before.rounds, after.rounds) >= 16 else 0.85,
        evidence=(
            witness.that(
                f"Of drafts whose predecessors were accepted, {100 * before.acceptance:.0f} % were accepted before "
                f"execution {int(timeline.sequence[row])}, {100 * after.acceptance:.0f} % from then on.",
                "acceptance",
                "executions",
                sequences=(int(timeline.sequence[row]),),
                acceptance_before=(before.acceptance, "fraction"),
                acceptance_after=(after.acceptance, "fraction"),
            ),
        ),
        acceptance_before=before.acceptance,
        acceptance_after=after.acceptance,
    )


def batch_changed_of(batch: BatchSizes, witness: Witness) -> Finding | None:
    """GPU times went with the batch: why some that moved are no finding."""
    timeline, rows = batch.timeline, np.flatnonzero(batch.timeline.decoding)
    changed = rows[1:][np.diff(batch.lanes[rows]) != 0]
    if not batch.matters or not len(changed):
        return None
    at_ns = int(timeline.started[changed[0]])
    low, high = int(batch.lanes[rows].min()), int(batch.lanes[rows].max())
    graph = int(np.bincount(timeline.graph[rows]).argmax())
    factor = float(batch.factors(np.array([high]))[0, graph] / batch.factors(np.array([low]))[0, graph])
    went = f"The batch changed {counted(len(changed), 'time')}, between {low} and {high} lanes"
    also = ""
    if len(changed) == 1:
        after_s = (at_ns - timeline.since_ns) / 1e9
        when = f"{after_s:.1f} s into the cell" if after_s >= 0 else f"{-after_s:.1f} s before the cell"
        went = f"The batch went from {batch.lanes[changed[0] - 1]:.0f} to {batch.lanes[changed[0]]:.0f} lanes {when}"
        also = ", so that another cause at that moment would not show"
    since_ns = max(at_ns, timeline.since_ns)
    return Finding(
        Kind.BATCH_CHANGED,
        since_ns,
        timeline.until_ns,
        (timeline.until_ns - since_ns) / max(timeline.until_ns - timeline.since_ns, 1),
        0.0,
        0.0,
        0.9 if len(changed) > 1 else 0.8,
        (
            witness.that(
                f"{went}, and GPU times with it: {timeline.names[graph]} takes {factor:.2f} times as long at {high} lanes "
                f"as at {low}. GPU times at different batch sizes are not compared{also}.",
                "executions",
                sequences=timeline.sequence[changed].tolist(),
                gpu_time_ratio=(factor, "ratio"),
            ),
        ),
    )


def feedback_bound_of(timeline: Timeline, witness: Witness) -> Waiting | None:
    """Most rounds wait for the one before to be seen to end. It costs idle time; where it is marked, nothing is wrong."""
    rounds = timeline.in_cell & timeline.ordinary & timeline.decoding
    bound = rounds & timeline.feedback
    if not rounds.any() or bound.sum() < FEEDBACK_SHARE * rounds.sum():
        return None
    is_marked = bool((rounds & timeline.needed).sum() >= FEEDBACK_SHARE * bound.sum())
    after = np.minimum(np.flatnonzero(bound) + 1, len(bound) - 1)
    idle_ns = int(timeline.gap[bound].sum() if is_marked else timeline.gap[after].sum())
    share = 0.0 if is_marked else min(idle_ns / 1e9 / timeline.seconds, 1.0)
    emitted = sum(e.batch_tokens_emitted or 0 for e in timeline.executions[int(timeline.in_cell.argmax()) :])
    says = (
        f"{int(bound.sum()):,} of {counted(int(rounds.sum()), 'ordinary decoding round')} needed completion feedback; "
        f"the device idled {idle_ns / 1e9:.2f} s for it."
    )
    if not is_marked:
        says = (
            f"After {int(bound.sum()):,} of {counted(int(rounds.sum()), 'ordinary decoding round')} the next was "
            f"submitted only once it had been seen to end, and the device idled {idle_ns / 1e9:.2f} s meanwhile; whether "
            "its results were needed or the host was late is not marked, so the record cannot tell."
        )
    return Waiting(
        Kind.FEEDBACK_BOUND,
        int(timeline.started[bound][0]),
        int(timeline.observed[bound][-1]),
        float(bound.sum() / rounds.sum()),
        100 * share,
        tokens_short(emitted, share),
        0.99,
        (
            witness.that(
                says,
                "handoffs",
                "gpu_idle",
                rounds=(float(bound.sum()), "rounds"),
                idle_gap_ns=(idle_ns, "ns"),
            ),
        ),
        is_marked=is_marked,
    )


def idle_of(timeline: Timeline, witness: Witness) -> Finding | None:
    """The engine had no work between two executions of the cell."""
    rows = np.flatnonzero(timeline.idle & timeline.in_cell)
    rows = rows[rows > 0]
    idle_ns = timeline.started[rows] - timeline.observed[rows - 1]
    is_marked = np.array([timeline.executions[row].graph_after_idle for row in rows.tolist()], dtype=np.bool_)
    if not (idle_ns >= IDLE_MIN_NS).any():
        return None
    told = ~is_marked | (idle_ns >= IDLE_MIN_NS)
    rows, idle_ns, is_marked = rows[told], idle_ns[told], is_marked[told]
    total = int(idle_ns.sum())
    what = f"The engine had no work for {total / 1e6:.1f} ms before {len(rows):,} of its executions. "
    alike = bool((~is_marked & (idle_ns < IDLE_UNMARKED_NS)).any())
    if alike:
        what = (
            f"Nothing was in flight for {total / 1e6:.1f} ms before {counted(len(rows), 'execution')} of a free host: whether it had "
            "no work or was held up, the record cannot tell, for none is marked. "
        )
    return Finding(
        Kind.IDLE,
        int(timeline.observed[rows[0] - 1]),
        int(timeline.started[rows[-1]]),
        min(total / 1e9 / timeline.seconds, 1.0),
        0.0,
        0.0,
        0.99 if is_marked.all() else 0.6 if alike else 0.85,
        (
            witness.that(
                f"{what}That is no time of a step and no idleness of a busy device.",
                "gpu_idle",
                sequences=timeline.sequence[rows].tolist(),
                idle_ns=(total, "ns"),
            ),
        ),
    )


def executions_lost_of(timeline: Timeline, witness: Witness) -> Finding | None:
    """Gaps of the sequence within the cell."""
    sequence = timeline.sequence[timeline.in_cell]
    holes = np.flatnonzero(np.diff(sequence) > 1)
    if not len(holes):
        return None
    lost = int((np.diff(sequence) - 1).sum())
    started = timeline.started[timeline.in_cell]
    share = lost / (lost + len(sequence))
    return Finding(
        Kind.EXECUTIONS_LOST,
        int(started[holes[0]]),
        int(started[holes[-1] + 1]),
        share,
        0.0,
        0.0,
        1.0,
        (
            witness.that(
                f"Never recorded: {lost:,} of {counted(lost + len(sequence), 'execution')}.",
                "sequence_gaps",
                sequences=(sequence[holes] + 1).tolist(),
                executions_lost=(lost, "executions"),
            ),
        ),
    )


def clock_ahead_of(record: CellRecord, timeline: Timeline, witness: Witness) -> Finding | None:
    """The host's calendar clock is ahead: of the arrival, or of all other hosts."""
    ahead_ns, confidence, than = 0, 0.0, ""
    if record.arrival_lag_ns is not None and -record.arrival_lag_ns > AHEAD_MIN_NS:
        ahead_ns, confidence, than = -record.arrival_lag_ns, 0.99, "their own arrival at the collector"
    elif len(record.others_until_ns) >= AHEAD_OTHERS_MIN:
        ahead_ns = timeline.until_ns - max(record.others_until_ns)
        confidence, than = 0.6, "those of every other engine that arrived at the same time"
        ahead_ns = ahead_ns if ahead_ns > AHEAD_OF_OTHERS_NS else 0
    if not ahead_ns:
        return None
    return Finding(
        Kind.CLOCK_AHEAD,
        timeline.since_ns,
        timeline.until_ns,
        1.0,
        0.0,
        0.0,
        confidence,
        (
            witness.that(
                f"Executions ended {ahead_ns / 1e9:.1f} s after {than}.", "clock_skew", clock_ahead_ns=(ahead_ns, "ns")
            ),
        ),
    )


def of_plain(plain: BeingInPlain, timeline: Timeline, witness: Witness) -> Finding | None:
    """Plain decode is right, or there is nothing else: both no faults."""
    if plain.verdict == Verdict.NO_CHOICE:
        kind, says, confidence = Kind.NO_SPECULATION, "The engine has no speculative graph to choose.", 0.95
    elif plain.stuck and plain.verdict == Verdict.RIGHT:
        kind, confidence = Kind.PLAIN_RIGHT, 0.97
        best = 100 * (plain.truly_best_fraction or 0.0)
        says = (
            f"{100 * plain.plain_fraction:.0f} % of the ordinary decoding time was plain decode, and {best:.0f} % of "
            "that time it was truly the best choice."
        )
    else:
        return None
    return Finding(
        kind,
        plain.spans[0].since_ns if plain.spans else timeline.since_ns,
        plain.spans[-1].until_ns if plain.spans else timeline.until_ns,
        plain.plain_fraction,
        0.0,
        0.0,
        confidence,
        (
            witness.that(
                says,
                "cells",
                "graph_costs",
                sequences=[span.from_sequence for span in plain.spans],
                plain_fraction=(plain.plain_fraction, "fraction"),
            ),
        ),
    )
