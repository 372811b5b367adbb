"""Every door with good and bad input: the right answer, the good spans stored, the process alive."""

import gzip
import os
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import httpx
import orjson
import pytest
from clickhouse_connect.driver.client import Client
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from collector.receivers.answers import REQUEST_BYTES_MAX
from collector.spool.records import Ledger
from tests.fixtures.contract_cases import (
    GOOD_ATTRIBUTES,
    GOOD_RESOURCE,
    NO_ATTRIBUTES,
    NOT_UTF8,
    STARTED_AT,
    SpanCase,
    request_of,
)
from tests.fixtures.doors import GZIP, JSON, PROTOBUF, WAYS, Doors, open_doors
from tests.fixtures.otlp_json import json_of

Send = Callable[[Doors, bytes], ExportTraceServiceResponse]
GOOD = SpanCase("good")
NEGATIVE_TIME = SpanCase("negative", attributes={"graph.gpu_time_ns": -5})


@pytest.fixture
def doors(clickhouse: Client) -> Iterator[Doors]:
    with open_doors(clickhouse) as opened:
        yield opened


@pytest.fixture(params=WAYS, ids=lambda way: way.replace(" ", "_"))
def send(request: pytest.FixtureRequest) -> Send:
    return WAYS[request.param]


def stored(client: Client) -> int:
    return int(str(client.command("SELECT count() FROM graph_executions")))


def eventually(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


SPAN_NUMBERS = count(1)


def request_with(*cases: SpanCase) -> bytes:
    """A request of these, each as a span of its own."""
    return request_of(
        case._replace(span={"span_id": next(SPAN_NUMBERS).to_bytes(8, "big"), **case.span}) for case in cases
    )


def test_success_leaves_partial_success_unset(doors: Doors, send: Send, clickhouse: Client) -> None:
    assert send(doors, request_with(GOOD, GOOD)) == ExportTraceServiceResponse()
    assert stored(clickhouse) == 2


def test_an_empty_request_is_a_success(doors: Doors, send: Send) -> None:
    assert send(doors, b"") == ExportTraceServiceResponse()


def test_partial_success_names_reasons_and_counts(doors: Doors, send: Send, clickhouse: Client) -> None:
    nameless = SpanCase("nameless", attributes={"graph.name": None})
    answer = send(doors, request_with(GOOD, NEGATIVE_TIME, nameless, nameless)).partial_success
    assert answer.rejected_spans == 3
    assert answer.error_message == (
        "3 of 4 graph executions refused: graph.name is missing (2); graph.gpu_time_ns is negative (1)"
    )
    assert stored(clickhouse) == 1
    assert doors.metric("executions_refused_total", reason="graph.name is missing") == 2
    assert doors.metric("executions_stored_total") == 1


def test_of_several_resources_those_that_name_no_engine_are_refused(
    doors: Doors, send: Send, clickhouse: Client
) -> None:
    nameless = [
        SpanCase("no resource", resource=NO_ATTRIBUTES, has_resource=False),
        SpanCase("no attributes", resource=NO_ATTRIBUTES),
        SpanCase("a host's name alone", resource=NO_ATTRIBUTES | {"host.name": "host1"}),
    ]
    answer = send(doors, request_with(nameless[0], GOOD, *nameless[1:], GOOD)).partial_success
    assert answer.error_message == "3 of 5 graph executions refused: service.instance.id is missing (3)"
    assert clickhouse.query("SELECT DISTINCT service_instance_id FROM graph_executions").result_rows == [
        (GOOD_RESOURCE["service.instance.id"],)
    ]
    assert stored(clickhouse) == 2


def test_a_request_sent_again_is_stored_once_and_answered_alike(doors: Doors, send: Send, clickhouse: Client) -> None:
    request = request_with(GOOD, NEGATIVE_TIME)
    first = send(doors, request)
    assert send(doors, request) == first
    assert first.partial_success.rejected_spans == 1
    assert stored(clickhouse) == 1
    assert doors.metric("duplicate_requests_total") == 1
    assert doors.metric("executions_stored_total") == 1


def test_other_spans_are_accepted_and_not_kept(doors: Doors, send: Send, clickhouse: Client) -> None:
    other = SpanCase("other", span={"name": "GET /v1/chat"}, attributes={"graph.name": None})
    odd = SpanCase("odd clocks", attributes={"graph.gpu_start_offset_ns": -1})
    assert send(doors, request_with(other, odd, other)) == ExportTraceServiceResponse()
    assert stored(clickhouse) == 1
    assert doors.metric("other_spans_total") == 2
    assert doors.metric("executions_clock_trouble_total") == 1


def test_a_span_with_ten_thousand_attributes(doors: Doors, send: Send, clickhouse: Client) -> None:
    many = SpanCase("many", attributes={f"other.{n}": n for n in range(10_000)})
    assert send(doors, request_with(GOOD, many)) == ExportTraceServiceResponse()
    assert stored(clickhouse) == 2


def test_negative_span_times(doors: Doors, send: Send, clickhouse: Client) -> None:
    before_1970 = SpanCase("early", span={"start_time_unix_nano": 2**64 - 9, "end_time_unix_nano": 2**64 - 1})
    answer = send(doors, request_with(GOOD, before_1970)).partial_success
    assert answer.error_message.endswith("span start is beyond signed 64 bit nanoseconds (1)")
    assert stored(clickhouse) == 1


@pytest.mark.parametrize("way", [way for way in WAYS if "json" not in way])
def test_unknown_fields_are_ignored(doors: Doors, way: str, clickhouse: Client) -> None:
    future_field = b"\xba\x3e\x03new"  # field 999, three bytes
    assert WAYS[way](doors, request_with(GOOD) + future_field) == ExportTraceServiceResponse()
    assert stored(clickhouse) == 1


@pytest.mark.parametrize("way", [way for way in WAYS if "json" not in way])
def test_a_span_with_invalid_utf8_is_refused_alone(doors: Doors, way: str, clickhouse: Client) -> None:
    answer = WAYS[way](doors, request_with(SpanCase("broken", attributes={"graph.name": NOT_UTF8}), GOOD))
    assert answer.partial_success.error_message.endswith("graph.name is not valid UTF-8 (1)")
    assert stored(clickhouse) == 1


def json_request(*cases: SpanCase) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(json_of(ExportTraceServiceRequest.FromString(request_with(*cases))))
    return content


def test_json_with_broken_text_unknown_keys_and_negative_times(doors: Doors, clickhouse: Client) -> None:
    request = json_request(*[GOOD] * 5)
    spans = [resource["scopeSpans"][0]["spans"][0] for resource in request["resourceSpans"]]
    request["later"] = {"what": [1]}
    spans[0].update(colour="red", traceId=spans[0]["traceId"].upper(), startTimeUnixNano=STARTED_AT, flags=None)
    spans[1]["startTimeUnixNano"] = "-5"
    name = next(item for item in spans[2]["attributes"] if item["key"] == "graph.name")
    name["value"] = {"stringValue": "BROKEN"}
    name = next(item for item in spans[3]["attributes"] if item["key"] == "graph.name")
    name["value"] = {"stringValue": "HALF"}
    body = orjson.dumps(request).replace(b"BROKEN", b"\xff\xfe").replace(b"HALF", rb"\ud800")
    answer = doors.post(body, **JSON)
    assert answer.status_code == 200
    assert answer.json()["partialSuccess"] == {
        "rejectedSpans": "3",
        "errorMessage": "3 of 5 graph executions refused: graph.name is not valid UTF-8 (2); "
        "span start is beyond signed 64 bit nanoseconds (1)",
    }
    assert stored(clickhouse) == 2


GARBAGE = b"\x93garbage" * 9
BAD_OVER_HTTP = {
    "garbage": (400, GARBAGE, PROTOBUF),
    "garbage for JSON": (400, b"{'a'", JSON),
    "JSON that is no object": (400, b"[1]", JSON),
    "JSON too deep": (400, b'{"resourceSpans":' + b"[" * 100_000, JSON),
    "a value of the wrong kind": (400, b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":5}]}]}]}', JSON),
    "fields of another message": (400, b"\xba\x3e\x03new", PROTOBUF),
    "not gzip": (400, b"plain", PROTOBUF | GZIP),
    "truncated gzip": (400, gzip.compress(os.urandom(5000))[:-20], PROTOBUF | GZIP),
    "truncated protobuf": (400, request_of([GOOD])[:-3], PROTOBUF),
    "wrong content type": (415, b"<xml/>", {"content-type": "text/xml"}),
    "no content type": (415, b"x", {}),
    "unknown encoding": (415, b"x", PROTOBUF | {"content-encoding": "br"}),
    "64 MiB": (413, bytes(64 * 1024 * 1024), PROTOBUF),
    "64 MiB of JSON": (413, b" " * (64 * 1024 * 1024), JSON),
    "64 MiB in little gzip": (413, gzip.compress(bytes(64 * 1024 * 1024)), PROTOBUF | GZIP),
}


@pytest.mark.parametrize("name", BAD_OVER_HTTP)
def test_bad_requests_over_http(doors: Doors, clickhouse: Client, name: str) -> None:
    status, body, headers = BAD_OVER_HTTP[name]
    answer = doors.post(body, **headers)
    assert answer.status_code == status
    if headers.get("content-type") == PROTOBUF["content-type"]:
        assert answer.headers["content-type"] == PROTOBUF["content-type"]
        assert Status.FromString(answer.content).message
    else:
        assert answer.json()["message"]
    assert doors.metric("otlp_requests_total", door="http", status=str(status)) == 1
    assert WAYS["http protobuf"](doors, request_with(GOOD)) == ExportTraceServiceResponse()
    assert stored(clickhouse) == 1


def test_other_methods_and_paths(doors: Doors) -> None:
    answer = httpx.get(doors.traces_url)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    answer = httpx.post(doors.traces_url.replace("traces", "logs"))
    assert answer.status_code == 404
    assert "POST /v1/traces" in answer.json()["message"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (GARBAGE, grpc.StatusCode.INVALID_ARGUMENT),
        (request_of([GOOD])[:-3], grpc.StatusCode.INVALID_ARGUMENT),
        (bytes(REQUEST_BYTES_MAX + 1), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (bytes(64 * 1024 * 1024), grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
    ids=["garbage", "truncated", "just_too_large", "64_MiB"],
)
@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip], ids=["plain", "gzip"])
def test_bad_requests_over_grpc(
    doors: Doors, clickhouse: Client, body: bytes, code: grpc.StatusCode, compression: grpc.Compression
) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        doors.over_grpc(body, compression)
    assert refused.value.code() == code
    assert refused.value.details()
    # No RetryInfo: nobody should send this again.
    assert b"RetryInfo" not in b"".join(bytes(value, "latin1") if isinstance(value, str) else value for _, value in refused.value.trailing_metadata() or ())  # fmt: skip
    counted = code.name if code is grpc.StatusCode.INVALID_ARGUMENT else "UNREADABLE"
    # gRPC turns the oversized away by itself, and tells the receiver a little later.
    eventually(lambda: doors.metric("otlp_requests_total", door="grpc", status=counted) == 1)
    assert doors.over_grpc(request_with(GOOD)) == ExportTraceServiceResponse()
    assert stored(clickhouse) == 1


def test_what_only_clickhouse_cannot_read_is_set_aside_and_sinks_no_neighbour(doors: Doors, clickhouse: Client) -> None:
    field_of_another_wire_type = b"\x08\x05"
    answers = [
        doors.writer.accept(request_with(GOOD), "grpc"),
        doors.writer.accept(request_with(GOOD, GOOD) + field_of_another_wire_type, "grpc"),
        doors.writer.accept(request_with(GOOD, GOOD, GOOD), "grpc"),
    ]
    # It is kept, so its sender need not keep it.
    assert [answer.result(10).stored for answer in answers] == [1, 2, 3]
    eventually(lambda: doors.writer.spool.state().set_aside_requests == 1)
    eventually(lambda: doors.writer.spool.state().pending_requests == 0)
    assert stored(clickhouse) == 4
    assert doors.writer.spool.ledger() == {"grpc": Ledger(received=6, stored=4, set_aside=2)}


def exporters(doors: Doors) -> dict[str, SpanExporter]:
    return {
        "grpc": GrpcExporter(endpoint=f"http://127.0.0.1:{doors.grpc_port}"),
        "grpc gzip": GrpcExporter(endpoint=f"http://127.0.0.1:{doors.grpc_port}", compression=grpc.Compression.Gzip),
        "http": HttpExporter(endpoint=doors.traces_url),
        "http gzip": HttpExporter(endpoint=doors.traces_url, compression=Compression.Gzip),
    }


@pytest.mark.parametrize("name", ["grpc", "grpc gzip", "http", "http gzip"])
def test_the_stock_exporters(doors: Doors, clickhouse: Client, name: str) -> None:
    provider = TracerProvider(resource=Resource(GOOD_RESOURCE))
    provider.add_span_processor(BatchSpanProcessor(exporters(doors)[name]))
    tracer = provider.get_tracer("test")
    for sequence in range(700):
        attributes = GOOD_ATTRIBUTES | {"graph.sequence": sequence}
        tracer.start_span("execute_graph P128", attributes=attributes, start_time=STARTED_AT).end(STARTED_AT + 9)
    provider.shutdown()
    row = clickhouse.query("SELECT count(), sum(graph_sequence), any(duration_ns) FROM graph_executions").first_row
    assert row == (700, 699 * 700 // 2, 9)


def test_the_metrics_page(doors: Doors) -> None:
    doors.over_grpc(request_with(GOOD, NEGATIVE_TIME))
    answer = httpx.get(doors.traces_url.replace("v1/traces", "metrics"))
    assert answer.headers["content-type"].startswith("text/plain; version=")
    lines = answer.text.splitlines()
    assert 'tachograph_otlp_requests_total{door="grpc",status="OK"} 1.0' in lines
    assert 'tachograph_executions_refused_total{reason="graph.gpu_time_ns is negative"} 1.0' in lines
    assert "tachograph_insert_duration_seconds_count 1.0" in lines
    assert "tachograph_writer_queue_bytes 0.0" in lines
    typed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    helped = {line.split()[2] for line in lines if line.startswith("# HELP")}
    assert typed == helped
    assert not [name for name in typed if name.endswith("_created")]


def test_healthz(doors: Doors) -> None:
    answer = httpx.get(doors.traces_url.replace("v1/traces", "healthz"))
    assert (answer.status_code, answer.json()["status"]) == (200, "alive")


@pytest.mark.parametrize("way", ["grpc", "http protobuf gzip"])
def test_the_labelled_cells(doors: Doors, clickhouse: Client, cases: Path, way: str) -> None:
    from tests.fixtures.otlp_files import requests_in

    truth = orjson.loads((cases / "cells" / "truth.json").read_bytes())["cells"]
    for cell in truth:
        for request in requests_in(cases / "cells" / cell["file"]):
            assert WAYS[way](doors, request) == ExportTraceServiceResponse()
    for cell in truth:
        sums = cell["recorded_sums"]
        row = clickhouse.query(
            f"SELECT count(), {', '.join(f'sum({column})' for column in sums)} FROM graph_executions"  # noqa: S608 # our own column names
            " WHERE service_instance_id = {instance:String}",
            parameters={"instance": cell["resource"]["service.instance.id"]},
        ).first_row
        assert row == (cell["sequence"]["recorded"], *sums.values()), cell["id"]
    assert len(truth) == 17
