"""A request to a collector until it is taken, by OTLP's rules for failures."""

import math
import random
import threading
import time
from collections.abc import Callable
from typing import Final

from engine_hooks.recorder import variables
from engine_hooks.recorder.connection import Answer, Connection, NotTakenError
from engine_hooks.recorder.grpc_connection import GrpcConnection
from engine_hooks.recorder.http_connection import HttpConnection

_BACKOFF_FIRST_S: Final = 0.2
_BACKOFF_MAX_S: Final = 10.0
_RETRY_AFTER_MAX_S: Final = 300.0
"""No collector keeps a recorder away for longer: one that asks for a year has a wrong clock."""


class OtlpClient:
    """Sends requests over one connection, each again while that may help."""

    def __init__(
        self,
        connection: Connection,
        timeout_s: float,
        *,
        patience_s: float = math.inf,
        attempts_max: float = math.inf,
        random_source: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Sets up; connects with the first request.

        Args:
            connection: where to.
            timeout_s: of one attempt.
            patience_s: of one request, all its attempts and the waits between them included.
            attempts_max: of one request.
            random_source: spreads the waits.
            clock: seconds that only grow.
        """
        self.connection = connection
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._attempts_max = attempts_max
        self._random = random_source or random.Random()  # noqa: S311 - spreads retries, protects nothing
        self._clock = clock
        self.is_closed = False
        """Whether `close` was called."""
        self._woken = threading.Event()

    def send(self, body: bytes, goes_on: Callable[[NotTakenError], bool] = lambda _: True) -> Answer:
        """Send one request.

        Args:
            body: an `ExportTraceServiceRequest`.
            goes_on: told of each failure that may pass; whether to try again.

        Raises:
            NotTakenError: the collector refused it for good, patience or `goes_on` ended, or the client was closed;
                certain only if every attempt's failure was.
        """
        deadline = self._clock() + self._patience_s
        attempt = 0
        is_certain = True
        while True:
            attempt += 1
            try:
                return self.connection.post(body, min(self._timeout_s, max(deadline - self._clock(), 0.001)))
            except NotTakenError as error:
                is_certain = error.is_certain = is_certain and error.is_certain
                wait_s = self._wait_s(attempt, error.retry_after_s)
                last = attempt >= self._attempts_max or wait_s >= deadline - self._clock()
                if self.is_closed or not error.retryable or last or not goes_on(error):
                    raise
                if self._woken.wait(wait_s):
                    self._woken.clear()
                    attempt = 0
                if self.is_closed:
                    raise

    def hurry(self) -> None:
        """End the wait before the next attempt, and begin with short waits again. Any thread may call it."""
        self._woken.set()

    def close(self) -> None:
        """End the connection; a request under way fails. Any thread may call it, and again."""
        self.is_closed = True
        self._woken.set()
        self.connection.close()

    def _wait_s(self, attempt: int, asked_s: float | None) -> float:
        """What the collector asked for, and never less than our own: an answer of 0 must not make us spin."""
        return max(self._backoff_s(attempt), min(asked_s or 0.0, _RETRY_AFTER_MAX_S))

    def _backoff_s(self, attempt: int) -> float:
        """Twice as long each time; spread, so that a fleet does not come back all at once."""
        doublings = min(attempt - 1, 16)  # beyond, the longest wait is long reached, and numbers overflow
        return float(min(_BACKOFF_FIRST_S * 2**doublings, _BACKOFF_MAX_S)) * self._random.uniform(0.8, 1.2)


def open_client(grpc_endpoint: str | None = None) -> OtlpClient:
    """A patient client by the variables `OTEL_EXPORTER_OTLP_*`; to `grpc_endpoint` over gRPC if that is given.

    Raises:
        SendError: a variable cannot be used.
    """
    timeout_s = variables.timeout_s()
    if grpc_endpoint is None and variables.protocol() == variables.HTTP:
        return OtlpClient(HttpConnection(variables.http_endpoint()), timeout_s)
    return OtlpClient(GrpcConnection(grpc_endpoint or variables.grpc_endpoint()), timeout_s)
