"""The two-way mapping between records (`GraphExecution`, `EngineResource`) and the fields of an OTLP span.

Standard library only: attributes are plain mappings, ids are bytes. Reading is lenient where the
contract is: an integral double is an integer, what is missing takes its default, what is unknown is ignored.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from engine_hooks.contract import names
from engine_hooks.contract.attributes import RESOURCE_ATTRIBUTES, SPAN_ATTRIBUTES, Attribute, AttributeType
from engine_hooks.contract.execution import EngineResource, GraphExecution, cell_of
from engine_hooks.contract.reasons import missing
from engine_hooks.errors import ContractError

AttributeValue: TypeAlias = str | bool | int | float | tuple[str, ...] | tuple[int, ...] | tuple[float, ...]
"""What an attribute is sent as."""

ReceivedAttributes: TypeAlias = Mapping[str, Any]
"""What came in: any value OTLP can carry, by attribute name."""

EXECUTION_COLUMNS: Final[tuple[str, ...]] = (
    "service_instance_id",
    "started_at",
    "duration_ns",
    "trace_id",
    "span_id",
    *(attribute.column for attribute in RESOURCE_ATTRIBUTES[1:]),
    "engine_attributes",
    *(attribute.column for attribute in SPAN_ATTRIBUTES),
)
"""The columns of one execution, in the order of `graph_executions`. `received_at` is the store's own."""

_SEQUENCE_BITS: Final = 40
_NUMERIC: Final = (int, float)


class GraphSpan(NamedTuple):
    """The fields of an OTLP span that the contract uses, with those of its resource."""

    name: str
    trace_id: bytes
    span_id: bytes
    start_ns: int
    """Unix time."""
    end_ns: int
    attributes: ReceivedAttributes
    resource: ReceivedAttributes


# ---- from records to spans


def span_of(execution: GraphExecution, resource: EngineResource) -> GraphSpan:
    """The whole span of an execution, ids included."""
    instance = resource.service_instance_id
    return GraphSpan(
        name=span_name(execution.graph_name),
        trace_id=trace_id_of(instance, cell_of(execution)),
        span_id=span_id_of(instance, execution.graph_sequence),
        start_ns=execution.started_at,
        end_ns=execution.started_at + execution.duration_ns,
        attributes=span_attributes(execution),
        resource=resource_attributes(resource),
    )


def span_name(graph_name: str) -> str:
    return f"{names.SPAN_NAME_PREFIX} {graph_name}"


def span_attributes(execution: GraphExecution) -> dict[str, AttributeValue]:
    """The span's attributes. `None`, empty and false are not sent: missing means the same."""
    return _recorded(_SPAN_NAMES, _span_fields(execution))


def resource_attributes(resource: EngineResource) -> dict[str, AttributeValue]:
    """The resource's attributes. An engine attribute never hides one of the contract's own."""
    extra = {names.ENGINE_PREFIX + key: value for key, value in resource.engine_attributes.items()}
    return {**extra, **_recorded(_RESOURCE_NAMES, _resource_fields(resource))}


def trace_id_of(instance_id: str, cell: str) -> bytes:
    """One trace for each cell of an engine instance: 16 bytes of a hash."""
    return _digest(f"{instance_id}\0{cell}", 16)


def span_id_of(instance_id: str, sequence: int) -> bytes:
    """24 bits of a hash of the instance, never zero, then 40 bits of the sequence: 8 bytes that compress well."""
    return _instance_prefix(instance_id) + (sequence & ((1 << _SEQUENCE_BITS) - 1)).to_bytes(5, "big")


@lru_cache(maxsize=16)
def _instance_prefix(instance_id: str) -> bytes:
    prefix = _digest(instance_id, 3)
    return prefix if any(prefix) else b"\0\0\1"


@lru_cache(maxsize=64)
def _digest(text: str, size: int) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).digest()


def _recorded(attribute_names: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, AttributeValue]:
    # `type`, not `isinstance`: zero is recorded, False is not.
    return {
        name: value for name, value in zip(attribute_names, values, strict=True) if value or type(value) in _NUMERIC
    }


def _fields_of(record: type[tuple[Any, ...]], attributes: tuple[Attribute, ...]) -> Callable[[Any], tuple[Any, ...]]:
    fields: tuple[str, ...] = record._fields  # type: ignore[attr-defined] # of a named tuple
    return itemgetter(*(fields.index(attribute.column) for attribute in attributes))


_SPAN_NAMES: Final = tuple(attribute.name for attribute in SPAN_ATTRIBUTES)
_RESOURCE_NAMES: Final = tuple(attribute.name for attribute in RESOURCE_ATTRIBUTES)
_span_fields: Final = _fields_of(GraphExecution, SPAN_ATTRIBUTES)
_resource_fields: Final = _fields_of(EngineResource, RESOURCE_ATTRIBUTES)


# ---- from spans to records


def is_graph_execution(name: str) -> bool:
    """Whether a span of this name is a graph execution. Any other span is counted and not kept."""
    return name == names.SPAN_NAME_PREFIX or name.startswith(f"{names.SPAN_NAME_PREFIX} ")


def execution_of(name: str, start_ns: int, end_ns: int, attributes: ReceivedAttributes) -> GraphExecution:
    """The execution that a span records. `validation.span_refusal` tells beforehand whether it is one.

    Raises:
        ContractError: the span's name is another, a required attribute is missing, or a value is of the wrong type.
    """
    if not is_graph_execution(name):
        raise ContractError(f"a span not named {names.SPAN_NAME_PREFIX} is no graph execution")
    fields = dict(_read(SPAN_ATTRIBUTES, attributes))
    return GraphExecution(started_at=start_ns, duration_ns=end_ns - start_ns, **fields)


def resource_of(attributes: ReceivedAttributes) -> EngineResource:
    """The engine instance that a resource describes. What else is under `engine.` is kept as text.

    Raises:
        ContractError: the instance's id is missing, or a value is of the wrong type.
    """
    fields = dict(_read(RESOURCE_ATTRIBUTES, attributes))
    return EngineResource(engine_attributes=dict(engine_attributes(attributes)), **fields)


def engine_attributes(attributes: ReceivedAttributes) -> Iterator[tuple[str, str]]:
    """Scalars under `engine.` that have no column of their own, as text, keyed without the prefix."""
    for name, value in attributes.items():
        if name.startswith(names.ENGINE_PREFIX) and name not in _RESOURCE_NAMES and isinstance(value, _SCALARS):
            yield name.removeprefix(names.ENGINE_PREFIX), _as_text(value)


def _as_text(value: str | float) -> str:
    """Integral doubles as integers, booleans as `true` and `false`, as the store writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _read(attributes: tuple[Attribute, ...], received: ReceivedAttributes) -> Iterator[tuple[str, Any]]:
    for attribute in attributes:
        value = received.get(attribute.name)
        if not_recorded(value):
            if attribute.required:
                raise ContractError(missing(attribute))
            continue
        try:
            yield attribute.column, _reader(attribute)(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ContractError(f"{attribute.name} is not {attribute.type} or unknown") from error


def not_recorded(value: object) -> bool:
    """Null, empty text and the empty array mean "not recorded"."""
    return value is None or (isinstance(value, str | list | tuple) and not value)


def _reader(attribute: Attribute) -> Callable[[Any], Any]:
    return _ENUMS.get(attribute.name) or _READERS[attribute.type]


_SCALARS: Final = (str, bool, int, float)
_READERS: Final[Mapping[AttributeType, Callable[[Any], Any]]] = {
    AttributeType.STRING: str,
    AttributeType.INTEGER: int,
    AttributeType.NUMBER: float,
    AttributeType.BOOLEAN: bool,
    AttributeType.STRINGS: tuple,
    AttributeType.INTEGERS: lambda values: tuple(int(value) for value in values),
    AttributeType.NUMBERS: lambda values: tuple(float(value) for value in values),
}
_ENUMS: Final[Mapping[str, type[StrEnum]]] = {
    names.GRAPH_KIND: names.GraphKind,
    names.GRAPH_PURPOSE: names.Purpose,
    names.GRAPH_GPU_TIME_SOURCE: names.GpuTimeSource,
    names.GRAPH_COMPLETION_FEEDBACK_REASON: names.FeedbackReason,
}
