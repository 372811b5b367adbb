"""The oracle: a cost model that is told the true steady-state costs. What is lost is measured against it."""

from engine_hooks.cost_model.model import NEVER_NS, Estimate, Measurement, SavedState
from engine_hooks.simulator.draws import Draws
from engine_hooks.simulator.engine import graph_gpu_ns_under, slow_planning_ns
from engine_hooks.simulator.parameters import Conditions, Scenario


class OracleCosts:
    """Knows what each graph really costs in the long run, at every instant; learns nothing.

    The cost of a graph is the time between two ends when it is run round after round. It
    knows acceptance no better than any scheduler does, and no delay before it happens.
    """

    name = "oracle"

    def __init__(self, scenario: Scenario, seed: int) -> None:
        """For the cell that `SimulatedEngine` runs with the same scenario and seed."""
        speed = Draws(scenario, seed).gpu_speed
        self._phases = [
            (phase.from_ns, true_costs(scenario, phase.conditions, speed)) for phase in reversed(scenario.phases)
        ]

    def record(self, measurement: Measurement) -> None:
        """Learns nothing."""

    def estimate(self, graph: str, now_ns: int) -> Estimate | None:
        """The true cost at `now_ns`."""
        for from_ns, costs in self._phases:
            if from_ns <= now_ns:
                return costs.get(graph)
        return None

    def save(self) -> SavedState:
        """There is no state to save."""
        return {"model": self.name}

    def restore(self, state: SavedState) -> None:
        """There is no state to restore."""


def true_costs(scenario: Scenario, conditions: Conditions, gpu_speed: float) -> dict[str, Estimate]:
    """Steady-state cost of each graph by name under these conditions."""
    engine = scenario.engine
    gpu_ns = graph_gpu_ns_under(engine, conditions, gpu_speed)
    slow_ns = slow_planning_ns(conditions, gpu_ns)
    costs = {}
    for graph in engine.graph_gpu_ns:
        planning_ns = slow_ns.get(graph, float(engine.planning_ns))
        turnaround_ns = gpu_ns[graph] + engine.notify_ns + planning_ns + engine.launch_ns
        # Two in flight: a round follows the end of the one before the last, and the planning of the last.
        pipelined_ns = max(gpu_ns[graph], planning_ns, turnaround_ns / 2)
        total_ns = int(turnaround_ns if conditions.grammar_lanes else pipelined_ns)
        device_ns = int(gpu_ns[graph])
        costs[graph.name] = Estimate(total_ns, device_ns, total_ns - device_ns, 0, NEVER_NS)
    return costs
