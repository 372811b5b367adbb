"""A client of the store for one purpose, opened when it is first needed and until that succeeds."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError

from collector.acceptance import StoreUnavailableError
from collector.errors import CollectorError
from collector.store.clickhouse import first_line

log = structlog.get_logger(__name__)

_PING_EVERY_S: Final = 2.0
_LONG_S: Final = 3.0


class StoreClient:
    """One client, used by one thread at a time.

    Args:
        open_client: Opens a client that is used for nothing else; raises `CollectorError` or `ClickHouseError`.
        wait_s: How long a thread waits for the one before it.
        ping_every_s: How long an answer of `trouble` holds.
        close_within_s: How long `close` waits for a thread that uses it; None is to its end, which a server that hangs puts
            off by minutes.
    """

    def __init__(
        self,
        open_client: Callable[[], Client],
        wait_s: float = 30.0,
        ping_every_s: float = _PING_EVERY_S,
        close_within_s: float | None = None,
    ) -> None:
        self._open_client = open_client
        self._wait_s = wait_s
        self._ping_every_s = ping_every_s
        self._close_within_s = close_within_s
        self._client: Client | None = None
        self._one_at_a_time = threading.Lock()
        self._pinging = threading.Lock()
        self._pinged_at = float("-inf")
        self._trouble = ""

    @contextmanager
    def using(self) -> Iterator[Client]:
        """The client, for this thread alone.

        Raises:
            StoreUnavailableError: the store cannot be opened, or another thread takes too long.
        """
        if not self._one_at_a_time.acquire(timeout=self._wait_s):
            raise StoreUnavailableError("the store is busy")
        try:
            yield self._opened()
        finally:
            self._one_at_a_time.release()

    def trouble(self) -> str:
        """Why the store does not answer; empty when it does. Asked at most every `ping_every_s`, however often called.

        Waits for the store only in the one call that asks; others are told what was found last, or that it takes long.
        """
        if not self._pinging.acquire(blocking=False):
            waiting_s = time.monotonic() - self._pinged_at
            return self._trouble or (
                f"ClickHouse has not answered for {waiting_s:.0f} s" if waiting_s > _LONG_S else ""
            )
        try:
            if time.monotonic() - self._pinged_at > self._ping_every_s:
                self._pinged_at = time.monotonic()
                self._trouble = self._ping()
        finally:
            self._pinging.release()
        return self._trouble

    def _ping(self) -> str:
        try:
            with self.using() as client:
                client.query("SELECT 1")
        except (CollectorError, ClickHouseError) as error:
            return f"ClickHouse does not answer: {first_line(error)}"
        return ""

    def close(self) -> None:
        """Close the client, if one was opened. The next use opens another one. One that is still in use is left to its thread."""
        within_s = self._close_within_s
        if not self._one_at_a_time.acquire(timeout=-1 if within_s is None else within_s):
            log.warning("ClickHouse owes an answer that is not waited for", waited_s=within_s)
            return
        try:
            client, self._client = self._client, None
        finally:
            self._one_at_a_time.release()
        if client:
            client.close()

    def _opened(self) -> Client:
        try:
            self._client = self._client or self._open_client()
        except (CollectorError, ClickHouseError) as error:
            raise StoreUnavailableError(first_line(error)) from error
        return self._client
