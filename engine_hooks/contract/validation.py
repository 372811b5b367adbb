"""Whether a record may be stored, and whether its clocks disagree.

`refusal` refuses, it never repairs. The collector applies the same rules in SQL;
`tests/fixtures/contract_cases.py` holds the two together.
"""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Final

from engine_hooks.contract import names, reasons
from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES, Attribute, AttributeType
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.span import GraphSpan, ReceivedAttributes, not_recorded, span_of

_HIGHEST_INT64: Final = (1 << 63) - 1
_LOWEST_INT64: Final = -(1 << 63)


def refusal(execution: GraphExecution, resource: EngineResource) -> str | None:
    """Why the collector would refuse this execution, one of `reasons.REASONS`; `None` if it would store it."""
    return span_refusal(span_of(execution, resource))


def span_refusal(span: GraphSpan) -> str | None:
    """Why a graph execution's span breaks the contract, one of `reasons.REASONS`; `None` if it keeps it.

    Text that was no valid UTF-8 is expected as `bytes.decode(errors="surrogateescape")` gives it.
    """
    return next(span_refusals(span), None)


def clock_trouble(execution: GraphExecution) -> bool:
    """Odd, but stored and counted: more GPU than wall time, or a device start before the submission."""
    offset = execution.graph_gpu_start_offset_ns
    return execution.graph_gpu_time_ns > execution.graph_wall_time_ns or (offset is not None and offset < 0)


def span_refusals(span: GraphSpan) -> Iterator[str]:
    """Every reason for which a span breaks the contract, in the order of `reasons.REASONS`."""
    yield from _id_refusals(span)
    yield from _time_refusals(span)
    for attribute in RESOURCE_ATTRIBUTES:
        yield from _attribute_refusals(attribute, span.resource.get(attribute.name))
    if any(_engine_attributes_broken(span.resource)):
        yield reasons.ENGINE_ATTRIBUTE_NOT_UTF8
    for attribute in SPAN_ATTRIBUTES:
        yield from _attribute_refusals(attribute, span.attributes.get(attribute.name))
    candidates = [span.attributes.get(name) or () for name in _CANDIDATES]
    if len({len(array) for array in candidates if isinstance(array, list | tuple)}) > 1:
        yield reasons.CANDIDATES_DIFFER


_CANDIDATES: Final = (
    names.SCHEDULER_CANDIDATE_GRAPHS,
    names.SCHEDULER_CANDIDATE_ESTIMATES_NS,
    names.SCHEDULER_CANDIDATE_EXPECTED_TOKENS,
)


def _id_refusals(span: GraphSpan) -> Iterator[str]:
    if len(span.trace_id) != 16 or not any(span.trace_id):
        yield reasons.TRACE_ID_INVALID
    if len(span.span_id) != 8 or not any(span.span_id):
        yield reasons.SPAN_ID_INVALID


def _time_refusals(span: GraphSpan) -> Iterator[str]:
    if span.start_ns <= 0:
        yield reasons.START_MISSING
    if span.start_ns > _HIGHEST_INT64:
        yield reasons.START_BEYOND_INT64
    if span.end_ns < span.start_ns:
        yield reasons.END_BEFORE_START
    if span.end_ns - span.start_ns > names.LONGEST_TIME_NS:
        yield reasons.SPAN_TOO_LONG
    if span.end_ns > _HIGHEST_INT64:
        yield reasons.END_BEYOND_INT64


def _attribute_refusals(attribute: Attribute, value: object) -> Iterator[str]:
    if not_recorded(value):
        if attribute.required:
            yield reasons.missing(attribute)
        return
    items = _items(attribute, value)
    if items is None or not all(_fits(attribute.type, item) for item in items):
        yield reasons.wrong_type(attribute)
        return
    if any(isinstance(item, str) and not _is_utf8(item) for item in items):
        yield reasons.not_utf8(attribute)
    if attribute.values and value not in attribute.values:
        yield reasons.unknown(attribute)
    yield from _bound_refusals(attribute, items)


def _bound_refusals(attribute: Attribute, items: Sequence[object]) -> Iterator[str]:
    numbers = [item for item in items if isinstance(item, int | float)]
    if attribute.lowest is not None and any(number < attribute.lowest for number in numbers):
        yield reasons.too_low(attribute)
    if attribute.highest is not None and any(number > attribute.highest for number in numbers):
        yield reasons.too_high(attribute)


def _items(attribute: Attribute, value: object) -> Sequence[object] | None:
    """The values to check: the one, or those of an array; `None` where one is meant and the other came."""
    if isinstance(value, list | tuple):
        return value if attribute.is_array else None
    return None if attribute.is_array else (value,)


def _fits(kind: AttributeType, item: object) -> bool:
    match kind:
        case AttributeType.STRING | AttributeType.STRINGS:
            return isinstance(item, str)
        case AttributeType.BOOLEAN:
            return isinstance(item, bool)
        case AttributeType.NUMBER | AttributeType.NUMBERS:
            return isinstance(item, int | float) and not isinstance(item, bool) and isfinite(item)
        case AttributeType.INTEGER | AttributeType.INTEGERS:
            return _is_integer(item)


def _is_integer(item: object) -> bool:
    if isinstance(item, float):
        return item.is_integer() and _LOWEST_INT64 <= item <= _HIGHEST_INT64
    return isinstance(item, int) and not isinstance(item, bool) and _LOWEST_INT64 <= item <= _HIGHEST_INT64


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _engine_attributes_broken(resource: ReceivedAttributes) -> Iterator[bool]:
    for name, value in resource.items():
        if name.startswith(names.ENGINE_PREFIX):
            yield not _is_utf8(name) or (isinstance(value, str) and not _is_utf8(value))
