"""The allowance out of which expired graphs are measured again."""


class RefreshCredit:
    """A share of the time that passes, saved up to a cap, spent on refreshes."""

    __slots__ = ("_share", "cap_ns", "saved_at_ns", "saved_ns")

    def __init__(self, share: float, cap_ns: int) -> None:
        self._share = share
        self.cap_ns = cap_ns
        self.saved_ns = 0.0
        self.saved_at_ns: int | None = None

    def accrue(self, now_ns: int) -> None:
        """Earn for the time since the last call; the first call only starts the clock."""
        if self.saved_at_ns is not None:
            saved_ns = self.saved_ns + (now_ns - self.saved_at_ns) * self._share
            self.saved_ns = saved_ns if saved_ns < self.cap_ns else float(self.cap_ns)
        self.saved_at_ns = now_ns

    def spend(self, cost_ns: int) -> bool:
        """Pay `cost_ns` if there is enough; whether it was paid."""
        if cost_ns > self.saved_ns:
            return False
        self.saved_ns -= cost_ns
        return True
