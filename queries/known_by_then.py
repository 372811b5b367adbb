"""Which executions a decision knew: one rule for the exact replay, the findings and (in SQL) `estimate_moves`.

Known is what was observed (its span's end) before the decision's submission (its span's start). At one instant the
record tells: an engine that takes one timestamp a loop has observed it first; a host that came late with a round has
submitted it first, and seen the one before only then. Neither the times nor a depth of 0 tell these apart, for the
device has drained in both, but what was charged does: estimates move with what the scheduler knew.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from engine_hooks.contract.execution import GraphExecution

AT_ONCE_SHARE: Final = 0.5
"""Least share of submissions that fall on an observation, in an engine that takes one timestamp for both."""
WHOLE: Final = 4
"""Submissions right before a decision that must be recorded, for it to have a vote: what was lost may have moved it."""
SIGMAS: Final = 3
"""By so many standard deviations more estimates than not move towards the larger wall time, if that is no chance."""


def observed_at(execution: GraphExecution) -> int:
    """When the host saw that it had ended, in Unix nanoseconds."""
    return execution.started_at + execution.duration_ns


class Knowledge(NamedTuple):
    """What one engine knows as it decides."""

    at_once: bool
    """It takes one timestamp for observing and submitting: a drained submission knows what was observed at its instant."""

    def has(self, decision: GraphExecution, execution: GraphExecution) -> bool:
        """Whether an execution was known when a later one was chosen."""
        observed = observed_at(execution)
        if observed != decision.started_at:
            return observed < decision.started_at
        submitted_since = decision.graph_sequence - execution.graph_sequence
        if submitted_since <= 0:
            return False
        if execution.graph_completion_feedback:
            return True  # the submission needed its results
        if decision.graph_queue_depth:
            return submitted_since > decision.graph_queue_depth  # else it would count as in flight itself
        return self.at_once


class Votes(NamedTuple):
    """How the charges speak at equal instants: above 0 for known, below 0 for not known."""

    only: int
    """Changes of an estimate that only one of the two readings gives any execution for."""
    larger: int
    """Where both readings give one: whether the estimate moved towards the one or the other."""
    larger_of: int
    """How many such votes there were."""

    @property
    def at_once(self) -> bool:
        """Whether they say that it was known."""
        return self.only > 0 or (not self.only and self.larger > SIGMAS * self.larger_of**0.5)


def knowledge_of(executions: Sequence[GraphExecution]) -> Knowledge:
    """How this engine's record reads at equal instants; the executions are in the order of submission."""
    if not may_be_at_once(executions):
        return Knowledge(at_once=False)
    return Knowledge(votes_of(executions).at_once)


def may_be_at_once(executions: Sequence[GraphExecution]) -> bool:
    """Whether so many submissions fall on an observation that one timestamp may serve for both."""
    observations = {observed_at(one) for one in executions if one.duration_ns}
    following = [one for one in executions[1:] if not one.graph_after_idle]
    at_once = sum(one.started_at in observations for one in following)
    return at_once > 0 and at_once >= AT_ONCE_SHARE * len(following)


def votes_of(executions: Sequence[GraphExecution]) -> Votes:
    """What every change of an estimate from one decision to the next says of equal instants."""
    ended: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in executions:
        ended[one.graph_name].append((observed_at(one), one.graph_wall_time_ns))
    for of_graph in ended.values():
        of_graph.sort()
    only = larger = larger_of = 0
    for since, until, graph, change_ns in _changes(executions):
        own = ended.get(graph, [])
        before = bisect_left(own, (until,)) - 1
        at = bisect_right(own, (until + 1,)) - 1
        is_before = before >= 0 and own[before][0] >= since
        is_at = at >= 0 and own[at][0] > since
        if is_before != is_at:
            only += 1 if is_at else -1
        elif is_at and at != before:
            towards = change_ns * (own[at][1] - own[before][1])
            larger += (towards > 0) - (towards < 0)
            larger_of += towards != 0
    return Votes(only, larger, larger_of)


def _changes(executions: Sequence[GraphExecution]) -> Iterator[tuple[int, int, str, int]]:
    """Submissions of two decisions one after the other, a graph, and by how much its estimate changed between them."""
    decisions = [
        n
        for n, one in enumerate(executions)
        if one.scheduler_candidate_graphs
        and len(one.scheduler_candidate_graphs) == len(one.scheduler_candidate_estimates_ns)
    ]
    for m, n in pairwise(decisions):
        one, next_ = executions[m], executions[n]
        if n < WHOLE or next_.graph_sequence - executions[n - WHOLE].graph_sequence != WHOLE:
            continue
        if one.scheduler_candidate_estimates_ns == next_.scheduler_candidate_estimates_ns:
            continue
        before = dict(zip(one.scheduler_candidate_graphs, one.scheduler_candidate_estimates_ns, strict=True))
        after = zip(next_.scheduler_candidate_graphs, next_.scheduler_candidate_estimates_ns, strict=True)
        for graph, now in after:
            if before.get(graph, now) != now:
                yield one.started_at, next_.started_at, graph, now - before[graph]
