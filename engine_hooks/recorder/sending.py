"""Delivers finished executions over OTLP gRPC, not on any engine's hot path, and looks at every answer."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import SplitResult, urlsplit

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.errors import SendError
from engine_hooks.recorder.client import OtlpClient
from engine_hooks.recorder.connection import Answer, NotTakenError
from engine_hooks.recorder.encoder import Request, RequestEncoder
from engine_hooks.recorder.grpc_connection import GrpcConnection

TIMEOUT_S: Final = 30.0
"""Of one request, its retries included."""
ATTEMPTS_MAX: Final = 5
"""Whoever waits at a terminal for a collector that is not there is told after some three seconds."""


def requests_of(resource: EngineResource, executions: Iterable[GraphExecution]) -> Iterator[Request]:
    """Requests of one engine instance.

    The same executions give the same bytes, so that a collector which answers a request it
    has seen before with the stored outcome stores what is sent twice once.

    Raises:
        ContractError: OTLP cannot carry one of them.
    """
    encoder = RequestEncoder(resource)
    return encoder.requests(map(encoder.span, executions))


class Sender:
    """A connection to one OTLP gRPC endpoint."""

    def __init__(self, client: OtlpClient) -> None:
        self._client = client
        self.taken = 0
        """Executions that the collector took of those given to `send_all`, all calls together."""
        self.in_doubt = False
        """Whether a request failed that it may have stored, its answer being lost."""

    def send(self, body: bytes) -> Answer:
        """How many spans of a request were refused, and why; blocks for at most `TIMEOUT_S`.

        Raises:
            SendError: the collector is away or refused the request as a whole.
        """
        try:
            return self._client.send(body)
        except NotTakenError as error:
            self.in_doubt = not error.is_certain
            failed = "did not answer" if self.in_doubt else "did not take the executions"
            raise SendError(
                f"the collector at {self._client.connection.endpoint} {failed} ({error}): "
                f"{_remedy(error.code)}, then send again"
            ) from error

    def send_all(
        self, resource: EngineResource, executions: Iterable[GraphExecution], on_sent: Callable[[int], object]
    ) -> Counter[str]:
        """Send every execution; gives how many were refused, by the collector's words.

        Raises:
            SendError: the collector is away or refused a request as a whole; `taken` tells how many it took before.
        """
        refused: Counter[str] = Counter()
        for request in requests_of(resource, executions):
            count, reason = self.send(request.body)
            self.taken += request.spans - count
            refused += Counter({reason: count})
            on_sent(request.spans)
        return refused


def _remedy(code: str) -> str:
    if code == "UNAUTHENTICATED":
        return "set OTEL_EXPORTER_OTLP_HEADERS to authorization=Bearer%20TOKEN"
    if code == "RESOURCE_EXHAUSTED":
        return "raise the bound that it names, or free space on its disk"
    return "start it or set TACHOGRAPH_OTLP_ENDPOINT"


def endpoint_url(endpoint: str) -> SplitResult:
    """`http://host:port` (plain) or `https://host:port` (TLS) in its parts.

    Raises:
        SendError: the endpoint is no such URL.
    """
    url = urlsplit(endpoint)
    if url.scheme not in {"http", "https"} or not url.netloc:
        raise SendError(f"{endpoint!r} is no OTLP endpoint: set TACHOGRAPH_OTLP_ENDPOINT to http://host:4317")
    return url


def raise_for_refused(endpoint: str, refused: Mapping[str, int]) -> None:
    """Raise `SendError` if the collector refused anything, naming how many and why."""
    if refused:
        reasons = "; ".join(f"{count:,} ({reason or 'no reason given'})" for reason, count in refused.items())
        raise SendError(f"the collector at {endpoint} refused executions: {reasons}")


@contextmanager
def sender(endpoint: str) -> Iterator[Sender]:
    """A sender to an OTLP gRPC endpoint, with the headers, certificates and compression of `OTEL_EXPORTER_OTLP_*`.

    Raises:
        SendError: the endpoint is no such URL, or one of the variables cannot be used.
    """
    endpoint_url(endpoint)
    client = OtlpClient(GrpcConnection(endpoint), TIMEOUT_S, patience_s=TIMEOUT_S, attempts_max=ATTEMPTS_MAX)
    try:
        yield Sender(client)
    finally:
        client.close()
