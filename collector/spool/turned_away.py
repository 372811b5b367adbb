"""Requests that the spool or its disk had no room for: told when that begins and when it ends."""

import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

log = structlog.get_logger(__name__)

_LASTS_S: Final = 60.0
"""When nobody was turned away for so long, nobody is any more: whoever sent too much has sent it elsewhere, or less."""


class TurnedAway:
    """What was turned away and may still be. Any thread may call.

    There may be room for small requests and none for large ones, so it ends once there is room for the largest.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._ever = 0
        self._requests = 0
        self._bytes = 0
        self._since = 0.0
        self._last_at = 0.0

    def add(self, reason: str, size: int) -> None:
        """There was no room for so many bytes. The log leaves out what repeats (collector.telemetry.logs)."""
        log.warning("requests are turned away", error=reason, bytes=size)
        with self._lock:
            self._last_at = self._now_s()
            self._since = self._since if self._requests else self._last_at
            self._ever += 1
            self._requests += 1
            self._bytes = max(self._bytes, size)

    @property
    def ever(self) -> int:
        """Requests turned away since the process began: what `end` wants from before room was looked for."""
        return self._ever

    def largest_bytes(self) -> int:
        """What has to have room before this is over; 0 where it is."""
        with self._lock:
            ever = self._ever
            largest = self._bytes
            is_over = self._requests and self._now_s() - self._last_at >= _LASTS_S
        if is_over:
            self.end(ever)
        return 0 if is_over else largest

    def end(self, ever: int) -> None:
        """There is room again, or nobody asks for it; unless more were turned away than had been `ever`, whatever was seen before."""
        with self._lock:
            if self._ever != ever:
                return
            ended, self._requests, self._bytes = self._requests, 0, 0
            after_s = round(self._now_s() - self._since, 1)
        if ended:
            log.info("requests are taken again", after_s=after_s, turned_away=ended)
