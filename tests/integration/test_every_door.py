"""Whatever way an execution comes in, the stored row equals the record, field by field; and it is there within 2 s."""

import gzip
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import clickhouse_connect
import httpx
import orjson
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

from engine_hooks.adapters.profile_files import imported
from engine_hooks.adapters.profiles.shifting import shift_of
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import FeedbackReason, GpuTimeSource, GraphKind, Purpose
from engine_hooks.contract.span import span_attributes, span_id_of, trace_id_of
from engine_hooks.recorder.recorder import Recorder
from engine_hooks.recorder.spans import readable_span
from tests.fixtures import exporter_rows
from tests.fixtures.running import ROOT, Addresses, free_addresses, running_collector, tachograph
from tests.fixtures.stored_rows import stored

VISIBLE_WITHIN_S = 2.0


def full(sequence: int) -> GraphExecution:
    """An execution with every field filled in, each with a value of its own."""
    return GraphExecution(
        graph_name="P128",
        graph_kind=GraphKind.SPECULATIVE,
        graph_sequence=sequence,
        graph_gpu_time_ns=28_500_001,
        graph_wall_time_ns=61_000_003,
        started_at=1_793_491_200_033_307_444 + sequence,
        duration_ns=88_632_438,
        graph_purpose=Purpose.REFRESH,
        graph_gpu_start_offset_ns=27_417_321,
        graph_gpu_time_source=GpuTimeSource.CUDA_EVENT,
        graph_queue_depth=1,
        graph_after_idle=True,
        graph_completion_feedback=True,
        graph_completion_feedback_reason=FeedbackReason.GRAMMAR,
        batch_lanes=32,
        batch_tokens_drafted=96,
        batch_tokens_accepted=49,
        batch_tokens_emitted=81,
        batch_verification_budget=128,
        scheduler_cost_model="exposed_mean",
        scheduler_estimate_ns=28_496_137,
        scheduler_estimate_gpu_ns=27_768_199,
        scheduler_estimate_handoff_ns=727_938,
        scheduler_expected_tokens=76.019747249282574,
        scheduler_candidate_graphs=("decode", "P128"),
        scheduler_candidate_estimates_ns=(13_792_483, 28_496_137),
        scheduler_candidate_expected_tokens=(32.0, 76.019747249282574),
        cell_id="bench-17",
        cell_arm="before",
        cell_position=3,
        cell_concurrency=32,
    )


def bare(sequence: int) -> GraphExecution:
    """An execution with the required fields only."""
    return GraphExecution(
        "decode", GraphKind.PLAIN_DECODE, sequence, 13_500_000, 13_600_000, 1_793_491_200_000_000_000, 14_000_000
    )


def engine(instance: str) -> EngineResource:
    return EngineResource(
        service_instance_id=instance,
        service_name="llm-engine",
        host_name="gpu-node-011",
        engine_name="reference",
        engine_version="0.5.1",
        engine_package="main-9a44b2",
        engine_recipe="c32",
        engine_tensor_parallel=2,
        gpu_ids=("GPU-0", "GPU-1"),
        engine_attributes={"all_reduce": "custom", "prefix_cache_bytes": "1073741824"},
    )


def by_recorder(to: Addresses, executions: list[GraphExecution], resource: EngineResource) -> None:
    exporter = OTLPSpanExporter(endpoint=to.otlp_grpc, insecure=True)
    with Recorder(resource, exporter=exporter) as recorder:
        for execution in executions:
            recorder.record(execution)


def by_grpc(to: Addresses, executions: list[GraphExecution], resource: EngineResource) -> None:
    exporter = OTLPSpanExporter(endpoint=to.otlp_grpc, insecure=True)
    exporter.export([readable_span(execution, resource) for execution in executions])
    exporter.shutdown()


def by_http_protobuf(to: Addresses, executions: list[GraphExecution], resource: EngineResource) -> None:
    body = encode_spans([readable_span(execution, resource) for execution in executions]).SerializeToString()
    headers = {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
    assert httpx.post(to.otlp_http, content=gzip.compress(body), headers=headers).status_code == 200


def by_http_json(to: Addresses, executions: list[GraphExecution], resource: EngineResource) -> None:
    body = orjson.dumps(as_json(executions, resource))
    answer = httpx.post(to.otlp_http, content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()) == (200, {})


def by_otel_traces(to: Addresses, executions: list[GraphExecution], resource: EngineResource) -> None:
    """As the OpenTelemetry Collector's ClickHouse exporter inserts them, past our collector."""
    request = encode_spans([readable_span(execution, resource) for execution in executions]).SerializeToString()
    with clickhouse_connect.get_client(dsn=to.clickhouse_url) as client:
        exporter_rows.insert(client, request)


DOORS: dict[str, Callable[[Addresses, list[GraphExecution], EngineResource], None]] = {
    "recorder": by_recorder,
    "grpc": by_grpc,
    "http-protobuf": by_http_protobuf,
    "http-json": by_http_json,
    "otel-traces": by_otel_traces,
}


def as_json(executions: list[GraphExecution], resource: EngineResource) -> dict[str, Any]:
    """OTLP/JSON written out by hand, from the contract's page and OTLP's: nothing of ours encodes it."""
    from engine_hooks.contract.span import resource_attributes

    spans = [
        {
            "traceId": trace_id_of(resource.service_instance_id, execution.cell_id).hex().upper(),
            "spanId": span_id_of(resource.service_instance_id, execution.graph_sequence).hex(),
            "name": f"execute_graph {execution.graph_name}",
            "kind": 1,
            "startTimeUnixNano": str(execution.started_at),
            "endTimeUnixNano": str(execution.started_at + execution.duration_ns),
            "attributes": [
                {"key": key, "value": json_value(value)} for key, value in span_attributes(execution).items()
            ],
        }
        for execution in executions
    ]
    attributes = [{"key": key, "value": json_value(value)} for key, value in resource_attributes(resource).items()]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": spans}]}]}


def json_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": str(value)}
    return {"arrayValue": {"values": [json_value(item) for item in value]}}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    with running_collector(tmp_path_factory.mktemp("every-door")) as addresses:
        yield addresses


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Addresses]:
    """A ClickHouse server without a collector: the schema is applied by hand, with the exporter's door."""
    command = [sys.executable, "-m", "tests.fixtures.stand_in_server", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        to = free_addresses(tmp_path)._replace(clickhouse_port=int(process.stdout.readline().rpartition(":")[2]))
        applied = tachograph(to, "schema", "--otel-traces", "--apply", "--clickhouse-url", to.clickhouse_url)
        assert applied.returncode == 0, applied.stderr
        yield to


@pytest.mark.parametrize("door", DOORS)
def test_the_stored_row_equals_the_record(door: str, request: pytest.FixtureRequest) -> None:
    to = request.getfixturevalue("server" if door == "otel-traces" else "collector")
    resource, executions = engine(f"by-{door}"), [full(0), bare(1), full(2)]
    DOORS[door](to, executions, resource)
    assert stored(to, resource.service_instance_id, 3) == [(execution, resource) for execution in executions]


def test_an_imported_trace_is_stored_as_it_was_read(collector: Addresses, cases: Path) -> None:
    file = cases / "traces" / "mi_vllm_piecewise_25.json.gz"
    outcome = tachograph(collector, "import", str(file), "--json")
    assert outcome.returncode == 0, outcome.stderr
    trace = imported(file, GraphKind.MIXED, shift_of(None, 0), lambda _: None)
    for instance in trace.instances:
        rows = stored(collector, instance.resource.service_instance_id, len(instance.executions))
        assert rows == [(execution, instance.resource) for execution in instance.executions]
    assert sum(len(instance.executions) for instance in trace.instances) == 25


def test_a_file_imported_twice_is_stored_once(collector: Addresses, cases: Path) -> None:
    file = cases / "traces" / "mi_sglang_1.json.gz"
    for _ in range(2):
        assert tachograph(collector, "import", str(file)).returncode == 0
    instances = imported(file, GraphKind.MIXED, shift_of(None, 0), lambda _: None).instances
    assert [len(stored(collector, each.resource.service_instance_id, 1)) for each in instances] == [1]


def test_an_execution_is_visible_within_two_seconds(collector: Addresses) -> None:
    """A machine that stumbles may show one later, or two."""
    resource = engine("prompt")
    exporter = OTLPSpanExporter(endpoint=collector.otlp_grpc, insecure=True)
    took_s: list[float] = []
    with Recorder(resource, exporter=exporter) as recorder:
        while len(took_s) < 5 and min(took_s, default=math.inf) >= VISIBLE_WITHIN_S:
            began = time.monotonic()
            recorder.record(bare(len(took_s)))
            # The recorder is still open: nothing but its own timer sends this one.
            assert len(stored(collector, "prompt", len(took_s) + 1)) == len(took_s) + 1
            took_s.append(time.monotonic() - began)
    assert min(took_s) < VISIBLE_WITHIN_S


def test_the_example_of_the_contract_page_is_stored(collector: Addresses) -> None:
    page = (Path(__file__).parents[2] / "docs" / "contract.md").read_text()
    body = page.split("```json\n", 1)[1].split("```", 1)[0]
    answer = httpx.post(collector.otlp_http, content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()) == (200, {})
    attributes = json.loads(body)["resourceSpans"][0]["resource"]["attributes"]
    instance = next(each["value"]["stringValue"] for each in attributes if each["key"] == "service.instance.id")
    spans = json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert len(stored(collector, instance, len(spans))) == len(spans)
