"""How long the host plans the rounds of each graph, seen from a record, and where it stumbles."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import DECODING_KINDS, GraphKind
from engine_hooks.simulator.delays import Delay
from queries.replay.host import Planned, Stumble, is_speculative, planned_rounds, rounds_met, sorted_by_lateness
from queries.replay.stretches import Floats, Steps, spread_of, steps_of

USUAL_NS: Final = 500_000.0
"""Planning time where the record shows none: the published engine's."""


class Planning(NamedTuple):
    """The host's planning of a cell's rounds."""

    graph_ns: Mapping[str, float]
    """Median of each graph that was planned, at factor 1."""
    kind_ns: Mapping[GraphKind, float]
    """Median of each kind, for graphs that were not."""
    factor: Mapping[GraphKind, Steps]
    """On all graphs of a kind."""
    sigma: float
    """Standard deviation of the logarithm."""
    stumbles: tuple[Delay, ...]
    """On the record's clock."""

    def ns_at(self, graph: str, kind: GraphKind, at: int) -> float:
        """How long a round of this graph is planned at an instant."""
        if kind not in self.factor:
            return self.least_ns
        return (self.graph_ns.get(graph) or self.kind_ns[kind]) * self.factor[kind].at(at)

    @property
    def least_ns(self) -> float:
        """The host at its best: a kind of round that it never planned is not known to be slow."""
        return min((ns * min(self.factor[kind].values) for kind, ns in self.kind_ns.items()), default=USUAL_NS)


def planning_of(executions: Sequence[GraphExecution]) -> Planning:
    """Fit the planning of these executions, in the order of submission."""
    steady, stumbles, slow = sorted_by_lateness(list(planned_rounds(executions)))
    graph_ns = medians(steady)
    kind_ns: dict[GraphKind, float] = {}
    factor: dict[GraphKind, Steps] = {}
    rests: list[Floats] = []
    for kind in DECODING_KINDS:
        rounds = [one for one in steady if one.execution.graph_kind == kind]
        if not rounds:
            continue
        kind_ns[kind] = float(np.median([one.planning_ns for one in rounds]))
        logs = np.log([one.planning_ns / graph_ns[one.execution.graph_name] for one in rounds])
        steps = steps_of([one.execution.started_at for one in rounds], logs)
        factor[kind] = slow_at_last(
            steps.exponential(), [one for one in slow if one.execution.graph_kind == kind], kind_ns[kind]
        )
        rests.append(logs - np.array([steps.at(one.execution.started_at) for one in rounds]))
    sigma = spread_of(np.concatenate(rests)) if rests else 0.0
    return Planning(graph_ns, kind_ns, factor, sigma, delays_of(executions, stumbles))


def slow_at_last(factor: Steps, slow: Sequence[Planned], usual_ns: float) -> Steps:
    """The factor, and from the first of these rounds on the one that they show."""
    if not slow:
        return factor
    began_at = slow[0].execution.started_at
    kept = [(at, value) for at, value in zip(*factor, strict=True) if at < began_at]
    last = (began_at, float(np.median([one.planning_ns for one in slow])) / usual_ns)
    from_ns, values = zip(*kept, last, strict=True)
    return Steps(from_ns, values)


def medians(planned: Sequence[Planned]) -> dict[str, float]:
    """Median planning time of each graph."""
    by_graph: dict[str, list[int]] = defaultdict(list)
    for one in planned:
        by_graph[one.execution.graph_name].append(one.planning_ns)
    return {name: float(np.median(planning_ns)) for name, planning_ns in by_graph.items()}


def delays_of(executions: Sequence[GraphExecution], stumbles: Sequence[Stumble]) -> tuple[Delay, ...]:
    """The stumbles as the simulator takes them, each told which rounds it could have met."""
    decoding = [one for one in executions if one.graph_kind in DECODING_KINDS]
    speculative_ns = sum(one.graph_gpu_time_ns for one in decoding if is_speculative(one))
    share = speculative_ns / max(sum(one.graph_gpu_time_ns for one in decoding), 1)
    speculative = sum(is_speculative(one.planned.execution) for one in stumbles)
    rounds = rounds_met(speculative, len(stumbles) - speculative, share)
    return tuple(Delay(one.planned.from_ns, one.late_ns, rounds) for one in stumbles)
