"""Which executions lifted an estimate, and since when an estimate is above what the graph costs.

What a model charged is stored with every decision, chosen or not. A rise between two decisions comes from the
executions that became known between them, as `queries.known_by_then` tells.
So no model has to be replayed, the figures are the very ones the scheduler used, a record that begins in mid-run
or lacks executions serves as well, and a model that nobody has heard of too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.span import span_id_of
from queries.findings.decisions import Decisions, usual_overhead
from queries.findings.findings import Poison
from queries.findings.timeline import Bools, Floats, Ints, Timeline
from queries.known_by_then import Knowledge

LIFT_MIN: Final = 0.012
"""A rise of an estimate by a smaller share is its usual wavering."""
GAP_MIN_NS: Final = 3_000_000
"""Handoffs and late rounds shorter than this are no stumble."""
INFLATED_ABOVE: Final = 0.02
"""An estimate is inflated when it exceeds true cost and usual overhead by more than this."""
WORN_OFF: Final = 0.25
"""Once no more than this share of a lift is left, it is over."""
FAIR_AGAIN: Final = 0.012
"""Below this it is fair again, and what had lifted it is over."""


@dataclass(frozen=True)
class Estimates:
    """What graphs were charged, against what they cost. Matrices are by decision and graph."""

    fair: Floats
    """True cost + what the model usually adds."""
    inflated: Bools
    fairly_charged: Bools
    lifts: dict[int, list[tuple[int, Poison]]]
    """By graph, in order: the first decision that knew, and what it knew."""
    earlier: dict[int, list[Poison]]
    """What had lifted estimates before the cell, as far as that was stored, of graphs inflated when it begins."""
    decisions: Decisions

    def poisons_of(self, graph: int, decision: int) -> tuple[list[Poison], bool]:
        """What had lifted an estimate and not worn off at a decision; whether that was before the first decision."""
        fair = np.flatnonzero(self.fairly_charged[: decision + 1, graph])
        since = int(fair[-1]) if len(fair) else -1
        charged = self.decisions.estimates[:, graph]
        lifts = [
            poison
            for known, poison in self.lifts.get(graph, [])
            if since < known <= decision and not _worn_off(poison, charged[known : decision + 1])
        ]
        began_inflated = since < 0 and self.decisions.timeline.begins_in_mid_run and bool(self.inflated[0, graph])
        if not began_inflated or lifts:
            return lifts, False
        return self.earlier.get(graph, []), True


def _worn_off(poison: Poison, charged_since: Floats) -> bool:
    """Whether the estimate has come down again since, whatever lifted it afterwards."""
    return float(np.nanmin(charged_since)) < poison.estimate_before_ns + WORN_OFF * poison.lift_ns


def estimates_of(decisions: Decisions, before: Sequence[GraphExecution] = ()) -> Estimates:
    """The estimates of a cell, judged; `before` is what the engine did before it."""
    overhead = usual_overhead(decisions.estimates, decisions.chosen, decisions.costs, decisions.on_time)
    fair = decisions.costs + overhead
    with np.errstate(invalid="ignore"):
        inflated = decisions.estimates > fair * (1 + INFLATED_ABOVE)
        fairly_charged = decisions.estimates <= fair * (1 + FAIR_AGAIN)
    lifts = {
        graph: _lifts(decisions, graph)
        for graph in range(len(decisions.timeline.names))
        if np.isfinite(decisions.estimates[:, graph]).any()
    }
    instance = decisions.timeline.service_instance_id
    knowledge = decisions.timeline.knowledge
    earlier = {
        graph: _lifts_before(before, decisions.timeline.names[graph], float(fair[0, graph]), instance, knowledge)
        for graph in np.flatnonzero(inflated[0]).tolist()
    }
    return Estimates(fair, inflated, fairly_charged, lifts, earlier, decisions)


def _lifts_before(
    before: Sequence[GraphExecution], graph: str, fair_ns: float, instance: str, knowledge: Knowledge
) -> list[Poison]:
    """What lifted the estimate of a graph before the cell, since it was last fair."""
    charged = [
        (
            execution,
            execution.scheduler_candidate_estimates_ns[execution.scheduler_candidate_graphs.index(graph)],
        )
        for execution in before
        if graph in execution.scheduler_candidate_graphs
    ]
    last_fair = max((n for n, (_, ns) in enumerate(charged) if ns <= fair_ns * (1 + FAIR_AGAIN)), default=0)
    own = [execution for execution in before if execution.graph_name == graph and not execution.graph_after_idle]
    found = []
    for (since, was), (until, now) in pairwise(charged[last_fair:]):
        if now <= was * (1 + LIFT_MIN):
            continue
        seen = [one for one in own if knowledge.has(until, one) and not knowledge.has(since, one)]
        latest = max(seen, key=lambda one: one.graph_wall_time_ns - one.graph_gpu_time_ns, default=None)
        if latest is not None and latest.graph_wall_time_ns - latest.graph_gpu_time_ns >= max(GAP_MIN_NS, now - was):
            found.append(_poison(latest, instance, was, now))
    return found


def _lifts(decisions: Decisions, graph: int) -> list[tuple[int, Poison]]:
    timeline, estimates = decisions.timeline, decisions.estimates[:, graph]
    with np.errstate(invalid="ignore"):
        rises = np.flatnonzero(estimates[1:] > estimates[:-1] * (1 + LIFT_MIN)) + 1
    started = timeline.started[decisions.row]
    chosen = [timeline.executions[row] for row in decisions.row.tolist()]
    executions = np.flatnonzero(timeline.graph == graph)
    found = []
    for n in rises.tolist():
        before, after = int(estimates[n - 1]), int(estimates[n])
        between = executions[_between(timeline.observed[executions], int(started[n - 1]), int(started[n]))]
        seen = between[_learnt(timeline, between, chosen[n - 1], chosen[n])]
        stumbled = seen[decisions.stumble[seen] >= max(GAP_MIN_NS, after - before)]
        if len(stumbled):
            found += [(n, p) for p in _shared(timeline, stumbled.tolist(), before, after)]
        elif _lost_between(timeline, decisions.row[n - 1], decisions.row[n]) and not len(seen):
            found.append((n, _unrecorded(timeline.names[graph], int(started[n]), before, after)))
    return found


def _between(observed: Ints, after: int, before: int) -> Bools:
    return np.asarray((observed >= after) & (observed <= before))


def _learnt(timeline: Timeline, rows: Ints, one: GraphExecution, next_: GraphExecution) -> Bools:
    """Which of these executions the latter of two decisions knew, and the former did not."""
    knows = timeline.knowledge.has
    among = [timeline.executions[row] for row in rows.tolist()]
    return np.array([knows(next_, each) and not knows(one, each) for each in among], dtype=np.bool_)


def _lost_between(timeline: Timeline, row: int, other: int) -> bool:
    """Whether executions are missing that may have become known between two decisions."""
    first = max(int(row) - 3, 0)
    return bool((np.diff(timeline.sequence[first : int(other) + 1]) > 1).any())


def _unrecorded(graph: str, at_ns: int, before: int, after: int) -> Poison:
    return Poison(graph, None, "", at_ns, "", None, None, None, before, after)


def _shared(timeline: Timeline, rows: list[int], before: int, after: int) -> list[Poison]:
    """One rise shared out among the executions that became known together, by their gaps."""
    gaps = timeline.gap[rows].astype(np.float64)
    levels = before + np.concatenate(([0.0], np.cumsum(gaps) / gaps.sum())) * (after - before)
    instance = timeline.service_instance_id
    return [
        _poison(timeline.executions[row], instance, int(levels[n]), int(levels[n + 1])) for n, row in enumerate(rows)
    ]


def _poison(e: GraphExecution, instance: str, before: int, after: int) -> Poison:
    """The poison that an execution is."""
    return Poison(
        graph=e.graph_name,
        sequence=e.graph_sequence,
        span_id=span_id_of(instance, e.graph_sequence).hex() if instance else "",
        at_ns=e.started_at + e.duration_ns,
        purpose=str(e.graph_purpose),
        gpu_time_ns=e.graph_gpu_time_ns,
        wall_time_ns=e.graph_wall_time_ns,
        queue_depth=e.graph_queue_depth,
        estimate_before_ns=before,
        estimate_after_ns=after,
    )
