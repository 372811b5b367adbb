"""A request to a collector until it is taken, by OTLP's rules for failures."""

import random
import threading
import time
from typing import Final

from engine_hooks.recorder import variables
from engine_hooks.recorder.connection import Answer, Connection, NotTakenError
from engine_hooks.recorder.grpc_connection import GrpcConnection
from engine_hooks.recorder.http_connection import HttpConnection

_BACKOFF_FIRST_S: Final = 0.2
_BACKOFF_MAX_S: Final = 5.0


class OtlpClient:
    """Sends requests over one connection, each again while that may help and there is time."""

    def __init__(
        self,
        connection: Connection,
        timeout_s: float,
        *,
        attempts_max: int = 8,
        random_source: random.Random | None = None,
    ) -> None:
        """`timeout_s`: of one request, all its attempts and the waits between them included."""
        self.connection = connection
        self._timeout_s = timeout_s
        self._attempts_max = attempts_max
        self._random = random_source or random.Random()  # noqa: S311 - spreads retries, protects nothing
        self._closed = threading.Event()

    def send(self, body: bytes) -> Answer:
        """Send one request.

        Raises:
            NotTakenError: the collector refused it for good, is away for too long, or the client was closed.
        """
        deadline = time.monotonic() + self._timeout_s
        for attempt in range(1, self._attempts_max + 1):
            try:
                return self.connection.post(body, max(deadline - time.monotonic(), 0.001))
            except NotTakenError as error:
                wait_s = self._backoff_s(attempt) if error.retry_after_s is None else error.retry_after_s
                last = attempt == self._attempts_max or wait_s >= deadline - time.monotonic()
                if not error.retryable or last or self._closed.wait(wait_s):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """End the connection; a request under way fails. Any thread may call it, and again."""
        self._closed.set()
        self.connection.close()

    def _backoff_s(self, attempt: int) -> float:
        """Twice as long each time; spread, so that a fleet does not come back all at once."""
        return float(min(_BACKOFF_FIRST_S * 2 ** (attempt - 1), _BACKOFF_MAX_S)) * self._random.uniform(0.8, 1.2)


def open_client(grpc_endpoint: str | None = None) -> OtlpClient:
    """A client by the variables `OTEL_EXPORTER_OTLP_*`; to `grpc_endpoint` over gRPC if that is given.

    Raises:
        SendError: a variable cannot be used.
    """
    timeout_s = variables.timeout_s()
    if grpc_endpoint is None and variables.protocol() == variables.HTTP:
        return OtlpClient(HttpConnection(variables.http_endpoint()), timeout_s)
    return OtlpClient(GrpcConnection(grpc_endpoint or variables.grpc_endpoint()), timeout_s)
