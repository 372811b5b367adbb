"""Executions as OTLP requests, straight to bytes: no span objects, no protobuf messages.

The bytes are those of the stock encoder (decision 0021). What recurs from one execution to the next
(names, enumerated values, estimates, small counts) is encoded once and looked up by its value.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import getitem, index, itemgetter
from struct import Struct
from typing import Any, Final, NamedTuple

from engine_hooks.contract import names
from engine_hooks.contract.attributes import SPAN_ATTRIBUTES, Attribute, AttributeType
from engine_hooks.contract.execution import EngineResource, GraphExecution, cell_of
from engine_hooks.contract.span import not_recorded, resource_attributes, span_id_of, span_name, trace_id_of
from engine_hooks.errors import ContractError
from engine_hooks.recorder.wire import any_value, array_value, delimited, key_field, key_value

BATCH_SPANS_MAX: Final = 512
"""Spans of one request, at most."""
REQUEST_BYTES_MAX: Final = 3_500_000
"""Bytes of one request, as long as it has more than one span: gRPC's default limit of 4 MiB and room to spare."""
SCOPE_NAME: Final = "tachograph.engine_hooks"

_KEPT_MAX: Final = 512
"""Encoded values kept for each attribute, about 100 bytes each."""
_LATEST_NS: Final = (1 << 63) - 1

# Fields of opentelemetry-proto's trace.proto, by number and wire type.
_RESOURCE_SPANS, _RESOURCE, _RESOURCE_ATTRIBUTE, _SCOPE_SPANS, _SCOPE, _SCOPE_NAME, _SPAN = (
    b"\x0a", b"\x0a", b"\x0a", b"\x12", b"\x0a", b"\x0a", b"\x12",
)  # fmt: skip
_TRACE_ID, _SPAN_ID, _NAME, _KIND_INTERNAL, _ATTRIBUTE = b"\x0a\x10", b"\x12\x08", b"\x2a", b"\x30\x01", b"\x4a"
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
        self._attributes = [_encodings_of(attribute) for attribute in SPAN_ATTRIBUTES]

    def span(self, execution: GraphExecution) -> bytes:
        """One execution as a field of `ScopeSpans`.

        Raises:
            ContractError: OTLP cannot carry it (times that are no integers or out of range, text that is no UTF-8).
        """
        try:
            start_ns = index(execution.started_at)
            end_ns = start_ns + index(execution.duration_ns)
            if not 0 <= start_ns <= end_ns <= _LATEST_NS:
                raise ContractError("a span's times must lie between 1970 and 2262, the end not before the start")
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
        except (TypeError, AttributeError, UnicodeError, OverflowError) as error:
            raise ContractError("a record whose fields are not of the contract's types cannot be sent") from error
        return delimited(_SPAN, span)

    def requests(self, spans: Iterable[bytes]) -> Iterator[Request]:
        """Spans that `span` gave in requests of at most `BATCH_SPANS_MAX`, in their order."""
        batch: list[bytes] = []
        size = 0
        for span in spans:
            if batch and (len(batch) == BATCH_SPANS_MAX or size + len(span) > REQUEST_BYTES_MAX):
                yield self._request(batch)
                batch, size = [], 0
            batch.append(span)
            size += len(span)
        if batch:
            yield self._request(batch)

    def _request(self, spans: list[bytes]) -> Request:
        scope_spans = delimited(_SCOPE_SPANS, self._scope + b"".join(spans))
        return Request(len(spans), delimited(_RESOURCE_SPANS, self._resource + scope_spans))

    def _encoded_attributes(self, values: tuple[Any, ...]) -> bytes:
        try:
            return b"".join(map(getitem, self._attributes, values))
        except TypeError:  # what cannot be hashed cannot be looked up: a list in place of a tuple
            hashable = [tuple(value) if isinstance(value, list) else value for value in values]
            return b"".join(map(getitem, self._attributes, hashable))


class Encodings(dict[Any, bytes]):
    """What values are encoded as, worked out when first asked for and kept while there is room.

    Values that Python holds equal share one entry, so `encode` must give equal values equal bytes; -0.0
    and 0.0, which differ, are never kept.
    """

    def __init__(self, encode: Callable[[Any], bytes], kept_max: int = _KEPT_MAX) -> None:
        super().__init__()
        self._encode = encode
        self._kept_max = kept_max

    def __missing__(self, value: Any) -> bytes:
        encoded = self._encode(value)
        if self._kept_max and (value or type(value) is not float):
            if len(self) >= self._kept_max:
                self.clear()
            self[value] = encoded
        return encoded


def _name_and_kind(graph_name: str) -> bytes:
    return delimited(_NAME, span_name(graph_name).encode()) + _KIND_INTERNAL


# ---- attributes


def _encodings_of(attribute: Attribute) -> Encodings:
    """The encoded `Span.attributes` of one attribute, by value; nothing for a value that means "not recorded"."""
    value_of = _VALUES[attribute.type]()
    key = key_field(attribute.name)
    is_flag = attribute.type is AttributeType.BOOLEAN

    def encode(value: Any) -> bytes:
        if not_recorded(value) or (is_flag and not value):
            return b""
        return key_value(_ATTRIBUTE, key, value_of(value))

    return Encodings(encode, 0 if attribute.name in _NEVER_TWICE else _KEPT_MAX)


def _integer(value: Any) -> Any:
    """Equal numbers alike, so that they can share an entry: integral doubles count as integers in the contract."""
    if type(value) is int or isinstance(value, str):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return index(value)


def _number(value: Any) -> Any:
    return value if type(value) is float or isinstance(value, str) else float(value)


def _scalars(convert: Callable[[Any], Any]) -> Callable[[Any], bytes]:
    return lambda value: any_value(convert(value))


def _arrays(convert: Callable[[Any], Any]) -> Callable[[Any], bytes]:
    items = Encodings(_scalars(convert))
    return lambda values: array_value(map(items.__getitem__, values))


def _flag(value: Any) -> Any:
    return True if value == 1 else value


def _text(value: Any) -> Any:
    return value


_VALUES: Final[dict[AttributeType, Callable[[], Callable[[Any], bytes]]]] = {
    AttributeType.STRING: lambda: _scalars(_text),
    AttributeType.INTEGER: lambda: _scalars(_integer),
    AttributeType.NUMBER: lambda: _scalars(_number),
    AttributeType.BOOLEAN: lambda: _scalars(_flag),
    AttributeType.STRINGS: lambda: _arrays(_text),
    AttributeType.INTEGERS: lambda: _arrays(_integer),
    AttributeType.NUMBERS: lambda: _arrays(_number),
}
_NEVER_TWICE: Final = {
    names.GRAPH_SEQUENCE,
    names.GRAPH_GPU_TIME_NS,
    names.GRAPH_WALL_TIME_NS,
    names.GRAPH_GPU_START_OFFSET_NS,
}
"""Hardly a value of these comes again: keeping them would only cost."""
