"""How long the host took to submit a round, seen from submissions and completions alone."""

from typing import Any

from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.model import Measurement
from engine_hooks.cost_model.rolling_median import RollingMedian

RECENT_ROUNDS = 5
"""Rounds whose median host time says how slow the host is in general: two stumbles cannot move it."""


class HostTime:
    """Measures the host's share of each round, whatever graph it is and whether or not the device idled.

    With two submissions in flight the host can start on a round when it has submitted the
    one before and has observed the one before that; with completion feedback it has to
    observe the one before. From then until the submission is the host time. A host time
    above the GPU time idles the device, once such rounds follow one another.
    """

    __slots__ = ("_before", "recent")

    def __init__(self, recent_ns: list[int] | None = None, before: tuple[Any, ...] | None = None) -> None:
        self.recent = RollingMedian(RECENT_ROUNDS, recent_ns or ())
        self._before = before
        """Of the round before: submission, observed completion, that of the one before it, feedback, GPU time."""

    @property
    def level_ns(self) -> int:
        """What the host takes for a round at present, of any graph; 0 until there are enough rounds to say."""
        return self.recent.median() if len(self.recent) == RECENT_ROUNDS else 0

    def of(self, measurement: Measurement) -> int | None:
        """The host time of this round, which is the next in order; `None` where it cannot be told."""
        before = self._before
        _, gpu_time_ns, _, _, feedback, purpose, now_ns, after_idle, duration_ns = measurement
        submitted_ns = None if duration_ns is None else now_ns - duration_ns
        self._before = (submitted_ns, now_ns, before and before[1], feedback, gpu_time_ns)
        if before is None or after_idle:
            return None
        if submitted_ns is None or before[0] is None:
            host_ns = _from_gap(measurement, before[3], before[4])
        else:
            host_ns = _from_submission(submitted_ns, before, purpose)
        if host_ns is not None:
            self.recent.add(host_ns)
        return host_ns

    def save(self) -> dict[str, Any]:
        """The whole state as plain data."""
        return {"recent_ns": self.recent.samples(), "before": self._before and list(self._before)}


def _from_submission(submitted_ns: int, before: tuple[Any, ...], purpose: Purpose) -> int | None:
    submitted_before_ns, observed_before_ns, observed_earlier_ns, feedback_before, _ = before
    # Results that a round needs are there at the latest at the very instant of its submission. A calibration waits for
    # the round before it, although nothing of that round is needed: seen at that instant, it was not waited for.
    waited = observed_before_ns < submitted_ns and (feedback_before or purpose != Purpose.ORDINARY)
    waited = waited or (feedback_before and observed_before_ns == submitted_ns)
    observed_ns = observed_before_ns if waited else observed_earlier_ns
    if observed_ns is None:
        return None
    host_ns: int = submitted_ns - (observed_ns if observed_ns > submitted_before_ns else submitted_before_ns)
    return host_ns if host_ns > 0 else 0


def _from_gap(measurement: Measurement, feedback_before: bool, gpu_before_ns: int) -> int | None:
    """Without the submission only lateness shows: the device had run the round before and then idled."""
    if feedback_before or measurement.purpose != Purpose.ORDINARY:
        return None
    gap_ns = measurement.wall_time_ns - measurement.gpu_time_ns
    return gpu_before_ns + gap_ns if gap_ns > 0 else 0
