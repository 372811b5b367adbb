"""When to doubt a charge: how long a charged graph that is not used waits until it is offered uncharged."""

from math import isqrt
from typing import NamedTuple

PERCENT = 100


class RetrySettings(NamedTuple):
    """A retry costs the device an idle gap if the host is still slow; not retrying costs what recovery would bring.

    With a retry every `t`, of cost `c`, in a host that changes once in `T`, recovery being
    worth the share `g` of the throughput, both costs together are least at
    `t = sqrt(2 c T / g)`. The same root is known from inspection intervals in maintenance.
    """

    first_ns: int = 2_000_000_000
    """Wait before the first retry at most, so that a burst is soon over."""
    longest_ns: int = 30_000_000_000
    """Wait at most."""
    change_ns: int = 60_000_000_000
    """`T`: the host is taken to change that often, or as seldom as the charge has lasted, if that is longer."""
    gain_percent: int = 14
    """`g`: what recovery is taken to be worth, in per cent of the throughput."""
    cost_times: int = 170
    """Never sooner than this many times `c`: retries in vain take no more than 0.6 % of the time."""

    def wait_ns(self, cost_ns: int, charged_for_ns: int, luck: int) -> int:
        """Time until the next retry.

        Args:
            cost_ns: Idle time that a retry in vain costs.
            charged_for_ns: How long the graph has been charged.
            luck: Any number; its last three digits keep retries out of step with what happens periodically.
        """
        change_ns = max(charged_for_ns, self.change_ns)
        wait_ns = max(isqrt(2 * PERCENT * cost_ns * change_ns // self.gain_percent), self.cost_times * cost_ns)
        longest_ns = self.longest_ns if 2 * charged_for_ns > self.first_ns else self.first_ns
        return min(wait_ns, longest_ns) * (750 + luck % 1000 // 2) // 1000
