"""Seeing at a glance that a span keeps the contract, which nearly all do: a sixth of the work of looking into it.

Never says of a span that breaks the contract that it is fine, and may find a span unclear that is.
"""

from collections.abc import Callable
from enum import Enum
from math import isfinite
from typing import Any, Final

from engine_hooks.contract import names
from engine_hooks.contract.attributes import SPAN_ATTRIBUTES, Attribute, AttributeType
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import LONGEST_TIME_NS, GraphKind
from engine_hooks.contract.span import GraphSpan, span_of


class SpanGlance(Enum):
    """What a glance shows. Only `UNCLEAR` is false."""

    FINE = 1
    CLOCK_TROUBLE = 2
    UNCLEAR = 0

    def __bool__(self) -> bool:
        return self is not SpanGlance.UNCLEAR


PLAIN_EXECUTION: Final[GraphSpan] = span_of(
    GraphExecution("decode", GraphKind.PLAIN_DECODE, 0, 1, 1, 1, 1), EngineResource("x")
)
"""A span with nothing wrong, to see whether a resource is."""

_HIGHEST_INT64: Final = (1 << 63) - 1


def glance(span: Any) -> SpanGlance:
    """Look at a span of `request_class`, whose resource is fine."""
    start_ns, end_ns = span.start_time_unix_nano, span.end_time_unix_nano
    if not (0 < start_ns <= end_ns <= _HIGHEST_INT64 and end_ns - start_ns <= LONGEST_TIME_NS and _identified(span)):
        return SpanGlance.UNCLEAR
    seen: dict[bytes, Any] = {}
    for item in span.attributes:
        key, value = item.key, item.value
        check = _CHECKS.get(key)
        if check is None:
            continue
        if key in seen or not check(value):
            return SpanGlance.UNCLEAR
        seen[key] = value
    if not seen.keys() >= _REQUIRED or len({_length(seen.get(name)) for name in _CANDIDATES}) > 1:
        return SpanGlance.UNCLEAR
    offset = seen.get(_OFFSET)
    longer = seen[_GPU_TIME].int_value > seen[_WALL_TIME].int_value
    return SpanGlance.CLOCK_TROUBLE if longer or (offset and offset.int_value < 0) else SpanGlance.FINE


def _identified(span: Any) -> bool:
    trace_id, span_id = span.trace_id, span.span_id
    return len(trace_id) == 16 and len(span_id) == 8 and any(trace_id) and any(span_id)


def _length(array: Any) -> int:
    return len(array.array_value.values) if array is not None else 0


def _check_of(attribute: Attribute) -> Callable[[Any], bool]:
    """Whether a value is certainly one that the contract takes."""
    lowest = -_HIGHEST_INT64 if attribute.lowest is None else attribute.lowest
    highest = _HIGHEST_INT64 if attribute.highest is None else attribute.highest
    values = frozenset(value.encode() for value in attribute.values)

    def is_text(value: Any) -> bool:
        text = value.string_value
        return bool(text) and text.isascii()

    def is_one_of(value: Any) -> bool:
        return value.string_value in values

    # Zero may mean that another field is set, and only then is it asked which.
    def is_integer(value: Any) -> bool:
        number = value.int_value
        return lowest <= number <= highest and bool(number or value.HasField("int_value"))

    def is_number(value: Any) -> bool:
        number = value.double_value
        return isfinite(number) and bool(number or value.HasField("double_value") or value.HasField("int_value"))

    def is_boolean(value: Any) -> bool:
        return bool(value.bool_value or value.HasField("bool_value"))

    def each(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
        return lambda value: all(map(check, items)) if (items := value.array_value.values) else False

    return {
        AttributeType.STRING: is_one_of if values else is_text,
        AttributeType.INTEGER: is_integer,
        AttributeType.NUMBER: is_number,
        AttributeType.BOOLEAN: is_boolean,
        AttributeType.STRINGS: each(is_text),
        AttributeType.INTEGERS: each(is_integer),
        AttributeType.NUMBERS: each(is_number),
    }[attribute.type]


_CHECKS: Final = {attribute.name.encode(): _check_of(attribute) for attribute in SPAN_ATTRIBUTES}
_REQUIRED: Final = {attribute.name.encode() for attribute in SPAN_ATTRIBUTES if attribute.required}
_CANDIDATES: Final = tuple(
    name.encode()
    for name in (
        names.SCHEDULER_CANDIDATE_GRAPHS,
        names.SCHEDULER_CANDIDATE_ESTIMATES_NS,
        names.SCHEDULER_CANDIDATE_EXPECTED_TOKENS,
    )
)
_OFFSET: Final = names.GRAPH_GPU_START_OFFSET_NS.encode()
_GPU_TIME: Final = names.GRAPH_GPU_TIME_NS.encode()
_WALL_TIME: Final = names.GRAPH_WALL_TIME_NS.encode()
