"""From device events to the host's clock, by anchors that are renewed."""

from typing import Final, Generic

from engine_hooks.adapters.device.event_source import EventSource, EventT, HostInstant

UNCERTAINTY_MAX_NS: Final = 100_000
"""An anchor less certain than this only replaces none at all."""
RETRY_NS: Final = 100_000_000
"""After a failed attempt the next is made so much later."""


class HostClock(Generic[EventT]):
    """Places device events on the host's monotonic clock.

    Elapsed times are exact only over short distances (CUDA gives milliseconds as float32:
    0.25 us of rounding after two seconds, 250 us after an hour) and the two clocks drift
    apart, so the anchor is renewed every few seconds. A failed renewal keeps the old anchor.
    """

    def __init__(self, source: EventSource[EventT], interval_ns: int) -> None:
        """Makes two events; the first `renew` takes the first anchor."""
        self._source = source
        self._interval_ns = interval_ns
        self._event, self._spare = source.new_event(), source.new_event()
        self._instant: HostInstant | None = None
        self.due_ns = 0
        """From then on, on the host's monotonic clock, `renew` takes another anchor."""

    @property
    def uncertainty_ns(self) -> int | None:
        """How far off host times may be; `None` without an anchor."""
        return self._instant.uncertainty_ns if self._instant else None

    def renew(self, now_ns: int) -> None:
        """Take another anchor; where the device cannot give one now, or fails, the old one stays."""
        self.due_ns = now_ns + RETRY_NS
        try:
            instant = self._source.anchor(self._spare)
        except Exception:  # a device that is broken fails at its executions too, and is counted there
            return
        if instant is None or (self._instant and instant.uncertainty_ns > UNCERTAINTY_MAX_NS):
            return
        self._event, self._spare = self._spare, self._event
        self._instant = instant
        self.due_ns = now_ns + self._interval_ns

    def host_ns(self, event: EventT) -> int | None:
        """When a fired event fired, on the host's monotonic clock; `None` without an anchor."""
        if self._instant is None:
            return None
        return self._instant.host_ns + self._source.elapsed_ns(self._event, event)
