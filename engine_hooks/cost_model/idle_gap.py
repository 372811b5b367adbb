"""`idle_gap`: charges the idle time of the device that a graph really causes, and one stumble never."""

from collections.abc import Iterable

from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.drained_share import DrainedShare
from engine_hooks.cost_model.errors import StateError
from engine_hooks.cost_model.model import Estimate, Measurement, SavedState
from engine_hooks.cost_model.per_graph import DEFAULT_EXPIRY_NS, DEFAULT_WINDOW, at_least_one
from engine_hooks.cost_model.rolling_median import RollingMedian


class Gaps:
    """The idle gaps one graph left before its ordinary executions, and when to doubt them."""

    __slots__ = ("charged_ns", "measured_at_ns", "recent", "retry_after_ns")

    def __init__(self, window: int, retry_after_ns: int, gaps_ns: Iterable[int] = ()) -> None:
        self.recent = RollingMedian(window, gaps_ns)
        self.retry_after_ns = retry_after_ns
        self.charged_ns = 0
        """Median of the recent gaps."""
        self.measured_at_ns = 0

    def median_ns(self, samples_min: int) -> int:
        """Median of the recent gaps, padded with zeros to `samples_min`."""
        missing = samples_min - len(self.recent)
        if missing <= 0:
            return self.recent.median()
        padded = RollingMedian(samples_min, self.recent.samples())
        for _ in range(missing):
            padded.add(0)
        return padded.median()


class IdleGap:
    """`drained_share` + the median idle gap that the graph's late submissions left on the device.

    A gap belongs to the execution that started late, unless the one before it needed
    completion feedback: `drained_share` charges that already. A graph that is charged and
    not used is retried uncharged after `retry_after_ns`; the wait doubles while the gap is
    confirmed, up to `retry_after_max_ns`, and falls back once the median is clean.
    """

    name = "idle_gap"

    def __init__(
        self,
        *,
        gpu_window: int = DEFAULT_WINDOW,
        handoff_window: int = DEFAULT_WINDOW,
        share_window: int = DEFAULT_WINDOW,
        expiry_ns: int = DEFAULT_EXPIRY_NS,
        gap_window: int = DEFAULT_WINDOW,
        gap_samples_min: int = 5,
        retry_after_ns: int = 2_000_000_000,
        retry_after_max_ns: int = 30_000_000_000,
    ) -> None:
        """Windows and `gap_samples_min` count executions; fewer gaps than that are padded with zeros."""
        self._drained_share = DrainedShare(
            gpu_window=gpu_window, handoff_window=handoff_window, share_window=share_window, expiry_ns=expiry_ns
        )
        self.gap_window = at_least_one("gap_window", gap_window)
        self.gap_samples_min = at_least_one("gap_samples_min", gap_samples_min)
        self.retry_after_ns = at_least_one("retry_after_ns", retry_after_ns)
        self.retry_after_max_ns = at_least_one("retry_after_max_ns", retry_after_max_ns)
        self._gaps: dict[str, Gaps] = {}
        self._feedback_before = False

    def record(self, measurement: Measurement) -> None:
        """Learn from one finished execution."""
        self._drained_share.record(measurement)
        gaps = self._gaps.get(measurement.graph)
        if gaps is None or measurement.now_ns - gaps.measured_at_ns >= self._drained_share.expiry_ns:
            gaps = self._gaps[measurement.graph] = Gaps(self.gap_window, self.retry_after_ns)
        if measurement.purpose == Purpose.ORDINARY and not measurement.after_idle:
            self._learn_gap(gaps, measurement)
        gaps.measured_at_ns = measurement.now_ns
        self._feedback_before = measurement.completion_feedback

    def estimate(self, graph: str, now_ns: int) -> Estimate | None:
        """The cost of `graph` as believed at `now_ns`; `None` if it was never measured."""
        drained = self._drained_share.estimate(graph, now_ns)
        if drained is None:
            return None
        gaps = self._gaps[graph]
        charged_ns = gaps.charged_ns
        if not charged_ns or now_ns - gaps.measured_at_ns >= gaps.retry_after_ns:
            return drained
        total_ns, gpu_ns, handoff_ns, measured_at_ns, expires_at_ns = drained
        return Estimate(total_ns + charged_ns, gpu_ns, handoff_ns + charged_ns, measured_at_ns, expires_at_ns)

    def save(self) -> SavedState:
        """The whole state as plain data."""
        graphs = {
            graph: {
                "gaps_ns": gaps.recent.samples(),
                "measured_at_ns": gaps.measured_at_ns,
                "retry_after_ns": gaps.retry_after_ns,
            }
            for graph, gaps in self._gaps.items()
        }
        return {
            "model": self.name,
            "graphs": graphs,
            "feedback_before": self._feedback_before,
            "drained_share": self._drained_share.save(),
        }

    def restore(self, state: SavedState) -> None:
        """Take over a saved state in place of the present one."""
        if state.get("model") != self.name:
            raise StateError(f"not a saved state of {self.name}: {state.get('model')!r}; restore it into that model")
        try:
            restored = {graph: self._restored(saved) for graph, saved in state["graphs"].items()}
            feedback_before = state["feedback_before"]
            self._drained_share.restore(state["drained_share"])
        except (KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"the saved state of {self.name} is damaged: {error!r}; start from an empty one"
            ) from error
        self._gaps, self._feedback_before = restored, feedback_before

    def _learn_gap(self, gaps: Gaps, measurement: Measurement) -> None:
        gap_ns = 0 if self._feedback_before else max(measurement.wall_time_ns - measurement.gpu_time_ns, 0)
        retried = gaps.charged_ns and measurement.now_ns - gaps.measured_at_ns >= gaps.retry_after_ns
        gaps.recent.add(gap_ns)
        gaps.charged_ns = gaps.median_ns(self.gap_samples_min)
        if not gaps.charged_ns:
            gaps.retry_after_ns = self.retry_after_ns
        elif retried and gap_ns:
            gaps.retry_after_ns = min(2 * gaps.retry_after_ns, self.retry_after_max_ns)

    def _restored(self, saved: SavedState) -> Gaps:
        gaps = Gaps(self.gap_window, saved["retry_after_ns"], saved["gaps_ns"])
        gaps.measured_at_ns = saved["measured_at_ns"]
        gaps.charged_ns = gaps.median_ns(self.gap_samples_min)
        return gaps
