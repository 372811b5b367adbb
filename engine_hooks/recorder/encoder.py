"""Executions as OTLP requests, straight to bytes: no span objects, no protobuf messages.

The bytes are those of the stock encoder (decision 0021). What recurs from one execution to the next
(names, enumerated values, estimates, small counts) is encoded once and looked up by its value.
"""

from collections.abc import Iterable, Iterator
from operator import getitem, index, itemgetter
from struct import Struct
from typing import Any, Final, NamedTuple

from engine_hooks.contract.attributes import SPAN_ATTRIBUTES
from engine_hooks.contract.execution import EngineResource, GraphExecution, cell_of
from engine_hooks.contract.span import resource_attributes, span_id_of, span_name, trace_id_of
from engine_hooks.errors import ContractError
from engine_hooks.recorder.encodings import Encodings, encodings_of
from engine_hooks.recorder.wire import any_value, delimited, key_field, key_value, varint

BATCH_SPANS_MAX: Final = 512
"""Spans of one request, at most."""
REQUEST_BYTES_MAX: Final = 3_500_000
"""Bytes of one request, as long as it has more than one span: gRPC's default limit of 4 MiB and room to spare."""
SCOPE_NAME: Final = "tachograph.engine_hooks"

_LATEST_NS: Final = (1 << 63) - 1

# Fields of opentelemetry-proto's trace.proto, by number and wire type.
_RESOURCE_SPANS, _RESOURCE, _RESOURCE_ATTRIBUTE, _SCOPE_SPANS, _SCOPE, _SCOPE_NAME, _SPAN = (
    b"\x0a", b"\x0a", b"\x0a", b"\x12", b"\x0a", b"\x0a", b"\x12",
)  # fmt: skip
_TRACE_ID, _SPAN_ID, _NAME, _KIND_INTERNAL = b"\x0a\x10", b"\x12\x08", b"\x2a", b"\x30\x01"
_START, _END = 0x39, 0x41
_STATUS_AND_FLAGS: Final = b"\x7a\x00\x85\x01\x00\x01\x00\x00"
"""An unset status; and that whether the parent is remote is known: it is not."""

_pack_times: Final = Struct("<BQBQ").pack
_span_fields: Final = itemgetter(*(GraphExecution._fields.index(attribute.column) for attribute in SPAN_ATTRIBUTES))


class Request(NamedTuple):
    """A whole `ExportTraceServiceRequest`."""

    spans: int
    body: bytes


class RequestEncoder:
    """Encodes the executions of one engine instance. One caller at a time."""

    def __init__(self, resource: EngineResource) -> None:
        """Encode what all requests share.

        Raises:
            ContractError: OTLP cannot carry the resource.
        """
        instance = resource.service_instance_id
        attributes = resource_attributes(resource).items()
        encoded = b"".join(
            key_value(_RESOURCE_ATTRIBUTE, key_field(name), any_value(value)) for name, value in attributes
        )
        self._resource = delimited(_RESOURCE, encoded)
        self._scope = delimited(_SCOPE, delimited(_SCOPE_NAME, SCOPE_NAME.encode()))
        self._instance_id = instance
        self._trace_ids = Encodings(lambda cell: _TRACE_ID + trace_id_of(instance, cell))
        self._names = Encodings(_name_and_kind)
        self._attributes = [encodings_of(attribute) for attribute in SPAN_ATTRIBUTES]

    def span(self, execution: GraphExecution) -> bytes:
        """One execution as a field of `ScopeSpans`.

        Raises:
            ContractError: OTLP cannot carry it (times that are no integers or out of range, text that is no UTF-8).
        """
        try:
            start_ns = index(execution.started_at)
            end_ns = start_ns + index(execution.duration_ns)
            _require_times(start_ns, end_ns)
            span = b"".join(
                (
                    self._trace_ids[cell_of(execution)],
                    _SPAN_ID,
                    span_id_of(self._instance_id, execution.graph_sequence),
                    self._names[execution.graph_name],
                    _pack_times(_START, start_ns, _END, end_ns),
                    self._encoded_attributes(_span_fields(execution)),
                    _STATUS_AND_FLAGS,
                )
            )
        except ContractError:
            raise
        except Exception as error:  # whatever the methods of a value of some other type raise
            raise ContractError("a record whose fields are not of the contract's types cannot be sent") from error
        return delimited(_SPAN, span)

    def requests(self, spans: Iterable[bytes]) -> Iterator[Request]:
        """Spans that `span` gave in requests of at most `BATCH_SPANS_MAX`, in their order."""
        batch: list[bytes] = []
        size = 0
        for span in spans:
            if batch and (len(batch) == BATCH_SPANS_MAX or size + len(span) > REQUEST_BYTES_MAX):
                yield self._request(batch, size)
                batch, size = [], 0
            batch.append(span)
            size += len(span)
        if batch:
            yield self._request(batch, size)

    def _request(self, spans: list[bytes], size: int) -> Request:
        """Joined once: copies of so many bytes cost as much as encoding them."""
        scope_length = varint(len(self._scope) + size)
        length = len(self._resource) + len(_SCOPE_SPANS) + len(scope_length) + len(self._scope) + size
        before = (_RESOURCE_SPANS, varint(length), self._resource, _SCOPE_SPANS, scope_length, self._scope)
        return Request(len(spans), b"".join((*before, *spans)))

    def _encoded_attributes(self, values: tuple[Any, ...]) -> bytes:
        try:
            return b"".join(map(getitem, self._attributes, values))
        except TypeError:  # what cannot be hashed cannot be looked up: a list in place of a tuple
            hashable = [tuple(value) if isinstance(value, list) else value for value in values]
            return b"".join(map(getitem, self._attributes, hashable))


def _require_times(start_ns: int, end_ns: int) -> None:
    if not 0 <= start_ns <= end_ns <= _LATEST_NS:
        raise ContractError("a span's times must lie between 1970 and 2262, the end not before the start")


def _name_and_kind(graph_name: str) -> bytes:
    return delimited(_NAME, span_name(graph_name).encode()) + _KIND_INTERNAL
