"""Stumbles of the host that are asked for: `60ms@10s`."""

import re
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from engine_hooks.torch_demo.errors import DemoOptionError

LONGEST_S: Final = 10.0
_DELAY: Final = re.compile(r"(\d+(?:\.\d+)?)ms@(\d+(?:\.\d+)?)s")


class HostDelay(NamedTuple):
    """The host stumbles once."""

    at_s: float
    """Seconds after the start."""
    duration_s: float


class MetDelay(NamedTuple):
    """A stumble that has happened."""

    delay: HostDelay
    began_unix_ns: int


def host_delay_of(text: str) -> HostDelay:
    """`60ms@10s`: a stumble of 60 ms ten seconds after the start.

    Raises:
        DemoOptionError: it is written otherwise, or longer than 10 s.
    """
    found = _DELAY.fullmatch(text.strip())
    if found is None or float(found[1]) > LONGEST_S * 1e3:
        raise DemoOptionError(f"--host-delay {text!r}: write it as 60ms@10s, at most {LONGEST_S:.0f} s long")
    return HostDelay(float(found[2]), float(found[1]) / 1e3)


class HostDelays:
    """Stumbles waiting for the round they hit: the first speculative one planned from their second on."""

    def __init__(self, delays: Iterable[HostDelay], sleep: Callable[[float], None] = time.sleep) -> None:
        self._waiting = sorted(delays, reverse=True)
        self.asked = len(self._waiting)
        self._sleep = sleep
        self.met: list[MetDelay] = []
        """Those that have happened."""

    def meet(self, elapsed_s: float) -> None:
        """Stumble now, if it is time; the host does nothing meanwhile."""
        if self._waiting and elapsed_s >= self._waiting[-1].at_s:
            delay = self._waiting.pop()
            self.met.append(MetDelay(delay, time.time_ns()))
            self._sleep(delay.duration_s)
