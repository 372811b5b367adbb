"""Hosts whose clocks are off, found from what they sent: `clock_offsets.sql` has how."""

import threading
import time
from datetime import datetime
from importlib.resources import files
from typing import Final, NamedTuple

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.errors import CollectorError
from collector.store.client import StoreClient

THRESHOLD_S: Final = 30.0
"""A clock counts as off beyond this: batches and retries of a healthy sender stay below."""

_LOOK_EVERY_S: Final = 30.0


class ClockOffset(NamedTuple):
    """One host whose clock is off."""

    host: str
    """Its name; the engine instance's where it has none."""
    offset_s: float
    """Its clock - ours."""
    since: datetime
    """Arrival of the first executions that told so, within the last day."""


def clock_offsets(client: Client, threshold_s: float = THRESHOLD_S) -> list[ClockOffset]:
    """The hosts whose clocks are off now, the furthest first, 100 at most.

    Raises:
        ClickHouseError: as it comes.
    """
    query = files("collector.telemetry").joinpath("clock_offsets.sql").read_text("utf-8")
    return [ClockOffset(*row) for row in client.query(query, parameters={"threshold_s": threshold_s}).result_rows]


class ClockWatch:
    """The same for whoever asks often: looked up every 30 seconds at most."""

    def __init__(self, store: StoreClient) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._looked_at = float("-inf")
        self._offsets: list[ClockOffset] = []

    def offsets(self) -> list[ClockOffset]:
        """As of the last look; empty while the store is away. Waits for the store only in the one call that looks."""
        if self._lock.acquire(blocking=False):
            try:
                if time.monotonic() - self._looked_at > _LOOK_EVERY_S:
                    self._looked_at = time.monotonic()
                    self._offsets = self._look()
            finally:
                self._lock.release()
        return self._offsets

    def _look(self) -> list[ClockOffset]:
        try:
            with self._store.using() as client:
                return clock_offsets(client)
        except (CollectorError, ClickHouseError):
            return []
