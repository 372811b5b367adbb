"""How long graphs take on the device, seen from a record: each graph's mean, what changed, and the noise."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine_hooks.contract.execution import GraphExecution
from queries.replay.stretches import Steps, spread_of, steps_of

NO_FACTOR: Final = Steps((0,), (1.0,))
ROUNDS_OF_FITTING: Final = 3


class GpuTimes(NamedTuple):
    """Device times of a cell's graphs."""

    graph_ns: Mapping[str, float]
    """Mean of each graph, at factor 1."""
    factor: Steps
    """On all graphs: a clock that drifts."""
    graph_factor: Mapping[str, Steps]
    """On single graphs, where one changed by itself."""
    noise: float
    """Standard deviation over the mean."""


def gpu_times_of(executions: Sequence[GraphExecution]) -> GpuTimes:
    """Fit the device times of these executions, which are at least one, in the order of submission."""
    timed = [one for one in executions if one.graph_gpu_time_ns > 0]
    by_graph: dict[str, list[GraphExecution]] = defaultdict(list)
    for one in timed:
        by_graph[one.graph_name].append(one)
    factor = NO_FACTOR
    # What changed shows once the graphs' means are known, and the means once it is known what changed.
    for _ in range(ROUNDS_OF_FITTING):
        median_ns = {
            name: float(np.median([one.graph_gpu_time_ns / factor.at(one.started_at) for one in ones]))
            for name, ones in by_graph.items()
        }
        logs = np.log([one.graph_gpu_time_ns / median_ns[one.graph_name] for one in timed])
        factor = steps_of([one.started_at for one in timed], logs).exponential()
    graph_ns, graph_factor, rests = {}, {}, []
    for name, ones in by_graph.items():
        steady_ns = np.array([one.graph_gpu_time_ns / factor.at(one.started_at) for one in ones])
        own = steps_of([one.started_at for one in ones], np.log(steady_ns / median_ns[name])).exponential()
        if len(own.values) > 1:
            graph_factor[name] = own
            steady_ns /= np.array([own.at(one.started_at) for one in ones])
        graph_ns[name] = float(steady_ns.mean())
        rests.append(steady_ns / graph_ns[name] - 1)
    return GpuTimes(graph_ns, factor, graph_factor, spread_of(np.concatenate(rests)))
