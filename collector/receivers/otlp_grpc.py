"""OTLP over gRPC. Requests stay bytes here: the method has no deserializer."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn

import grpc
import structlog
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from collector.acceptance import AcceptanceError, Acceptor, StoreUnavailableError
from collector.access.access import Access
from collector.ports import host_and_port
from collector.receivers.answers import grpc_code, response_of, status_of
from collector.receivers.guard import SENDER
from collector.receivers.limits import DoorLimits
from collector.receivers.slow_calls import SlowCalls
from collector.receivers.span_count import check_spans
from collector.telemetry.metrics import CollectorMetrics

log = structlog.get_logger(__name__)

_SERVICE: Final = trace_service_pb2.DESCRIPTOR.services_by_name["TraceService"].full_name
EXPORT: Final = f"/{_SERVICE}/Export"
"""The method that takes traces, as clients call it."""
_LONGEST_WAIT_S: Final = 60.0
_CALLS_OF_ONE_CONNECTION: Final = 128
_HANDSHAKE_MS: Final = 10_000


class GrpcReceiver:
    """A gRPC server with OTLP's trace service."""

    def __init__(
        self,
        acceptor: Acceptor,
        metrics: CollectorMetrics,
        access: Access | None = None,
        limits: DoorLimits | None = None,
    ) -> None:
        self._acceptor = acceptor
        self._metrics = metrics
        self._access = access or Access()
        self._limits = limits or DoorLimits()
        self._slow_calls = SlowCalls(self._limits.body_s)
        self._server = grpc.server(
            ThreadPoolExecutor(self._limits.requests_at_once, thread_name_prefix="tachograph-grpc"),
            handlers=[grpc.method_handlers_generic_handler(_SERVICE, {"Export": self._handler()})],
            options=_options(self._limits),
            maximum_concurrent_rpcs=self._limits.waiting_calls,
        )

    def _handler(self) -> grpc.RpcMethodHandler:
        # A stream of one request is the same on the wire, and lets a request be counted that gRPC itself turns away.
        return grpc.stream_unary_rpc_method_handler(self._export)

    def start(self, listen_address: str, port: int) -> int:
        """Listen, and return the port that was bound.

        Raises:
            RuntimeError: the port is taken.
        """
        at, certificate = host_and_port(listen_address, port), self._access.certificate
        bound: int = (
            self._server.add_secure_port(at, certificate.grpc_credentials())
            if certificate
            else self._server.add_insecure_port(at)
        )
        self._server.start()
        self._slow_calls.start()
        return bound

    def stop(self, grace_s: float = 1.0) -> None:
        """Take no new calls; calls under way have this long to be answered."""
        self._server.stop(grace_s).wait()
        self._slow_calls.stop()

    def _export(self, requests: Any, context: grpc.ServicerContext) -> bytes:
        self._admit(context)
        try:
            with self._slow_calls.watching(context):
                request: bytes = next(requests)
        except Exception:
            # Too large, too slow, or compressed in a broken way: gRPC has answered already, and closed the call.
            self._metrics.count_request("grpc", "UNREADABLE", 0)
            raise
        try:
            check_spans(request, self._limits.request_spans)
            outcome = self._acceptor.accept(request, "grpc").result(_wait_s(context))
        except AcceptanceError as error:
            self._refuse(error, len(request), context)
        except TimeoutError:
            self._refuse(StoreUnavailableError("the request is not stored yet"), len(request), context)
        self._metrics.count_request("grpc", "OK", len(request))
        response: bytes = response_of(outcome).SerializeToString()
        return response

    def _admit(self, context: grpc.ServicerContext) -> None:
        """Before anything of the request is read."""
        metadata = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
        if refusal := self._access.refusal_of_sender(metadata):
            self._metrics.not_admitted.labels("grpc", refusal).inc()
            context.abort(grpc.StatusCode.UNAUTHENTICATED, SENDER[refusal].message)

    def _refuse(self, error: AcceptanceError, size: int, context: grpc.ServicerContext) -> NoReturn:
        code = grpc_code(error)
        self._metrics.count_request("grpc", code.name, size)
        context.set_trailing_metadata((("grpc-status-details-bin", status_of(error).SerializeToString()),))
        context.abort(code, str(error))
        raise AssertionError("abort returned")


def _options(limits: DoorLimits) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", limits.request_bytes),
        ("grpc.max_metadata_size", limits.head_bytes),
        ("grpc.absolute_max_metadata_size", limits.head_bytes),
        ("grpc.max_concurrent_streams", _CALLS_OF_ONE_CONNECTION),
        ("grpc.max_connection_idle_ms", int(limits.idle_s * 1000)),
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        ("grpc.keepalive_time_ms", int(limits.silent_s * 1000)),
        ("grpc.http2.ping_timeout_ms", int(limits.answer_s * 1000)),
        # This is for what was sent and the peer's system does not confirm (TCP_USER_TIMEOUT); pings go by the line above.
        ("grpc.keepalive_timeout_ms", int(limits.answer_s * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        # A peer without calls is asked as long as its connection is kept.
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", int(limits.ping_pause_s * 1000)),
        # Else two collectors could take one port, and each would get half of the calls.
        ("grpc.so_reuseport", 0),
    ]


def _wait_s(context: grpc.ServicerContext) -> float:
    remaining: float | None = context.time_remaining()
    return _LONGEST_WAIT_S if remaining is None else min(remaining, _LONGEST_WAIT_S)
