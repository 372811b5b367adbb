"""What an engine's log says of a collector that is away: once at the beginning, and once when it is over."""

import logging
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Outage:
    """Tells outages: an engine's log is not to be filled by one, and is to say what it cost.

    Belongs to the background thread. An outage is over once all that waited when the collector came back is sent.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds that only grow."""
        self._clock = clock
        self._began_s: float | None = None
        self._lost_before = 0
        self._away_s = 0.0
        self._waited = 0
        self._left: int | None = None
        """Of what waited, how much is not sent yet; None while the collector is away."""

    def fails(self, where: str, error: Exception, lost: int) -> None:
        """An attempt failed. `lost`: records lost so far, in all."""
        if self._began_s is None:
            self._began_s, self._lost_before = self._clock(), lost
            logger.warning("graph executions do not reach %s: %s", where, error)
        self._left = None

    def reached(self, where: str, sent: int, waiting: int, lost: int) -> None:
        """A batch of `sent` records was taken, and `waiting` more are in the buffer."""
        if self._began_s is None:
            return
        if self._left is None:
            self._away_s = self._clock() - self._began_s
            self._waited = self._left = sent + waiting
        self._left -= sent
        if self._left <= 0:
            told = (where, self._away_s, self._waited, lost - self._lost_before)
            logger.warning("graph executions reach %s again, after %.1f s: %d waited and are sent, %d were lost", *told)
            self._began_s = None
