"""`startup_median`: the rival. It cannot be poisoned after the start, and it cannot follow drift."""

from engine_hooks.cost_model.errors import StateError
from engine_hooks.cost_model.model import NEVER_NS, Estimate, Measurement, SavedState
from engine_hooks.cost_model.per_graph import at_least_one
from engine_hooks.cost_model.rolling_median import RollingMedian


class StartupMedian:
    """Median GPU time of a graph's first `replays` executions; later ones change nothing, and it never expires.

    Source: vLLM's adaptive verification, which takes five replays of each shape at start-up.
    """

    name = "startup_median"

    def __init__(self, *, replays: int = 5) -> None:
        """`replays`: how many executions of each graph, from the first on, the median is taken over."""
        self.replays = at_least_one("replays", replays)
        self._gpu_times: dict[str, RollingMedian] = {}
        self._estimates: dict[str, Estimate] = {}

    def record(self, measurement: Measurement) -> None:
        """Learn from one finished execution, if it is among the graph's first."""
        gpu_times = self._gpu_times.get(measurement.graph)
        if gpu_times is None:
            gpu_times = self._gpu_times[measurement.graph] = RollingMedian(self.replays)
        if len(gpu_times) == self.replays:
            return
        gpu_times.add(measurement.gpu_time_ns)
        gpu_ns = gpu_times.median()
        self._estimates[measurement.graph] = Estimate(gpu_ns, gpu_ns, 0, measurement.now_ns, NEVER_NS)

    def estimate(self, graph: str, now_ns: int) -> Estimate | None:  # noqa: ARG002 - it never changes with time
        """The median of the start; `None` if the graph was never measured."""
        return self._estimates.get(graph)

    def save(self) -> SavedState:
        """The whole state as plain data."""
        graphs = {
            graph: {"gpu_times_ns": gpu_times.samples(), "measured_at_ns": self._estimates[graph].measured_at_ns}
            for graph, gpu_times in self._gpu_times.items()
        }
        return {"model": self.name, "graphs": graphs}

    def restore(self, state: SavedState) -> None:
        """Take over a saved state in place of the present one."""
        if state.get("model") != self.name:
            raise StateError(f"not a saved state of {self.name}: {state.get('model')!r}; restore it into that model")
        gpu_times: dict[str, RollingMedian] = {}
        estimates: dict[str, Estimate] = {}
        try:
            for graph, saved in state["graphs"].items():
                times = gpu_times[graph] = RollingMedian(self.replays, saved["gpu_times_ns"])
                estimates[graph] = Estimate(times.median(), times.median(), 0, saved["measured_at_ns"], NEVER_NS)
        except (KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"the saved state of {self.name} is damaged: {error!r}; start from an empty one"
            ) from error
        self._gpu_times, self._estimates = gpu_times, estimates
