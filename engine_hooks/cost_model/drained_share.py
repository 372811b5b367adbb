"""`drained_share`: the correction. A handoff is charged as often as it really idles the device."""

from collections import deque
from collections.abc import Iterable

from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.model import Estimate, Measurement, SavedState
from engine_hooks.cost_model.per_graph import DEFAULT_EXPIRY_NS, DEFAULT_WINDOW, PerGraphModel, at_least_one
from engine_hooks.cost_model.rolling_median import RollingMedian


class FeedbackShare:
    """How many of the last `window` executions needed completion feedback."""

    __slots__ = ("count", "flags")

    def __init__(self, window: int, flags: Iterable[bool] = ()) -> None:
        self.flags: deque[bool] = deque(flags, maxlen=window)
        self.count = sum(self.flags)

    def add(self, needed_feedback: bool) -> None:
        """Take in an ordinary execution; beyond the window the oldest leaves."""
        flags = self.flags
        if len(flags) == flags.maxlen:
            self.count -= flags[0]
        flags.append(needed_feedback)
        self.count += needed_feedback

    def of(self, time_ns: int) -> int:
        """`time_ns` x the share, floored (A13); with no execution yet the share is 0 (A10, A11)."""
        return time_ns * self.count // len(self.flags) if self.count else 0


class DrainedHistory:
    """One graph's GPU times, handoffs of drained executions, and share of feedback."""

    __slots__ = ("estimate", "gpu", "handoff", "measured_at_ns", "share")

    def __init__(
        self, gpu: RollingMedian, handoff: RollingMedian, share: FeedbackShare, measured_at_ns: int = 0
    ) -> None:
        self.gpu = gpu
        self.handoff = handoff
        self.share = share
        self.measured_at_ns = measured_at_ns
        self.estimate: Estimate | None = None


class DrainedShare(PerGraphModel[DrainedHistory]):
    """Median GPU time + median handoff of drained executions x share of executions with completion feedback.

    The share is of the graph's last ordinary executions; refreshes and acceptance probes
    feed the times, not the share. A pipelined round needs no feedback and is charged nothing.
    """

    name = "drained_share"

    def __init__(
        self,
        *,
        gpu_window: int = DEFAULT_WINDOW,
        handoff_window: int = DEFAULT_WINDOW,
        share_window: int = DEFAULT_WINDOW,
        expiry_ns: int = DEFAULT_EXPIRY_NS,
    ) -> None:
        """`handoff_window`: drained executions in the median. `share_window`: ordinary executions in the share."""
        super().__init__(gpu_window=gpu_window, expiry_ns=expiry_ns)
        self.handoff_window = at_least_one("handoff_window", handoff_window)
        self.share_window = at_least_one("share_window", share_window)

    def _new_history(self) -> DrainedHistory:
        return DrainedHistory(
            RollingMedian(self.gpu_window), RollingMedian(self.handoff_window), FeedbackShare(self.share_window)
        )

    def _learn_handoff(self, history: DrainedHistory, measurement: Measurement) -> None:
        if measurement.drained:
            history.handoff.add(max(measurement.wall_time_ns - measurement.gpu_time_ns, 0))  # A5
        if measurement.purpose == Purpose.ORDINARY:
            history.share.add(measurement.completion_feedback)

    def _handoff_ns(self, history: DrainedHistory) -> int:
        return history.share.of(history.handoff.median()) if history.share.count else 0

    def _saved(self, history: DrainedHistory) -> SavedState:
        return {
            "gpu_times_ns": history.gpu.samples(),
            "handoffs_ns": history.handoff.samples(),
            "needed_feedback": list(history.share.flags),
            "measured_at_ns": history.measured_at_ns,
        }

    def _restored(self, saved: SavedState) -> DrainedHistory:
        return DrainedHistory(
            RollingMedian(self.gpu_window, saved["gpu_times_ns"]),
            RollingMedian(self.handoff_window, saved["handoffs_ns"]),
            FeedbackShare(self.share_window, saved["needed_feedback"]),
            saved["measured_at_ns"],
        )
