"""`idle_gap`: charges the idle time of the device that a graph really causes, and one stumble never.

Decision record 0004 tells what was tried and what each part is worth.
"""

from typing import NamedTuple

from engine_hooks.contract.names import Purpose
from engine_hooks.cost_model.drained_share import DrainedShare, FeedbackShare
from engine_hooks.cost_model.errors import StateError
from engine_hooks.cost_model.host_time import HostTime
from engine_hooks.cost_model.lateness import Lateness, LatenessSettings, restored_lateness
from engine_hooks.cost_model.model import Estimate, Measurement, SavedState
from engine_hooks.cost_model.per_graph import DEFAULT_EXPIRY_NS, DEFAULT_WINDOW, at_least_one
from engine_hooks.cost_model.retries import RetrySettings

OFFERS_APART = 4
"""An offer that nobody took is made again after this many times the charged cost."""


class Charge(NamedTuple):
    """What a graph is charged with which the host is late, and when it is offered for less."""

    estimate: Estimate
    offered_from_ns: int
    offered_every_ns: int


class IdleGap(DrainedShare):
    """`drained_share` + the time by which the host is systematically slower than the device.

    In the long run a pipelined round costs the longer of GPU time and host time. The host
    time of each graph is measured at every round; many late rounds in a row charge the
    graph, one round on time clears it (`Lateness`). A charged graph that is not used is
    offered uncharged now and then (`RetrySettings`), for one round: the offer is over
    before a slow host has planned it.

    Graphs share what they know. While the host is slow in general one late round convicts
    a further graph, and a charged one is offered for no less than its best round; a retry
    in vain puts off the retries of the others, one on time brings them forward.
    """

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
        late_window: int = DEFAULT_WINDOW,
        retry_first_ns: int = 2_000_000_000,
        retry_longest_ns: int = 30_000_000_000,
        host_changes_every_ns: int = 60_000_000_000,
        recovery_gain_percent: int = 14,
        retry_cost_times: int = 170,
    ) -> None:
        """Windows of `DrainedShare`, counts of `LatenessSettings`, times of `RetrySettings`.

        Raises `SettingError` for any below 1.
        """
        super().__init__(
            gpu_window=gpu_window, handoff_window=handoff_window, share_window=share_window, expiry_ns=expiry_ns
        )
        self.lateness_settings = LatenessSettings(
            at_least_one("late_rounds", late_rounds),
            at_least_one("late_rounds_at_first", late_rounds_at_first),
            at_least_one("on_time_weight", on_time_weight),
            at_least_one("late_window", late_window),
        )
        self.retry_settings = RetrySettings(
            at_least_one("retry_first_ns", retry_first_ns),
            at_least_one("retry_longest_ns", retry_longest_ns),
            at_least_one("host_changes_every_ns", host_changes_every_ns),
            at_least_one("recovery_gain_percent", recovery_gain_percent),
            at_least_one("retry_cost_times", retry_cost_times),
        )
        self._host = HostTime()
        self._lateness: dict[str, Lateness] = {}
        self._charges: dict[str, Charge] = {}

    def record(self, measurement: Measurement) -> None:
        """Learn from one finished execution."""
        super().record(measurement)
        slow_ns = self._host.level_ns if self._charges else 0
        host_ns = self._host.of(measurement)
        if host_ns is not None:
            self._learn_host_time(measurement, host_ns, slow_ns)
        elif measurement.graph in self._charges:
            self._charge(measurement.graph)

    def estimate(self, graph: str, now_ns: int) -> Estimate | None:
        """The cost of `graph` as believed at `now_ns`; `None` if it was never measured."""
        history = self._histories.get(graph)
        if history is None:
            return None
        uncharged = history.estimate or self._work_out(history)
        charge = self._charges.get(graph) if self._charges else None
        if charge is None:
            return uncharged
        estimate, from_ns, every_ns = charge
        gpu_ns = estimate.gpu_ns
        # A host that is still slow takes longer than the offer lasts: it is taken up once at most.
        if now_ns < from_ns or (now_ns - from_ns) % every_ns >= gpu_ns:
            return estimate
        lateness = self._lateness[graph]
        if self._host.level_ns <= gpu_ns or not lateness.confirmed:
            return uncharged
        # The host is slow in general: offered for its best round of late, lest a bad first one decide for ever.
        return _with_host_time(uncharged, lateness.hosts.least(), history.share)

    def save(self) -> SavedState:
        """The whole state as plain data."""
        lateness = {graph: lateness.save() for graph, lateness in self._lateness.items()}
        return {**super().save(), "lateness": lateness, "host": self._host.save()}

    def restore(self, state: SavedState) -> None:
        """Take over a saved state in place of the present one."""
        before = self._histories
        super().restore(state)
        try:
            settings = self.lateness_settings
            lateness = {graph: restored_lateness(settings, saved) for graph, saved in state["lateness"].items()}
            host = HostTime(**state["host"])
            missing = lateness.keys() - self._histories.keys()
        except (KeyError, TypeError, AttributeError) as error:
            self._histories = before
            raise StateError(
                f"the saved state of {self.name} is damaged: {error!r}; start from an empty one"
            ) from error
        if missing:
            self._histories = before
            raise StateError(f"the saved state of {self.name} lacks the times of {', '.join(sorted(missing))}")
        self._lateness, self._host, self._charges = lateness, host, {}
        for graph in lateness:
            self._charge(graph)

    def _learn_host_time(self, measurement: Measurement, host_ns: int, slow_ns: int) -> None:
        graph, gpu_ns = measurement.graph, self._histories[measurement.graph].gpu.median()
        lateness = self._lateness.get(graph)
        if lateness is None:
            lateness = self._lateness[graph] = Lateness(self.lateness_settings)
        refreshed = measurement.purpose == Purpose.REFRESH
        if host_ns > gpu_ns:
            self._learn_late(measurement, lateness, host_ns, believe=slow_ns > gpu_ns, refreshed=refreshed)
        elif not (refreshed and measurement.drained):  # a replay says nothing of a host that serves
            cleared = lateness.on_time(host_ns, gpu_ns)
            if cleared or refreshed:
                self._retry_others(graph, measurement.now_ns)
        if lateness.score or self._charges:
            self._charge(graph)

    def _learn_late(
        self, measurement: Measurement, lateness: Lateness, host_ns: int, *, believe: bool, refreshed: bool
    ) -> None:
        now_ns, was_charged = measurement.now_ns, lateness.charged
        retried = was_charged and now_ns >= lateness.retry_at_ns
        lateness.late(host_ns, believe=believe, afresh=retried)
        if not lateness.charged:
            return
        if not was_charged:
            lateness.since_ns = now_ns
        gpu_ns, wall_ns = measurement.gpu_time_ns, measurement.wall_time_ns
        cost_ns = max(lateness.hosts.median(), wall_ns) - gpu_ns
        wait_ns = self.retry_settings.wait_ns(max(cost_ns, 0), now_ns - lateness.since_ns, wall_ns // 1000)
        lateness.retry_at_ns = now_ns + wait_ns
        if retried or refreshed:
            lateness.retry_at_ns += wait_ns // 4  # the others come first
            self._postpone_others(measurement.graph, now_ns + wait_ns)

    def _retry_others(self, graph: str, now_ns: int) -> None:
        for other in self._charges:
            if other != graph:
                self._lateness[other].retry_at_ns = now_ns
                self._charges[other] = self._charges[other]._replace(offered_from_ns=now_ns)

    def _postpone_others(self, graph: str, until_ns: int) -> None:
        for other, charge in self._charges.items():
            if other != graph and charge.offered_from_ns < until_ns:
                self._lateness[other].retry_at_ns = until_ns
                self._charges[other] = charge._replace(offered_from_ns=until_ns)

    def _charge(self, graph: str) -> None:
        """Bring the charge of `graph` up to date."""
        lateness, history = self._lateness[graph], self._histories[graph]
        if not lateness.charged:
            self._charges.pop(graph, None)
            return
        base = history.estimate or self._work_out(history)
        estimate = _with_host_time(base, lateness.hosts.median(), history.share)
        self._charges[graph] = Charge(estimate, lateness.retry_at_ns, OFFERS_APART * estimate.total_ns)


def _with_host_time(base: Estimate, host_ns: int, share: FeedbackShare) -> Estimate:
    """Pipelined rounds wait for the host; those with completion feedback are charged their handoff already."""
    total_ns, gpu_ns, handoff_ns, measured_at_ns, expires_at_ns = base
    late_ns = max(host_ns - gpu_ns, 0)
    late_ns -= share.of(late_ns)
    return Estimate(total_ns + late_ns, gpu_ns, handoff_ns + late_ns, measured_at_ns, expires_at_ns)
