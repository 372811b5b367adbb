"""Measuring expired graphs again, out of an allowance."""

from collections.abc import Sequence
from math import ceil

from engine_hooks.cost_model.model import Estimate

LOOK_AGAIN_NS = 1_000_000_000
"""Estimates are looked through for expired ones at least this often."""


class Refreshes:
    """Which expired graph to run next, if the credit saved up pays for it.

    Credit is a share of the time that passes, up to a cap. The oldest expired graph comes
    first; one dearer than the cap is refreshed for a full credit, else it would stay
    expired, and whatever it was charged by mistake, for ever.
    """

    def __init__(self, *, share: float, credit_max_ns: int, retry_ns: int) -> None:
        """Settings as in `SchedulerSettings`."""
        self._share = share
        self._credit_max_ns = credit_max_ns
        self._retry_ns = retry_ns
        self._credit_ns = 0.0
        self._credited_at_ns: int | None = None
        self._sent_ns: dict[str, int] = {}
        self.look_at_ns = 0
        """Before this instant there is nothing to do."""

    def pick(self, names: Sequence[str], estimates: Sequence[Estimate], best: int, now_ns: int) -> int:
        """Index of the graph to refresh, its cost paid; `best`, whose own use renews it, if there is none.

        Looks at nothing before `look_at_ns`: an estimate's expiry only ever moves later.
        """
        self._earn(now_ns)
        self.look_at_ns = now_ns + LOOK_AGAIN_NS
        expired = []
        for number, estimate in enumerate(estimates):
            if estimate.expires_at_ns > now_ns:
                self.look_at_ns = min(self.look_at_ns, estimate.expires_at_ns)
            elif number != best and not self._on_its_way(names[number], now_ns):
                expired.append((estimate.measured_at_ns, number))
        if not expired or not self._share:
            return best
        oldest = min(expired)[1]
        cost_ns = min(estimates[oldest].total_ns, self._credit_max_ns)
        if cost_ns > self._credit_ns:
            self.look_at_ns = min(self.look_at_ns, now_ns + ceil((cost_ns - self._credit_ns) / self._share))
            return best
        self._credit_ns -= cost_ns
        self._sent_ns[names[oldest]] = now_ns
        self.look_at_ns = now_ns
        return oldest

    def _earn(self, now_ns: int) -> None:
        """Save up for the time since the last look; the first look only starts the clock."""
        if self._credited_at_ns is not None:
            earned_ns = (now_ns - self._credited_at_ns) * self._share
            self._credit_ns = min(self._credit_ns + earned_ns, float(self._credit_max_ns))
        self._credited_at_ns = now_ns

    def _on_its_way(self, name: str, now_ns: int) -> bool:
        sent_ns = self._sent_ns.get(name)
        return sent_ns is not None and now_ns - sent_ns < self._retry_ns
