"""One request to a collector, once: what both ways of OTLP have in common."""

from typing import NamedTuple, Protocol

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse


class Answer(NamedTuple):
    """What a collector said of a request that it took."""

    refused: int
    """Spans of it that it will not store."""
    reason: str
    """Why; empty if it refused none."""

    @classmethod
    def of(cls, body: bytes) -> "Answer":
        """The answer that an `ExportTraceServiceResponse` gives; one that is none counts as taken."""
        try:
            partial = ExportTraceServiceResponse.FromString(body).partial_success
        except Exception:  # upb's DecodeError has no public home; the request was taken, whatever this is
            return cls(0, "")
        return cls(max(partial.rejected_spans, 0), partial.error_message)


class NotTakenError(Exception):
    """A request that the collector did not take as a whole, or took although its answer was lost."""

    def __init__(
        self,
        code: str,
        details: str,
        *,
        retryable: bool,
        retry_after_s: float | None = None,
        is_certain: bool = False,
    ) -> None:
        """Both texts are for people; `retry_after_s` is what the collector asked for.

        `is_certain`: it surely stored nothing of the request, because it said so or was never reached.
        """
        super().__init__(f"{code}: {' '.join(details.split())}")
        self.code = code
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.is_certain = is_certain


class Connection(Protocol):
    """A connection to one collector. One thread posts; any may close."""

    endpoint: str

    def post(self, body: bytes, timeout_s: float) -> Answer:
        """Send one `ExportTraceServiceRequest` once.

        Raises:
            NotTakenError: the collector is away, or refused it as a whole.
        """

    def close(self) -> None:
        """End it, and an attempt under way with it. Harmless when repeated."""
