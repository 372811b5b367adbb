"""OTLP over gRPC. Requests stay bytes here: the method has no deserializer."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn

import grpc
import structlog
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from collector.acceptance import AcceptanceError, Acceptor, StoreUnavailableError
from collector.metrics import CollectorMetrics
from collector.ports import host_and_port
from collector.receivers.answers import REQUEST_BYTES_MAX, grpc_code, response_of, status_of

log = structlog.get_logger(__name__)

_SERVICE: Final = trace_service_pb2.DESCRIPTOR.services_by_name["TraceService"].full_name
_THREADS: Final = 32
"""Calls that wait for their acknowledgement at a time. Others wait unread in their connections."""
_LONGEST_WAIT_S: Final = 60.0
_OPTIONS: Final = [
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    # Else two collectors could take one port, and each would get half of the calls.
    ("grpc.so_reuseport", 0),
]


class GrpcReceiver:
    """A gRPC server with OTLP's trace service."""

    def __init__(self, acceptor: Acceptor, metrics: CollectorMetrics) -> None:
        self._acceptor = acceptor
        self._metrics = metrics
        self._server = grpc.server(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="tachograph-grpc"),
            handlers=[grpc.method_handlers_generic_handler(_SERVICE, {"Export": self._handler()})],
            options=_OPTIONS,
        )

    def _handler(self) -> grpc.RpcMethodHandler:
        # A stream of one request is the same on the wire, and lets a request be counted that gRPC itself turns away.
        return grpc.stream_unary_rpc_method_handler(self._export)

    def start(self, listen_address: str, port: int) -> int:
        """Listen, and return the port that was bound.

        Raises:
            RuntimeError: the port is taken.
        """
        bound: int = self._server.add_insecure_port(host_and_port(listen_address, port))
        self._server.start()
        return bound

    def stop(self, grace_s: float = 1.0) -> None:
        """Take no new calls; calls under way have this long to be answered."""
        self._server.stop(grace_s).wait()

    def _export(self, requests: Any, context: grpc.ServicerContext) -> bytes:
        try:
            request: bytes = next(requests)
        except Exception:
            # Too large, or compressed in a broken way: gRPC has answered already, and closed the call.
            self._metrics.count_request("grpc", "UNREADABLE", 0)
            raise
        try:
            outcome = self._acceptor.accept(request, "grpc").result(_wait_s(context))
        except AcceptanceError as error:
            self._refuse(error, len(request), context)
        except TimeoutError:
            self._refuse(StoreUnavailableError("the request is not stored yet"), len(request), context)
        self._metrics.count_request("grpc", "OK", len(request))
        response: bytes = response_of(outcome).SerializeToString()
        return response

    def _refuse(self, error: AcceptanceError, size: int, context: grpc.ServicerContext) -> NoReturn:
        code = grpc_code(error)
        self._metrics.count_request("grpc", code.name, size)
        context.set_trailing_metadata((("grpc-status-details-bin", status_of(error).SerializeToString()),))
        context.abort(code, str(error))
        raise AssertionError("abort returned")


def _wait_s(context: grpc.ServicerContext) -> float:
    remaining: float | None = context.time_remaining()
    return _LONGEST_WAIT_S if remaining is None else min(remaining, _LONGEST_WAIT_S)
