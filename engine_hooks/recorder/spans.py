"""Records as OpenTelemetry spans, ready for any exporter of opentelemetry-sdk."""

from functools import cached_property, lru_cache
from operator import index
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from engine_hooks.contract.execution import EngineResource, GraphExecution, cell_of
from engine_hooks.contract.span import resource_attributes, span_attributes, span_id_of, span_name, trace_id_of
from engine_hooks.errors import ContractError
from engine_hooks.recorder.encoder import SCOPE_NAME

_SCOPE: Final = InstrumentationScope(SCOPE_NAME)
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_LATEST_NS: Final = (1 << 63) - 1


def readable_span(execution: GraphExecution, resource: EngineResource) -> ReadableSpan:
    """The span of one execution. For many of one engine, a `SpanBuilder` does the resource once.

    Raises:
        ContractError: OTLP cannot carry it (times that are no integers or out of range, a name that is no UTF-8).
    """
    return SpanBuilder(resource).build(execution)


class SpanBuilder:
    """Builds the spans of one engine instance."""

    def __init__(self, resource: EngineResource) -> None:
        self._instance_id = resource.service_instance_id
        self._resource = _EngineResource(resource_attributes(resource))

    def build(self, execution: GraphExecution) -> ReadableSpan:
        """The span of one execution; raises as `readable_span` does.

        Times and the name are looked at because one that cannot be encoded would take its whole
        batch down with it. Everything else is the collector's to judge.
        """
        try:
            start_ns = index(execution.started_at)
            end_ns = start_ns + index(execution.duration_ns)
            if not 0 <= start_ns <= end_ns <= _LATEST_NS:
                raise ContractError("a span's times must lie between 1970 and 2262, the end not before the start")
            return ReadableSpan(
                name=_encodable_name(execution.graph_name),
                context=self._context(execution),
                resource=self._resource,
                attributes=span_attributes(execution),
                kind=SpanKind.INTERNAL,
                start_time=start_ns,
                end_time=end_ns,
                instrumentation_scope=_SCOPE,
            )
        except (TypeError, AttributeError, UnicodeError) as error:
            raise ContractError("a record whose fields are not of the contract's types cannot be sent") from error

    def _context(self, execution: GraphExecution) -> SpanContext:
        return SpanContext(
            trace_id=int.from_bytes(trace_id_of(self._instance_id, cell_of(execution)), "big"),
            span_id=int.from_bytes(span_id_of(self._instance_id, execution.graph_sequence), "big"),
            is_remote=False,
            trace_flags=_SAMPLED,
        )


class _EngineResource(Resource):
    """A resource that hashes once: the exporter groups spans by it, and the SDK's hash renders JSON each time."""

    @cached_property
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)


@lru_cache(maxsize=256)
def _encodable_name(graph_name: str) -> str:
    name = span_name(graph_name)
    name.encode()
    return name
