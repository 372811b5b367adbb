"""Our bytes are those of the stock encoder, whatever came before."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from google.protobuf.internal.encoder import _VarintBytes
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from engine_hooks.contract.attributes import SPAN_ATTRIBUTES, AttributeType
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GRAPH_SEQUENCE, GraphKind
from engine_hooks.errors import ContractError
from engine_hooks.recorder import encoder as encoder_module
from engine_hooks.recorder.encoder import BATCH_SPANS_MAX, RequestEncoder
from engine_hooks.recorder.encodings import Encodings
from engine_hooks.recorder.spans import SpanBuilder
from engine_hooks.recorder.wire import any_value, varint
from tests.fixtures.contract_strategies import engine_resources, graph_executions

ENGINE = EngineResource("host1:1", engine_name="own", gpu_ids=("0", "1"))
FIRST = GraphExecution("decode", GraphKind.PLAIN_DECODE, 0, 7, 8, 1_764_000_000_000_000_000, 9, cell_id="c1")

# Beyond the contract too: the collector refuses what breaks it, and has to be told.
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
_INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [0, 1, -1, 127, 128, 16_383, 16_384, 2**63 - 1, -(2**63)]
)
_FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf, -math.inf])
_BY_TYPE: dict[AttributeType, st.SearchStrategy[Any]] = {
    AttributeType.STRING: _TEXTS,
    AttributeType.INTEGER: st.none() | _INTEGERS,
    AttributeType.NUMBER: st.none() | _FLOATS,
    AttributeType.BOOLEAN: st.booleans(),
    AttributeType.STRINGS: st.lists(_TEXTS, max_size=4).map(tuple),
    AttributeType.INTEGERS: st.lists(_INTEGERS, max_size=4).map(tuple),
    AttributeType.NUMBERS: st.lists(_FLOATS, max_size=4).map(tuple),
}
_ODD_FIELDS = st.one_of(
    # The sequence makes the span's id, and has to be an integer.
    st.tuples(st.just(one.column), _INTEGERS if one.name == GRAPH_SEQUENCE else _BY_TYPE[one.type])
    for one in SPAN_ATTRIBUTES
)
_JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), _FLOATS, st.text(max_size=4), st.binary(max_size=4),
    st.lists(st.integers() | st.text(max_size=3) | st.none(), max_size=3), st.just(object()), st.just({1: 2}),
)  # fmt: skip


@st.composite
def odd_executions(draw: st.DrawFn) -> GraphExecution:
    """Executions whose fields have the contract's types, if not its values."""
    return draw(graph_executions())._replace(**dict(draw(st.lists(_ODD_FIELDS, max_size=8))))


def ours(executions: Sequence[GraphExecution], resource: EngineResource = ENGINE) -> bytes:
    encoder = RequestEncoder(resource)
    (request,) = encoder.requests(map(encoder.span, executions))
    assert request.spans == len(executions)
    return request.body


def stock(executions: Sequence[GraphExecution], resource: EngineResource = ENGINE) -> bytes:
    builder = SpanBuilder(resource)
    return bytes(encode_spans([builder.build(one) for one in executions]).SerializeToString())


@settings(max_examples=100, deadline=None)
@given(st.lists(odd_executions(), min_size=1, max_size=5), engine_resources())
def test_bytes_are_the_stock_encoders(executions: list[GraphExecution], resource: EngineResource) -> None:
    # So the stock classes read equal messages, NaN included, which equals nothing once it was read.
    assert ours(executions, resource) == stock(executions, resource)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(odd_executions(), st.sampled_from(GraphExecution._fields), _JUNK), min_size=1, max_size=5))
def test_junk_takes_nothing_down_and_leaves_no_trace(fuzzed: list[tuple[GraphExecution, str, object]]) -> None:
    used = RequestEncoder(ENGINE)
    for execution, field, junk in fuzzed:
        broken = execution._replace(**{field: junk})
        try:
            span = used.span(broken)
        except ContractError:
            with pytest.raises(ContractError):
                RequestEncoder(ENGINE).span(broken)
            continue
        assert span == RequestEncoder(ENGINE).span(broken)
        (request,) = used.requests([span])
        (scope_spans,) = ExportTraceServiceRequest.FromString(request.body).resource_spans[0].scope_spans
        assert len(scope_spans.spans) == 1
    (request,) = used.requests([used.span(FIRST)])
    assert request.body == stock([FIRST])


@given(st.integers(0, 2**64 - 1))
def test_varint(value: int) -> None:
    assert varint(value) == _VarintBytes(value)


def test_lists_do_for_tuples_and_equal_numbers_are_sent_alike() -> None:
    exact = FIRST._replace(
        batch_lanes=16,
        graph_completion_feedback=True,
        scheduler_expected_tokens=16.0,
        scheduler_candidate_graphs=("decode", "P128"),
        scheduler_candidate_estimates_ns=(1, 2),
        scheduler_candidate_expected_tokens=(1.0, 2.0),
    )
    loose = exact._replace(
        batch_lanes=np.int64(16),  # type: ignore[arg-type]
        graph_completion_feedback=np.True_,  # type: ignore[arg-type]
        scheduler_expected_tokens=16,
        scheduler_candidate_graphs=["decode", "P128"],  # type: ignore[arg-type]
        scheduler_candidate_estimates_ns=[1.0, np.int32(2)],  # type: ignore[arg-type]
        scheduler_candidate_expected_tokens=(1, np.float32(2.0)),
    )
    assert ours([loose]) == stock([exact])
    assert ours([exact, loose]) == ours([loose, exact]) == stock([exact, exact])


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("batch_lanes", "16", "string_value"),
        ("batch_lanes", 1.5, "double_value"),
        ("cell_id", 5, "int_value"),
        ("graph_after_idle", "yes", "string_value"),
        ("scheduler_expected_tokens", "many", "string_value"),
        ("scheduler_candidate_graphs", "P128", "string_value"),
        ("scheduler_candidate_estimates_ns", 7, "int_value"),
    ],
)
def test_the_collector_is_to_judge_a_value_of_another_type(field: str, value: object, kind: str) -> None:
    request = ExportTraceServiceRequest.FromString(ours([FIRST._replace(**{field: value})]))  # type: ignore[arg-type]
    (span,) = request.resource_spans[0].scope_spans[0].spans
    name = next(attribute.name for attribute in SPAN_ATTRIBUTES if attribute.column == field)
    (sent,) = (attribute.value for attribute in span.attributes if attribute.key == name)
    assert sent.WhichOneof("value") == kind
    assert getattr(sent, kind) == value


@pytest.mark.parametrize(
    "broken",
    [
        {"started_at": -1},
        {"started_at": 2**63},
        {"duration_ns": None},
        {"graph_name": "P\udcff128"},
        {"cell_id": {1: 2}},
        {"graph_sequence": 2**64},
        {"batch_lanes": -(2**63) - 1},
        {"cell_arm": "\udcff"},
        {"cell_arm": b"corrected"},
        {"scheduler_expected_tokens": 10**400},
        {"scheduler_candidate_graphs": (None,)},
        {"scheduler_candidate_graphs": np.array(["decode"])},
    ],
)
def test_what_otlp_cannot_carry_is_one_error(broken: dict[str, Any]) -> None:
    with pytest.raises(ContractError, match=r"^[^\n]+$"):
        RequestEncoder(ENGINE).span(FIRST._replace(**broken))


def test_a_resource_that_otlp_cannot_carry_is_refused() -> None:
    with pytest.raises(ContractError, match="UTF-8"):
        RequestEncoder(EngineResource("host\udcff:1"))


def test_requests_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = RequestEncoder(ENGINE)
    spans = [encoder.span(FIRST._replace(graph_sequence=sequence)) for sequence in range(2 * BATCH_SPANS_MAX + 1)]
    assert [request.spans for request in encoder.requests(iter(spans))] == [BATCH_SPANS_MAX, BATCH_SPANS_MAX, 1]
    assert list(encoder.requests([])) == []
    big = [encoder.span(FIRST._replace(cell_arm="x" * size)) for size in (3_000, 9_000, 3_000, 3_000, 3_000)]
    monkeypatch.setattr(encoder_module, "REQUEST_BYTES_MAX", 8_000)
    requests = list(encoder.requests(big))
    assert [request.spans for request in requests] == [1, 1, 2, 1]
    read = [ExportTraceServiceRequest.FromString(request.body) for request in requests]
    assert [len(one.resource_spans[0].scope_spans[0].spans) for one in read] == [1, 1, 2, 1]


def test_encodings_are_kept_within_bounds() -> None:
    asked: list[object] = []

    def encode(value: object) -> bytes:
        asked.append(value)
        return any_value(value)

    encodings = Encodings(encode, kept_max=2)
    assert [encodings[value] for value in ("a", "a", "b", "c", "c", "a")] == [any_value(v) for v in "aabcca"]
    assert asked == ["a", "b", "c", "a"]
    assert len(encodings) <= 2
    assert encodings[0.0] != encodings[-0.0]
