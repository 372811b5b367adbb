"""How long the host plans the rounds of each graph, seen from a record, and where it stumbles."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine_hooks.contract.execution import GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.simulator.delays import Delay
from queries.replay.host import Planned, is_speculative, planned_rounds, rounds_met, without_stumbles
from queries.replay.stretches import Floats, Steps, spread_of, steps_of

CHOSEN_KINDS: Final = (GraphKind.PLAIN_DECODE, GraphKind.SPECULATIVE)
"""What a scheduler chooses."""
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
    planned = list(planned_rounds(executions))
    graph_ns: dict[str, float] = {}
    kind_ns: dict[GraphKind, float] = {}
    factor: dict[GraphKind, Steps] = {}
    met: dict[GraphKind, list[Delay]] = defaultdict(list)
    rests: list[Floats] = []
    for kind in CHOSEN_KINDS:
        rounds = [one for one in planned if one.execution.graph_kind == kind]
        if not rounds:
            continue
        steady, met[kind] = without_stumbles(rounds)
        graph_ns |= medians(steady)
        kind_ns[kind] = float(np.median([one.planning_ns for one in steady]))
        logs = np.log([one.planning_ns / graph_ns[one.execution.graph_name] for one in steady])
        steps = steps_of([one.execution.started_at for one in steady], logs)
        factor[kind] = steps.exponential()
        rests.append(logs - np.array([steps.at(one.execution.started_at) for one in steady]))
    sigma = spread_of(np.concatenate(rests)) if rests else 0.0
    return Planning(graph_ns, kind_ns, factor, sigma, stumbles_of(executions, met))


def medians(planned: Sequence[Planned]) -> dict[str, float]:
    """Median planning time of each graph."""
    by_graph: dict[str, list[int]] = defaultdict(list)
    for one in planned:
        by_graph[one.execution.graph_name].append(one.planning_ns)
    return {name: float(np.median(planning_ns)) for name, planning_ns in by_graph.items()}


def stumbles_of(executions: Sequence[GraphExecution], met: Mapping[GraphKind, Sequence[Delay]]) -> tuple[Delay, ...]:
    """The stumbles in order of time, each told which rounds it could have met."""
    decoding = [one for one in executions if one.graph_kind in CHOSEN_KINDS]
    speculative_ns = sum(one.graph_gpu_time_ns for one in decoding if is_speculative(one))
    share = speculative_ns / max(sum(one.graph_gpu_time_ns for one in decoding), 1)
    speculative, plain = met.get(GraphKind.SPECULATIVE, ()), met.get(GraphKind.PLAIN_DECODE, ())
    rounds = rounds_met(len(speculative), len(plain), share)
    return tuple(sorted(delay._replace(rounds=rounds) for delay in (*speculative, *plain)))
