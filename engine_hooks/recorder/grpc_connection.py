"""OTLP over gRPC, bytes in and bytes out."""

from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from engine_hooks.recorder import variables
from engine_hooks.recorder.connection import Answer, NotTakenError

_METHOD: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_RETRYABLE: Final = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS,
}
"""Source: https://opentelemetry.io/docs/specs/otlp/#failures. RESOURCE_EXHAUSTED only together with `RetryInfo`."""
_NEVER_REACHED: Final = ("failed to connect to all addresses", "DNS resolution failed")
"""How gRPC begins to say of a call that it had no connection for it; of a call that was sent, it says something else."""
_OPTIONS: Final = (
    # Otherwise a collector that was away for long is looked for every two minutes only.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # A collector that vanished without closing anything: a request that has heard nothing for 20 s pings, and 10 s later goes
    # another way. Otherwise every request would go on into the dead connection, until TCP gives it up after a quarter of an hour.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    # Pings that measure how much could be received at once: answers are a few bytes, and each ping wakes threads.
    ("grpc.http2.bdp_probe", 0),
)


class GrpcConnection:
    """A channel to one endpoint: `http://host:port` (plain), `https://host:port` (TLS), or `host:port`."""

    def __init__(self, endpoint: str) -> None:
        """Set up by the variables `OTEL_EXPORTER_OTLP_*`; connects with the first request.

        Raises:
            SendError: one of them cannot be used.
        """
        self.endpoint = endpoint
        self._metadata = variables.headers()
        compression = grpc.Compression.Gzip if variables.gzip_asked() else grpc.Compression.NoCompression
        url = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
        if url.scheme == "https" or (not url.scheme and not variables.insecure()):
            self._channel = grpc.secure_channel(url.netloc, _credentials(), _OPTIONS, compression)
        else:
            self._channel = grpc.insecure_channel(url.netloc, _OPTIONS, compression)
        self._export = self._channel.unary_unary(_METHOD)  # no serializers: bytes

    def post(self, body: bytes, timeout_s: float) -> Answer:
        try:
            return Answer.of(self._export(body, timeout=timeout_s, metadata=self._metadata))
        except grpc.RpcError as error:
            raise _not_taken(error) from error
        except ValueError as error:  # the channel was closed
            raise NotTakenError("CANCELLED", str(error), retryable=True) from error

    def close(self) -> None:
        self._channel.close()


def _credentials() -> grpc.ChannelCredentials:
    files = variables.files()
    return grpc.ssl_channel_credentials(*(Path(path).read_bytes() if path else None for path in files))


def _not_taken(error: Any) -> NotTakenError:
    code, retry_after_s = error.code(), _retry_after_s(error)
    retryable = code in _RETRYABLE or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and retry_after_s is not None)
    details = error.details() or ""
    is_certain = not retryable or retry_after_s is not None or details.startswith(_NEVER_REACHED)
    return NotTakenError(code.name, details, retryable=retryable, retry_after_s=retry_after_s, is_certain=is_certain)


def _retry_after_s(error: Any) -> float | None:
    """The delay of a `RetryInfo` among the status's details."""
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    info = RetryInfo()
    try:
        found = any(detail.Unpack(info) for detail in Status.FromString(details).details)
    except DecodeError:
        return None
    return info.retry_delay.seconds + info.retry_delay.nanos / 1e9 if found else None
