"""`idle_gap`: charges the idle time of the device that a graph really causes, and one stumble never."""

from math import isqrt
from typing import NamedTuple

from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.drained_share import DrainedShare, FeedbackShare
from engine_hooks.cost_model.host_time import HostTime
from engine_hooks.cost_model.lateness import Lateness, LatenessSettings
from engine_hooks.cost_model.model import Estimate, Measurement
from engine_hooks.cost_model.per_graph import DEFAULT_EXPIRY_NS, DEFAULT_WINDOW, at_least_one

OFFERS_APART = 4
"""An offer that nobody took is made again after this many times the charged cost."""


class Charge(NamedTuple):
    """What a graph with which the host is late is charged, and when it is offered uncharged."""

    estimate: Estimate
    lowest: Estimate
    """With the least host time of late."""
    offered_from_ns: int
    offered_every_ns: int


class IdleGap(DrainedShare):
    """`drained_share` + the time by which the host is systematically slower than the graph on the device."""

    name = "idle_gap"

    def __init__(
        self,
        *,
        gpu_window: int = DEFAULT_WINDOW,
        handoff_window: int = DEFAULT_WINDOW,
        share_window: int = DEFAULT_WINDOW,
        expiry_ns: int = DEFAULT_EXPIRY_NS,
        late_rounds: int = 6,
        late_rounds_at_first: int = 3,
        on_time_weight: int = 3,
        late_window: int = 16,
        retry_after_ns: int = 2_000_000_000,
        retry_after_max_ns: int = 30_000_000_000,
        retry_horizon_ns: int = 60_000_000_000,
        retry_gain: int = 16,
    ) -> None:
        super().__init__(
            gpu_window=gpu_window, handoff_window=handoff_window, share_window=share_window, expiry_ns=expiry_ns
        )
        self.lateness_settings = LatenessSettings(late_rounds, late_rounds_at_first, on_time_weight, late_window)
        self.retry_after_ns = at_least_one("retry_after_ns", retry_after_ns)
        self.retry_after_max_ns = at_least_one("retry_after_max_ns", retry_after_max_ns)
        self.retry_horizon_ns = retry_horizon_ns
        self.retry_gain = retry_gain
        self._host = HostTime()
        self._lateness: dict[str, Lateness] = {}
        self._charges: dict[str, Charge] = {}

    def record(self, measurement: Measurement) -> None:
        """Learn from one finished execution."""
        super().record(measurement)
        level_ns = self._host.level_ns
        host_ns = self._host.of(measurement)
        if host_ns is not None:
            self._learn_host_time(measurement, host_ns, level_ns)

    def estimate(self, graph: str, now_ns: int) -> Estimate | None:
        charge = self._charges.get(graph)
        if charge is None:
            return super().estimate(graph, now_ns)
        estimate, lowest, from_ns, every_ns = charge
        gpu_ns = estimate.gpu_ns
        if now_ns < from_ns or (now_ns - from_ns) % every_ns >= gpu_ns:
            return estimate
        return lowest if self._host.level_ns > gpu_ns else super().estimate(graph, now_ns)

    def _learn_host_time(self, measurement: Measurement, host_ns: int, level_ns: int) -> None:
        graph, now_ns = measurement.graph, measurement.now_ns
        gpu_ns = self._histories[graph].gpu.median()
        lateness = self._lateness.get(graph)
        if lateness is None:
            lateness = self._lateness[graph] = Lateness(self.lateness_settings)
        was_charged = lateness.charged
        if host_ns <= gpu_ns - gpu_ns // 8:
            if measurement.purpose != Purpose.ORDINARY and measurement.drained:
                return  # a replay says nothing of a host that serves
            lateness.on_time()
            if was_charged and not lateness.charged:
                del self._charges[graph]
                self._retry_all(now_ns)
            return
        retried = was_charged and now_ns >= lateness.retry_at_ns
        lateness.late(host_ns, gpu_ns, believe=level_ns > gpu_ns and bool(self._charges), afresh=retried)
        if not lateness.charged:
            return
        if not was_charged:
            lateness.since_ns = now_ns
        charge_ns = max(lateness.hosts.median() - gpu_ns, 0)
        wait_ns = self._wait_ns(max(charge_ns, measurement.wall_time_ns - measurement.gpu_time_ns), now_ns - lateness.since_ns)
        lateness.retry_at_ns = now_ns + wait_ns
        if retried:
            lateness.retry_at_ns += wait_ns // 4
            self._postpone_others(graph, now_ns + wait_ns)
        self._charge(graph)

    def _wait_ns(self, cost_ns: int, charged_for_ns: int) -> int:
        horizon_ns = max(charged_for_ns, self.retry_horizon_ns)
        wait_ns = isqrt(self.retry_gain * cost_ns * horizon_ns)
        return min(wait_ns, max(charged_for_ns, self.retry_after_ns), self.retry_after_max_ns)

    def _retry_all(self, now_ns: int) -> None:
        for graph, charge in self._charges.items():
            self._lateness[graph].retry_at_ns = now_ns
            self._charges[graph] = charge._replace(offered_from_ns=now_ns)

    def _postpone_others(self, retried: str, until_ns: int) -> None:
        for graph, charge in self._charges.items():
            if graph != retried and charge.offered_from_ns < until_ns:
                self._lateness[graph].retry_at_ns = until_ns
                self._charges[graph] = charge._replace(offered_from_ns=until_ns)

    def _charge(self, graph: str) -> None:
        lateness, history = self._lateness[graph], self._histories[graph]
        base = history.estimate or self._work_out(history)
        estimate = _with_host_time(base, lateness.hosts.median(), history.share)
        lowest = _with_host_time(base, min(lateness.hosts.samples()), history.share)
        self._charges[graph] = Charge(estimate, lowest, lateness.retry_at_ns, OFFERS_APART * estimate.total_ns)


def _with_host_time(base: Estimate, host_ns: int, share: FeedbackShare) -> Estimate:
    """Pipelined rounds wait for the host; the others are charged their handoff already."""
    late_ns = max(host_ns - base.gpu_ns, 0)
    late_ns -= share.of(late_ns)
    return base._replace(total_ns=base.total_ns + late_ns, handoff_ns=base.handoff_ns + late_ns)
