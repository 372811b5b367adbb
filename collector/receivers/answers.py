"""What a sender is told, as OTLP's specification has it for both protocols.

Source: https://opentelemetry.io/docs/specs/otlp/#otlpgrpc-response and #otlphttp-response
"""

from typing import Final, NamedTuple

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.acceptance import (
    AcceptanceError,
    MalformedRequestError,
    Outcome,
    QueueFullError,
    StoreUnavailableError,
    TryAgainLaterError,
)
from collector.receivers.limits import DoorLimits

REQUEST_BYTES_MAX: Final = DoorLimits().request_bytes

_REASONS_TOLD: Final = 10


class RequestTooLargeError(AcceptanceError):
    """The request holds too much. Smaller batches will do."""


class SlowBodyError(AcceptanceError):
    """The body did not arrive in time."""


class WrongContentTypeError(AcceptanceError):
    """The body is of a kind, or compressed in a way, that this door does not read."""


class _Answer(NamedTuple):
    grpc_code: grpc.StatusCode
    http_status: int


_ANSWERS: Final[dict[type[AcceptanceError], _Answer]] = {
    MalformedRequestError: _Answer(grpc.StatusCode.INVALID_ARGUMENT, 400),
    SlowBodyError: _Answer(grpc.StatusCode.DEADLINE_EXCEEDED, 408),
    RequestTooLargeError: _Answer(grpc.StatusCode.RESOURCE_EXHAUSTED, 413),
    WrongContentTypeError: _Answer(grpc.StatusCode.INVALID_ARGUMENT, 415),
    QueueFullError: _Answer(grpc.StatusCode.RESOURCE_EXHAUSTED, 429),
    StoreUnavailableError: _Answer(grpc.StatusCode.UNAVAILABLE, 503),
}


def grpc_code(error: AcceptanceError) -> grpc.StatusCode:
    """The gRPC code of a request that is not accepted."""
    return _ANSWERS[type(error)].grpc_code


def http_status(error: AcceptanceError) -> int:
    """The HTTP status of a request that is not accepted."""
    return _ANSWERS[type(error)].http_status


def response_of(outcome: Outcome) -> ExportTraceServiceResponse:
    """Success leaves `partial_success` unset; refused executions are counted and their reasons named."""
    response = ExportTraceServiceResponse()
    rejected = sum(outcome.refused.values())
    if rejected:
        response.partial_success.rejected_spans = rejected
        response.partial_success.error_message = _refusals(outcome, rejected)
    return response


def _refusals(outcome: Outcome, rejected: int) -> str:
    by_count = sorted(outcome.refused.items(), key=lambda item: (-item[1], item[0]))
    told = "; ".join(f"{reason} ({count})" for reason, count in by_count[:_REASONS_TOLD])
    more = f"; and {len(by_count) - _REASONS_TOLD} reasons more" if len(by_count) > _REASONS_TOLD else ""
    return f"{rejected} of {rejected + outcome.stored} graph executions refused: {told}{more}"


def status_of(error: AcceptanceError) -> Status:
    """The error as `google.rpc.Status`; with `RetryInfo` when the request may come again."""
    status = Status(code=grpc_code(error).value[0], message=str(error))
    if isinstance(error, TryAgainLaterError):
        status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=error.retry_after_s)))
    return status
