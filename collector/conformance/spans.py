"""The spans of a request as the collector reads them, and what of them it does not read."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from collector.decoding.attributes import attributes_of, text_of
from collector.decoding.wire import parsed
from engine_hooks.contract.span import GraphSpan

_UNREAD: Final = ("kvlist_value", "bytes_value")


class ReceivedSpan(NamedTuple):
    """One span, as it came. Text that is no UTF-8 holds surrogates."""

    fields: GraphSpan
    kind: int
    """As OTLP numbers it; 1 is INTERNAL."""
    repeated: tuple[str, ...]
    """Attributes that were set more than once; the first is read."""
    unread: tuple[str, ...]
    """Attributes of the span whose value is a map or bytes: they are taken as not recorded."""


def spans_in(request: bytes) -> Iterator[ReceivedSpan]:
    """Every span of a serialized `ExportTraceServiceRequest`.

    Raises:
        MalformedRequestError: these bytes are none.
    """
    for resource_spans in parsed(request).resource_spans:
        resource = attributes_of(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                items = span.attributes
                fields = _fields(span, attributes_of(items), resource)
                yield ReceivedSpan(fields, span.kind, _repeated(items), _unread(items))


def _fields(span: Any, attributes: dict[str, Any], resource: dict[str, Any]) -> GraphSpan:
    return GraphSpan(
        name=text_of(span.name),
        trace_id=span.trace_id,
        span_id=span.span_id,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=attributes,
        resource=resource,
    )


def _repeated(items: Any) -> tuple[str, ...]:
    keys = [item.key for item in items]
    if len(set(keys)) == len(keys):
        return ()
    return tuple(text_of(key) for key, count in Counter(keys).items() if count > 1)


def _unread(items: Iterable[Any]) -> tuple[str, ...]:
    return tuple(text_of(item.key) for item in items if item.value.WhichOneof("value") in _UNREAD)
