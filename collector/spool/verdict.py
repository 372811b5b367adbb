"""What will become of a request's spans, found in Python: for senders that cannot be kept waiting for ClickHouse.

The rules are the contract's own (`engine_hooks.contract.validation`), which the collector's SQL applies as well;
`tests/fixtures/contract_cases.py` holds them together. Each span is glanced at first (`glance`), and looked into by the
contract's rules only where a glance does not show that all is well.
"""

from collections import Counter
from typing import Any

from collector.acceptance import Outcome
from collector.decoding.attributes import attributes_of, text_of
from collector.decoding.wire import request_class
from collector.spool.glance import PLAIN_EXECUTION, SpanGlance, glance
from engine_hooks.contract import names
from engine_hooks.contract.span import GraphSpan, ReceivedAttributes, is_graph_execution
from engine_hooks.contract.validation import span_refusal


def verdict_of(request: bytes) -> Outcome:
    """What the store will make of a request that `spans_of` has taken; a span stored before is not known here."""
    message: Any = request_class().FromString(request)
    refused: Counter[str] = Counter()
    other = stored = odd = 0
    for resource_spans in message.resource_spans:
        resource = attributes_of(resource_spans.resource.attributes)
        resource_is_fine = not span_refusal(PLAIN_EXECUTION._replace(resource=resource))
        for span in (span for scope in resource_spans.scope_spans for span in scope.spans):
            if not is_graph_execution(text_of(span.name)):
                other += 1
                continue
            seen = (glance(span) if resource_is_fine else SpanGlance.UNCLEAR) or _looked_into(span, resource)
            if isinstance(seen, str):
                refused[seen] += 1
            else:
                stored += 1
                odd += seen is SpanGlance.CLOCK_TROUBLE
    return Outcome(stored, dict(refused), other, clock_trouble=odd)


def _looked_into(span: Any, resource: ReceivedAttributes) -> SpanGlance | str:
    """By the contract's rules: the reason for which a span is refused, or how it is stored."""
    times = (span.start_time_unix_nano, span.end_time_unix_nano)
    attributes = attributes_of(span.attributes)
    read = GraphSpan(text_of(span.name), span.trace_id, span.span_id, *times, attributes, resource)
    if reason := span_refusal(read):
        return reason
    return SpanGlance.CLOCK_TROUBLE if _clock_trouble(attributes) else SpanGlance.FINE


def _clock_trouble(attributes: ReceivedAttributes) -> bool:
    """As `validation.clock_trouble` has it, of attributes that keep the contract."""
    offset = attributes.get(names.GRAPH_GPU_START_OFFSET_NS)
    longer = attributes[names.GRAPH_GPU_TIME_NS] > attributes[names.GRAPH_WALL_TIME_NS]
    return bool(longer or (offset is not None and offset < 0))
