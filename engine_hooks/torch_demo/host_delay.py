"""Stumbles of the host that are asked for: `60ms@10s`."""

import re
import time
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Final, NamedTuple

from engine_hooks.torch_demo.errors import DemoOptionError

LONGEST_S: Final = 10.0
_DELAY: Final = re.compile(r"(-?\d+(?:\.\d+)?)ms@(-?\d+(?:\.\d+)?)s")


class HostDelay(NamedTuple):
    """The host stumbles once."""

    at_s: float
    """Seconds after the start."""
    duration_s: float

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.duration_s * 1e3:g}ms@{self.at_s:g}s"


class MetDelay(NamedTuple):
    """A stumble that has happened."""

    delay: HostDelay
    began_unix_ns: int


def host_delay_of(text: str) -> HostDelay:
    """`60ms@10s`: a stumble of 60 ms ten seconds after the start.

    Raises:
        DemoOptionError: it is written otherwise, lies before the start, or is no time or more than 10 s long.
    """
    found = _DELAY.fullmatch(text.strip())
    if found is None:
        raise _refused(text, "is no stumble of the host")
    duration_ms, at_s = float(found[1]), float(found[2])
    if not isfinite(at_s):
        raise _refused(text, "lies beyond all time")
    if at_s < 0:
        raise _refused(text, f"lies before the start, at {at_s:g} s")
    if not 0 < duration_ms <= LONGEST_S * 1e3:
        raise _refused(text, f"lasts {duration_ms:g} ms, not more than 0 and at most {LONGEST_S:.0f} s")
    return HostDelay(at_s, duration_ms / 1e3)


def _refused(text: str, why: str) -> DemoOptionError:
    return DemoOptionError(f"--host-delay {text!r} {why}: write it as 60ms@10s, which is 60 ms at second 10")


class HostDelays:
    """Stumbles waiting for the round they hit: the first speculative one planned from their second on."""

    def __init__(self, delays: Iterable[HostDelay], sleep: Callable[[float], None] = time.sleep) -> None:
        self._waiting = sorted(delays, reverse=True)
        self.asked = len(self._waiting)
        self._sleep = sleep
        self.met: list[MetDelay] = []
        """Those that have happened."""

    @property
    def waiting(self) -> list[HostDelay]:
        """Those that have not happened, in order of time."""
        return self._waiting[::-1]

    def meet(self, elapsed_s: float) -> bool:
        """Stumble now, if it is time, and say whether; the host does nothing meanwhile."""
        if not self._waiting or elapsed_s < self._waiting[-1].at_s:
            return False
        delay = self._waiting.pop()
        self.met.append(MetDelay(delay, time.time_ns()))
        self._sleep(delay.duration_s)
        return True
