"""`exposed_mean`: what went wrong. One stumble of the host is charged to the graph for a long time."""

from fractions import Fraction

from engine_hooks.cost_model.errors import SettingError
from engine_hooks.cost_model.model import Estimate, Measurement, SavedState
from engine_hooks.cost_model.per_graph import DEFAULT_EXPIRY_NS, DEFAULT_WINDOW, PerGraphModel
from engine_hooks.cost_model.rolling_median import RollingMedian


class ExposedHistory:
    """One graph's GPU times and the exponential mean of its handoffs."""

    __slots__ = ("estimate", "gpu", "handoff_ns", "measured_at_ns")

    def __init__(self, gpu: RollingMedian, handoff_ns: float | None = None, measured_at_ns: int = 0) -> None:
        self.gpu = gpu
        self.handoff_ns = handoff_ns
        self.measured_at_ns = measured_at_ns
        self.estimate: Estimate | None = None


class ExposedMean(PerGraphModel[ExposedHistory]):
    """Median GPU time + exponential mean of (wall - GPU) over unqueued executions.

    Queued executions never lower the mean, so a graph that looks dear, and is not used, stays dear.
    """

    name = "exposed_mean"

    def __init__(
        self,
        *,
        exposed_mean_weight: Fraction | str | float = Fraction(1, 6),
        gpu_window: int = DEFAULT_WINDOW,
        expiry_ns: int = DEFAULT_EXPIRY_NS,
    ) -> None:
        """`exposed_mean_weight`: weight of a new sample, above 0 and at most 1, as a fraction or text ("1/6", A3)."""
        super().__init__(gpu_window=gpu_window, expiry_ns=expiry_ns)
        self.exposed_mean_weight = Fraction(exposed_mean_weight)
        if not 0 < self.exposed_mean_weight <= 1:
            raise SettingError(f"exposed_mean_weight must lie above 0 and at most at 1, not {exposed_mean_weight}")
        self._weight = float(self.exposed_mean_weight)

    def _new_history(self) -> ExposedHistory:
        return ExposedHistory(RollingMedian(self.gpu_window))

    def _learn_handoff(self, history: ExposedHistory, measurement: Measurement) -> None:
        if not measurement.drained:
            return
        exposed_ns = max(measurement.wall_time_ns - measurement.gpu_time_ns, 0)  # A5
        mean = history.handoff_ns
        # The first sample seeds the mean (A4).
        history.handoff_ns = float(exposed_ns) if mean is None else mean + self._weight * (exposed_ns - mean)

    def _handoff_ns(self, history: ExposedHistory) -> int:
        return int(history.handoff_ns or 0)

    def _saved(self, history: ExposedHistory) -> SavedState:
        return {
            "gpu_times_ns": history.gpu.samples(),
            "handoff_ns": history.handoff_ns,
            "measured_at_ns": history.measured_at_ns,
        }

    def _restored(self, saved: SavedState) -> ExposedHistory:
        gpu = RollingMedian(self.gpu_window, saved["gpu_times_ns"])
        return ExposedHistory(gpu, saved["handoff_ns"], saved["measured_at_ns"])
