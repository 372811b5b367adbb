"""Bytes in, bytes out: requests that are checked and marked, and OTLP/JSON."""

import json
import math
from contextlib import suppress
from typing import Any

import orjson
import pytest
from google.protobuf.internal.decoder import _DecodeVarint32
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.acceptance import MalformedRequestError
from collector.decoding.otlp_json import protobuf_from_json
from collector.decoding.wire import marks, request_class, request_id_of, spans_of
from tests.fixtures.contract_cases import CASES, SpanCase, request_of
from tests.fixtures.otlp_json import json_of

INT64 = st.integers(-(2**63), 2**63 - 1)
UINT64 = st.integers(0, 2**64 - 1)
UINT32 = st.integers(0, 2**32 - 1)
SCALARS = st.one_of(
    st.builds(AnyValue, string_value=st.text(max_size=8)),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, int_value=INT64),
    st.builds(AnyValue, double_value=st.floats(allow_nan=False)),
    st.builds(AnyValue, bytes_value=st.binary(max_size=8)),
    st.just(AnyValue()),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda items: AnyValue(array_value=ArrayValue(values=items)), st.lists(inner, max_size=3)),
        st.builds(
            lambda items: AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key=k, value=v) for k, v in items])),
            st.lists(st.tuples(st.text(max_size=3), inner), max_size=3),
        ),
    ),
    max_leaves=5,
)
ATTRIBUTES = st.lists(st.builds(KeyValue, key=st.text(max_size=8), value=VALUES), max_size=4)
SPANS = st.builds(
    Span,
    trace_id=st.binary(max_size=17),
    span_id=st.binary(max_size=9),
    parent_span_id=st.binary(max_size=8),
    name=st.text(max_size=12),
    kind=st.sampled_from(Span.SpanKind.values()),
    flags=UINT32,
    start_time_unix_nano=UINT64,
    end_time_unix_nano=UINT64,
    attributes=ATTRIBUTES,
    dropped_attributes_count=UINT32,
    events=st.lists(st.builds(Span.Event, time_unix_nano=UINT64, name=st.text(max_size=4)), max_size=2),
)
REQUESTS = st.builds(
    lambda spans, attributes: ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(resource=Resource(attributes=attributes), scope_spans=[ScopeSpans(spans=part)])
            for part in spans
        ]
    ),
    st.lists(st.lists(SPANS, max_size=3), max_size=2),
    ATTRIBUTES,
)


@given(REQUESTS)
def test_json_and_protobuf_carry_the_same(request: ExportTraceServiceRequest) -> None:
    assert ExportTraceServiceRequest.FromString(protobuf_from_json(json_of(request))) == request


@pytest.mark.parametrize(
    "case", [case for case in CASES if "UTF-8" not in (case.reason or "")], ids=lambda case: case.name
)
def test_the_contracts_cases_in_json(case: SpanCase) -> None:
    request = ExportTraceServiceRequest.FromString(request_of([case]))
    decoded = ExportTraceServiceRequest.FromString(protobuf_from_json(json_of(request)))
    # Text, because NaN equals nothing.
    assert str(decoded) == str(request)


def span_of_json(**fields: Any) -> Any:
    body = orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [fields]}]}]})
    return ExportTraceServiceRequest.FromString(protobuf_from_json(body)).resource_spans[0].scope_spans[0].spans[0]


def test_json_as_the_specification_allows_it() -> None:
    span = span_of_json(
        traceId="5B8EFFF798038103D269B633813FC60C", spanId="eee19b7ec3c1b174", kind=2, colour="red", flags=None
    )
    assert (span.trace_id.hex(), span.span_id.hex(), span.kind) == (
        "5b8efff798038103d269b633813fc60c",
        "eee19b7ec3c1b174",
        2,
    )
    assert span_of_json(startTimeUnixNano=7).start_time_unix_nano == 7
    assert span_of_json(startTimeUnixNano="7").start_time_unix_nano == 7
    assert span_of_json(startTimeUnixNano=7.0).start_time_unix_nano == 7
    assert span_of_json(startTimeUnixNano="-7").start_time_unix_nano == 2**64 - 7
    assert span_of_json(name="a", trace_id="00").trace_id == b""


def value_of_json(value: dict[str, Any]) -> Any:
    return span_of_json(attributes=[{"key": "k", "value": value}]).attributes[0].value


def test_json_values() -> None:
    assert value_of_json({"intValue": "-9223372036854775808"}).int_value == -(2**63)
    assert value_of_json({"intValue": 12}).int_value == 12
    assert value_of_json({"doubleValue": 1}).double_value == 1.0
    assert value_of_json({"doubleValue": "-Infinity"}).double_value == -math.inf
    assert math.isnan(value_of_json({"doubleValue": "NaN"}).double_value)
    assert value_of_json({"bytesValue": "AAE="}).bytes_value == b"\0\1"


@pytest.mark.parametrize(
    "field",
    [
        {"name": 5},
        {"name": ["a"]},
        {"kind": "SPAN_KIND_INTERNAL"},
        {"traceId": "xyz"},
        {"traceId": 7},
        {"startTimeUnixNano": "soon"},
        {"startTimeUnixNano": 1.5},
        {"startTimeUnixNano": True},
        {"startTimeUnixNano": 2**64},
        {"startTimeUnixNano": "1_000"},
        {"attributes": {}},
        {"attributes": [5]},
        {"attributes": [{"key": "k", "value": 5}]},
        {"attributes": [{"key": "k", "value": {"intValue": 2**63}}]},
        {"attributes": [{"key": "k", "value": {"boolValue": "true"}}]},
        {"attributes": [{"key": "k", "value": {"doubleValue": "much"}}]},
        {"attributes": [{"key": "k", "value": {"bytesValue": "%"}}]},
        {"droppedAttributesCount": -1},
    ],
    ids=str,
)
def test_json_of_the_wrong_kind_names_the_field(field: dict[str, Any]) -> None:
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [field]}]}]}).encode()
    with pytest.raises(MalformedRequestError, match="wrong kind"):
        protobuf_from_json(body)


def complaint_of(span: dict[str, Any], resource: dict[str, Any] | None = None) -> str:
    body = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}
    with pytest.raises(MalformedRequestError) as refused:
        protobuf_from_json(json.dumps(body).encode())
    return str(refused.value)


def test_json_of_the_wrong_kind_names_the_attribute_and_the_span() -> None:
    too_large = {"key": "graph.sequence", "value": {"intValue": str(2**63)}}
    said = "AnyValue.intValue has a value of the wrong kind: '9223372036854775808', of attribute 'graph.sequence'"
    # The span's name may stand behind its attributes.
    assert (
        complaint_of({"attributes": [too_large], "name": "execute_graph P128"})
        == f"{said}, of span 'execute_graph P128'"
    )
    assert complaint_of({"attributes": [too_large]}) == said
    assert complaint_of({}, {"attributes": [too_large]}) == said
    bare = complaint_of({"name": "execute_graph", "attributes": [{"key": "cell.id", "value": 5}]})
    assert bare == "KeyValue.value has a value of the wrong kind: 5, of attribute 'cell.id', of span 'execute_graph'"
    assert complaint_of({"name": 5}) == "Span.name has a value of the wrong kind: 5"


def test_a_complaint_about_what_is_nested_deeply_stays_short() -> None:
    value: dict[str, Any] = {"intValue": "x"}
    for _ in range(40):
        value = {"kvlistValue": {"values": [{"key": "k" * 1000, "value": value}]}}
    assert len(complaint_of({"name": "n" * 1000, "attributes": [{"key": "k" * 1000, "value": value}]})) < 500


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(body: bytes) -> None:
    for decode in (lambda: spans_of(body), lambda: spans_of(protobuf_from_json(body))):
        with suppress(MalformedRequestError):
            assert decode() >= 0


@given(REQUESTS, st.integers(0, 2**63))
def test_marking_appends_the_collectors_own_fields(request: ExportTraceServiceRequest, instant: int) -> None:
    raw = request.SerializeToString()
    before, after = marks(len(raw), "b" * 32, instant)
    framed = before + raw + after
    size, start = _DecodeVarint32(framed, 0)
    row = framed[start:]
    assert len(row) == size
    assert row.startswith(raw)
    read = ExportTraceServiceRequest.FromString(row)
    assert {field.field_number: field.data for field in UnknownFieldSet(read)} == {15000: b"b" * 32, 15001: instant}
    assert spans_of(raw) == sum(len(scope.spans) for r in request.resource_spans for scope in r.scope_spans)


def test_identity_is_the_content() -> None:
    assert request_id_of(b"a") == request_id_of(b"a") != request_id_of(b"b")
    assert len(request_id_of(b"")) == 32


def test_invalid_utf8_does_not_sink_a_request() -> None:
    (case,) = [case for case in CASES if case.reason == "graph.name is not valid UTF-8"]
    raw = request_of([case])
    assert spans_of(raw) == 1
    assert request_class().FromString(raw).SerializeToString() == raw
