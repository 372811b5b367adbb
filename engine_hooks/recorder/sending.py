"""Delivers finished executions over OTLP gRPC, not on any engine's hot path, and looks at every answer.

The stock exporter's encoder and the stock generated client, but not its `export`: that
drops the answer, and with it the partial success that says what was refused.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import grpc
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.errors import SendError
from engine_hooks.recorder.spans import SpanBuilder
from engine_hooks.recorder.variables import channel_credentials, compression, headers

BATCH_SPANS: Final = 512
TIMEOUT_S: Final = 30.0
"""Of one request, its retries included."""
RETRIES: Final = {
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.2s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                # What OTLP's specification allows a client to send again.
                "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
            },
        }
    ]
}


def requests_of(
    resource: EngineResource, executions: Iterable[GraphExecution]
) -> Iterator[tuple[int, ExportTraceServiceRequest]]:
    """Requests of at most `BATCH_SPANS` spans of one engine instance, with the number of spans in each.

    The same executions give the same bytes, so that a collector which answers a request it
    has seen before with the stored outcome stores what is sent twice once.
    """
    builder = SpanBuilder(resource)
    remaining = iter(executions)
    while batch := list(islice(remaining, BATCH_SPANS)):
        yield len(batch), encode_spans([builder.build(execution) for execution in batch])


class Sender:
    """A connection to one OTLP gRPC endpoint."""

    def __init__(self, endpoint: str, channel: Any) -> None:
        self._endpoint = endpoint
        self._stub = TraceServiceStub(channel)  # type: ignore[no-untyped-call]
        self._metadata = headers()

    def send(self, request: ExportTraceServiceRequest) -> tuple[int, str]:
        """How many spans of a request were refused, and why; blocks for at most `TIMEOUT_S`.

        Raises:
            SendError: the collector is away or refused the request as a whole.
        """
        try:
            response = self._stub.Export(request, timeout=TIMEOUT_S, metadata=self._metadata)
        except grpc.RpcError as error:
            raise SendError(
                f"the collector at {self._endpoint} did not take the executions ({error.code().name}: "
                f"{error.details()}): {_remedy(error.code())}, then send again"
            ) from error
        return response.partial_success.rejected_spans, response.partial_success.error_message

    def send_all(
        self, resource: EngineResource, executions: Iterable[GraphExecution], on_sent: Callable[[int], object]
    ) -> Counter[str]:
        """Send every execution; gives how many were refused, by the collector's words.

        Raises:
            SendError: the collector is away or refused a request as a whole.
        """
        refused: Counter[str] = Counter()
        for spans, request in requests_of(resource, executions):
            count, reason = self.send(request)
            refused += Counter({reason: count})
            on_sent(spans)
        return refused


def _remedy(code: grpc.StatusCode) -> str:
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return "set OTEL_EXPORTER_OTLP_HEADERS to authorization=Bearer%20TOKEN"
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
    url = endpoint_url(endpoint)
    options = [("grpc.service_config", json.dumps(RETRIES)), ("grpc.enable_retries", 1)]
    channel = (
        grpc.secure_channel(url.netloc, channel_credentials(), options, compression())
        if url.scheme == "https"
        else grpc.insecure_channel(url.netloc, options, compression())
    )
    with channel:
        yield Sender(endpoint, channel)
