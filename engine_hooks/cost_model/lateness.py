"""Whether the host is late with one graph, time after time."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from engine_hooks.cost_model.rolling_median import RollingMedian

MARGIN = 8
"""On time by less than an eighth of the GPU time acquits nobody: it may be the scatter of a late host."""


class LatenessSettings(NamedTuple):
    """When lateness counts. Counts of rounds."""

    rounds: int = 6
    """Late rounds in a row until a graph that has been seen on time is charged."""
    rounds_at_first: int = 3
    """The same for a graph that has never been seen on time."""
    on_time_weight: int = 3
    """Late rounds that one round on time makes up for."""
    window: int = 16
    """Late rounds whose median host time is charged."""


class Lateness:
    """One graph's late rounds. Slow to accuse, quick to acquit.

    A round is late if the host took longer for it than the graph runs on the device.
    Several late rounds in a row charge the graph, so that no stumble and no short burst does;
    one round on time clears it, so that a retry costs a single round.
    """

    __slots__ = ("hosts", "late_rounds", "retry_at_ns", "score", "seen_on_time", "settings", "since_ns")

    def __init__(self, settings: LatenessSettings, hosts_ns: Iterable[int] = ()) -> None:
        self.settings = settings
        self.hosts = RollingMedian(settings.window, hosts_ns)
        """Host times of the late rounds."""
        self.late_rounds = 0
        """Late rounds since the last one on time."""
        self.score = 0
        self.seen_on_time = False
        self.since_ns = 0
        """When the graph was charged."""
        self.retry_at_ns = 0
        """From when on the graph is offered for less than it is charged."""

    @property
    def needed(self) -> int:
        """The score from which the graph is charged."""
        return self.settings.rounds if self.seen_on_time else self.settings.rounds_at_first

    @property
    def charged(self) -> bool:
        """Whether the host is systematically late with this graph."""
        return self.score >= self.needed

    @property
    def confirmed(self) -> bool:
        """Whether it is more than a conviction by one round, which may have been a stumble."""
        return self.late_rounds >= self.settings.rounds_at_first

    def late(self, host_ns: int, *, believe: bool, afresh: bool) -> None:
        """Learn of a late round.

        Args:
            host_ns: Its host time.
            believe: This one is enough to charge the graph.
            afresh: It is a retry: if the host took less time than it used to, only this one counts.
        """
        if afresh and host_ns < self.hosts.median():
            self.hosts = RollingMedian(self.settings.window)
        self.hosts.add(host_ns)
        self.late_rounds += 1
        self.score = self.needed if believe else min(self.score + 1, self.needed)

    def on_time(self, host_ns: int, gpu_ns: int) -> bool:
        """Learn of a round on time; whether it cleared a charged graph."""
        if not self.score:
            self.seen_on_time = True
            return False
        if host_ns > gpu_ns - gpu_ns // MARGIN:
            self.hosts.add(host_ns)
            return False
        was_charged = self.charged
        self.score = max(self.score - self.settings.on_time_weight, 0)
        self.seen_on_time = True
        self.late_rounds = 0
        if not self.score:
            self.hosts = RollingMedian(self.settings.window)
        return was_charged and not self.charged

    def save(self) -> dict[str, Any]:
        """The whole state as plain data."""
        return {
            "hosts_ns": self.hosts.samples(),
            "late_rounds": self.late_rounds,
            "score": self.score,
            "seen_on_time": self.seen_on_time,
            "since_ns": self.since_ns,
            "retry_at_ns": self.retry_at_ns,
        }


def restored_lateness(settings: LatenessSettings, saved: dict[str, Any]) -> Lateness:
    """The lateness that `save` gave."""
    lateness = Lateness(settings, saved["hosts_ns"])
    lateness.late_rounds, lateness.score = saved["late_rounds"], saved["score"]
    lateness.seen_on_time = saved["seen_on_time"]
    lateness.since_ns, lateness.retry_at_ns = saved["since_ns"], saved["retry_at_ns"]
    return lateness
