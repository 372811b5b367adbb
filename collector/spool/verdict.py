"""What will become of a request's spans, found in Python: for senders that cannot be kept waiting for ClickHouse.

The rules are the contract's own (`engine_hooks.contract.validation`), which the collector's SQL applies as well;
`tests/fixtures/contract_cases.py` holds the two together. Slower than ClickHouse, so used only when it does not answer.
"""

from collections import Counter
from typing import Any

from collector.acceptance import Outcome
from collector.decoding.wire import request_class
from engine_hooks.contract import names
from engine_hooks.contract.span import GraphSpan, ReceivedAttributes, is_graph_execution, not_recorded
from engine_hooks.contract.validation import span_refusal


def verdict_of(request: bytes) -> Outcome:
    """What the store will make of a request that `spans_of` has taken; a span stored before is not known here."""
    message: Any = request_class().FromString(request)
    refused: Counter[str] = Counter()
    other = stored = odd = 0
    for resource_spans in message.resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for span in (span for scope in resource_spans.scope_spans for span in scope.spans):
            name = _text(span.name)
            if not is_graph_execution(name):
                other += 1
                continue
            read = _span(name, span, resource)
            if reason := span_refusal(read):
                refused[reason] += 1
            else:
                stored += 1
                odd += _clock_trouble(read.attributes)
    return Outcome(stored, dict(refused), other, clock_trouble=odd)


def _span(name: str, span: Any, resource: ReceivedAttributes) -> GraphSpan:
    return GraphSpan(
        name,
        span.trace_id,
        span.span_id,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _attributes(span.attributes),
        resource,
    )


def _clock_trouble(attributes: ReceivedAttributes) -> bool:
    """As `validation.clock_trouble` has it, of attributes that keep the contract."""
    offset = attributes.get(names.GRAPH_GPU_START_OFFSET_NS)
    longer = attributes[names.GRAPH_GPU_TIME_NS] > attributes[names.GRAPH_WALL_TIME_NS]
    return bool(longer or (offset is not None and offset < 0))


def _attributes(items: Any) -> dict[str, Any]:
    """By name; of an attribute given twice the first that says something counts."""
    read: dict[str, Any] = {}
    for item in items:
        key, value = _text(item.key), _value(item.value)
        if not not_recorded(value):
            read.setdefault(key, value)
    return read


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return _text(value.string_value)
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    # A map or bytes: of no type that the contract has; ClickHouse does not read them either.
    return getattr(value, kind) if kind in ("bool_value", "int_value", "double_value") else None


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
