"""The spans of a request as plain Python values."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from collector.decoding.wire import parsed
from engine_hooks.contract.span import GraphSpan


class ReceivedSpan(NamedTuple):
    """One span, as it came. Text that is no UTF-8 holds surrogates."""

    fields: GraphSpan
    kind: int
    """As OTLP numbers it; 1 is INTERNAL."""
    repeated: tuple[str, ...]
    """Attributes that were set more than once; the first is read."""


def spans_in(request: bytes) -> Iterator[ReceivedSpan]:
    """Every span of a serialized `ExportTraceServiceRequest`.

    Raises:
        MalformedRequestError: these bytes are none.
    """
    for resource_spans in parsed(request).resource_spans:
        resource, _ = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                attributes, repeated = _attributes(span.attributes)
                yield ReceivedSpan(_fields(span, attributes, resource), span.kind, repeated)


def _fields(span: Any, attributes: dict[str, Any], resource: dict[str, Any]) -> GraphSpan:
    return GraphSpan(
        name=_text(span.name),
        trace_id=span.trace_id,
        span_id=span.span_id,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=attributes,
        resource=resource,
    )


def _attributes(received: Iterable[Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """By name, and which names came again."""
    read: dict[str, Any] = {}
    repeated = []
    for attribute in received:
        name = _text(attribute.key)
        if name in read:
            repeated.append(name)
        else:
            read[name] = _value(attribute.value)
    return read, tuple(repeated)


def _value(any_value: Any) -> Any:
    kind = any_value.WhichOneof("value")
    if kind is None:
        return None
    value = getattr(any_value, kind)
    if kind == "string_value":
        return _text(value)
    if kind == "array_value":
        return [_value(item) for item in value.values]
    if kind == "kvlist_value":
        return {_text(item.key): _value(item.value) for item in value.values}
    return value


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")
