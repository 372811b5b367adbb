"""Rules that one span alone can break, whatever it holds: the contract's refusals, names, attributes."""

import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from collector.conformance import rules
from collector.conformance.findings import Breach, shown
from collector.conformance.rules import Rule
from collector.conformance.spans import ReceivedSpan
from engine_hooks.contract import names, reasons
from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES, Attribute
from engine_hooks.contract.span import GraphSpan, ReceivedAttributes, is_graph_execution, not_recorded, span_name
from engine_hooks.contract.validation import span_refusals

_INTERNAL: Final = 1
_EXPECTED: Final = (names.SERVICE_NAME, names.HOST_NAME, names.ENGINE_NAME)
_SPAN_NAMES: Final = frozenset(attribute.name for attribute in SPAN_ATTRIBUTES)
_RESOURCE_NAMES: Final = frozenset(attribute.name for attribute in RESOURCE_ATTRIBUTES)
_OWN_PREFIXES: Final = frozenset(name.partition(".")[0] for name in _SPAN_NAMES)
_CLOSE: Final = 0.85
_CANDIDATES: Final = (
    names.SCHEDULER_CANDIDATE_GRAPHS,
    names.SCHEDULER_CANDIDATE_ESTIMATES_NS,
    names.SCHEDULER_CANDIDATE_EXPECTED_TOKENS,
)


def breaches_of_resource(resource: ReceivedAttributes) -> Iterator[Breach]:
    """What a resource breaks."""
    for name in _EXPECTED:
        if not_recorded(resource.get(name)):
            yield Breach(rules.RESOURCE_INCOMPLETE, name, "not there")
    for name in resource:
        if name in _SPAN_NAMES:
            yield Breach(rules.ATTRIBUTE_MISPLACED, name, "in the resource")
        elif name not in _RESOURCE_NAMES and (meant := _meant(name, _RESOURCE_NAMES)) and meant not in resource:
            yield Breach(rules.ATTRIBUTE_UNKNOWN, shown(name), f"did you mean {meant}?")


def breaches_of_span(span: ReceivedSpan, *, refused: bool) -> Iterator[Breach]:
    """What a span breaks by itself; where the contract refuses it, every reason, its resource's among them."""
    fields = span.fields
    yield from _names(fields)
    if span.kind != _INTERNAL:
        yield Breach(rules.SPAN_KIND, "", f"kind {span.kind}")
    for name in span.repeated:
        yield Breach(rules.ATTRIBUTE_REPEATED, shown(name), "set again")
    for name in span.unread:
        if name in _SPAN_NAMES:
            yield Breach(rules.ATTRIBUTE_TYPE, name, "a map or bytes, which are not read")
    yield from _attributes(fields.attributes)
    for reason in span_refusals(fields) if refused else ():
        yield _refusal(reason, fields)


def is_meant_as_execution(span: GraphSpan) -> bool:
    """Whether a span of another name holds what an execution must hold."""
    return not is_graph_execution(span.name) and names.GRAPH_NAME in span.attributes


def _names(span: GraphSpan) -> Iterator[Breach]:
    graph = span.attributes.get(names.GRAPH_NAME)
    if isinstance(graph, str) and graph and span.name != span_name(graph):
        yield Breach(rules.SPAN_NAME, "", f"{shown(span.name)}, and {names.GRAPH_NAME} is {shown(graph)}")


def _attributes(received: Collection[str]) -> Iterator[Breach]:
    for name in received:
        if name in _SPAN_NAMES:
            continue
        if name in _RESOURCE_NAMES:
            yield Breach(rules.ATTRIBUTE_MISPLACED, name, "on the span")
            continue
        meant, is_ours = _meant(name, _SPAN_NAMES), name.partition(".")[0] in _OWN_PREFIXES
        if meant and (is_ours or meant not in received):
            yield Breach(rules.ATTRIBUTE_UNKNOWN, shown(name), f"did you mean {meant}?")
        elif is_ours:
            yield Breach(rules.ATTRIBUTE_UNKNOWN, shown(name), "the contract has no such attribute")


@lru_cache(maxsize=512)
def _meant(name: str, known: frozenset[str]) -> str:
    """The contract's attribute that a name is probably meant to be; empty where there is none."""
    if len(name) > 2 * max(map(len, known)):
        return ""
    letters = {_letters(one): one for one in sorted(known)}
    close = get_close_matches(_letters(name), letters, 1, _CLOSE)
    return letters[close[0]] if close else ""


def _letters(name: str) -> str:
    """A name without what languages change in it: `graphGpuTimeNs` and `graph_gpu_time_ns` are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _refusal(reason: str, span: GraphSpan) -> Breach:
    rule, attribute = _REFUSALS[reason]
    if attribute is None:
        return Breach(rule, "", f"{reason}{_values_of(rule, span)}")
    received = span.resource if attribute.name in _RESOURCE_NAMES else span.attributes
    value = received.get(attribute.name)
    told = reason.removeprefix(f"{attribute.name} ")
    return Breach(rule, attribute.name, told if not_recorded(value) else f"{shown(value)} {told}")


def _values_of(rule: Rule, span: GraphSpan) -> str:
    if rule is rules.SPAN_TIMES:
        return f": {span.start_ns} to {span.end_ns}"
    if rule is rules.SPAN_ID:
        return f": {span.trace_id.hex() or 'none'}, {span.span_id.hex() or 'none'}"
    if rule is rules.CANDIDATES_LENGTH:
        lengths = (len(span.attributes.get(name, ())) for name in _CANDIDATES if _is_array(span, name))
        return f": {', '.join(map(str, lengths))}"
    return ""


def _is_array(span: GraphSpan, name: str) -> bool:
    return isinstance(span.attributes.get(name, ()), list | tuple)


_OF_SPANS: Final = {
    reasons.TRACE_ID_INVALID: rules.SPAN_ID,
    reasons.SPAN_ID_INVALID: rules.SPAN_ID,
    reasons.START_MISSING: rules.SPAN_TIMES,
    reasons.START_BEYOND_INT64: rules.SPAN_TIMES,
    reasons.END_BEFORE_START: rules.SPAN_TIMES,
    reasons.SPAN_TOO_LONG: rules.SPAN_TIMES,
    reasons.END_BEYOND_INT64: rules.SPAN_TIMES,
    reasons.ENGINE_ATTRIBUTE_NOT_UTF8: rules.ATTRIBUTE_NOT_UTF8,
    reasons.CANDIDATES_DIFFER: rules.CANDIDATES_LENGTH,
}
_OF_ATTRIBUTES: Final = (
    (reasons.missing, rules.ATTRIBUTE_MISSING),
    (reasons.wrong_type, rules.ATTRIBUTE_TYPE),
    (reasons.not_utf8, rules.ATTRIBUTE_NOT_UTF8),
    (reasons.unknown, rules.ENUM_UNKNOWN),
    (reasons.too_low, rules.OUT_OF_RANGE),
    (reasons.too_high, rules.OUT_OF_RANGE),
)


def _refusal_rules() -> Iterator[tuple[str, tuple[Rule, Attribute | None]]]:
    for reason, rule in _OF_SPANS.items():
        yield reason, (rule, None)
    for attribute in (*RESOURCE_ATTRIBUTES, *SPAN_ATTRIBUTES):
        for reason_of, rule in _OF_ATTRIBUTES:
            yield reason_of(attribute), (rule, attribute)


_REFUSALS: Final = dict(_refusal_rules())
"""By reason: the rule that it breaks, and the attribute it is about."""
