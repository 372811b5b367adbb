"""The recorder's own OTLP client, against real gRPC and HTTP services."""

import gzip
import logging
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.contract.span import execution_of, resource_of
from engine_hooks.recorder.losses import LossReason
from engine_hooks.recorder.recorder import Recorder
from engine_hooks.recorder.sending import requests_of
from tests.fixtures.ports import free_port
from tests.fixtures.trace_service import HttpAnswer, TraceService, http_trace_service, trace_service

ROOT = Path(__file__).parents[2]
ENGINE = EngineResource("host1:1", engine_name="own", gpu_ids=("0", "1"), engine_attributes={"all_reduce": "nccl"})


def execution(sequence: int) -> GraphExecution:
    return GraphExecution(
        "P128",
        GraphKind.SPECULATIVE,
        sequence,
        28_500_000,
        29_000_000,
        1_764_000_000_000_000_000 + sequence * 30_000_000,
        31_000_000,
        scheduler_candidate_graphs=("P128", "decode"),
        scheduler_candidate_estimates_ns=(29_000_000, 7_000_000),
        scheduler_candidate_expected_tokens=(85.5, 16.0),
    )


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[TraceService]:
    with trace_service() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.endpoint)
        yield running


@pytest.fixture
def recorder() -> Iterator[Callable[..., Recorder]]:
    """Makes recorders, and stops them."""
    made: list[Recorder] = []

    def make(**options: Any) -> Recorder:
        made.append(Recorder(ENGINE, **options))
        return made[-1]

    yield make
    for one in made:
        one.stop(0.1)


def test_delivers_what_was_recorded(service: TraceService, recorder: Callable[..., Recorder]) -> None:
    executions = [execution(sequence) for sequence in range(1_300)]
    running = recorder()
    for one in executions:
        running.record(one)
    assert running.flush(60)
    received = [
        execution_of(span.name, span.start_time_unix_nano, span.end_time_unix_nano, _attributes(span))
        for span in service.spans
    ]
    assert received == executions
    assert max(len(request.resource_spans[0].scope_spans[0].spans) for request in service.requests) <= 512
    assert {len(request.resource_spans) for request in service.requests} == {1}
    assert resource_of(_attributes(service.requests[0].resource_spans[0].resource)) == ENGINE
    assert running.exported == 1_300
    assert not any(running.losses.values())


def test_delivers_within_two_seconds_unasked(service: TraceService, recorder: Callable[..., Recorder]) -> None:
    """A machine that stumbles may deliver one later, or two."""
    running = recorder()
    running.record(execution(0))
    service.wait_for(1)  # the first one pays for the import and the connection
    took_s = []
    while len(took_s) < 5 and min(took_s, default=math.inf) >= 2:
        recorded_at = time.monotonic()
        running.record(execution(1 + len(took_s)))
        service.wait_for(2 + len(took_s))
        took_s.append(time.monotonic() - recorded_at)
    assert min(took_s) < 2


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_collector_that_is_away_costs_nothing_but_time_at_the_end(
    protocol: str, monkeypatch: pytest.MonkeyPatch, recorder: Callable[..., Recorder]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    running = recorder()
    for sequence in range(100):
        running.record(execution(sequence))
    assert not running.flush(0.3)
    assert not any(running.losses.values())
    started = time.monotonic()
    assert not running.stop(0.3)
    assert time.monotonic() - started < 3
    assert {reason: count for reason, count in running.losses.items() if count} == {LossReason.STOPPED: 100}
    assert running.exported == 0


def test_what_waits_is_sent_at_the_end_though_the_next_attempt_was_far(
    service: TraceService, recorder: Callable[..., Recorder]
) -> None:
    service.refuse_with, service.retry_after_s = grpc.StatusCode.RESOURCE_EXHAUSTED, 120
    running = recorder(interval_s=0.01)
    running.record(execution(0))
    _until(lambda: service.refused > 0)
    running.record(execution(1))
    service.refuse_with = None
    assert running.stop()
    assert running.exported == 2


def test_a_collector_that_comes_back_gets_the_rest(service: TraceService, recorder: Callable[..., Recorder]) -> None:
    service.refuse_with = grpc.StatusCode.INVALID_ARGUMENT
    running = recorder()
    running.record(execution(0))
    assert running.flush(60)
    service.refuse_with = None
    running.record(execution(1))
    assert running.flush(60)
    assert running.losses[LossReason.EXPORT_FAILED] == 1
    assert [_attributes(span)["graph.sequence"] for span in service.spans] == [1]


def test_an_overloaded_collector_is_tried_again(service: TraceService, recorder: Callable[..., Recorder]) -> None:
    service.refuse_with = grpc.StatusCode.UNAVAILABLE
    running = recorder()
    running.record(execution(0))
    _until(lambda: service.refused > 0)
    service.refuse_with = None
    service.wait_for(1)
    assert running.flush(60)
    assert running.exported == 1


def test_a_slow_collector_never_blocks_the_engine_and_memory_stays_bounded(
    service: TraceService, recorder: Callable[..., Recorder], caplog: pytest.LogCaptureFixture
) -> None:
    service.gate.clear()
    running = recorder(capacity=1_000, interval_s=0.01)
    slowest_ns = 0
    for sequence in range(20_000):
        started = time.perf_counter_ns()
        running.record(execution(sequence))
        slowest_ns = max(slowest_ns, time.perf_counter_ns() - started)
    assert slowest_ns < 1_000_000_000
    assert len(running._buffer) <= 1_000
    lost = running.losses[LossReason.BUFFER_FULL]
    assert 20_000 - 1_000 - 2 * 512 <= lost <= 19_000
    service.gate.set()
    assert running.flush(60)
    sequences = [_attributes(span)["graph.sequence"] for span in service.spans]
    assert sequences == sorted(set(sequences))
    assert len(sequences) == running.exported == 20_000 - lost
    with caplog.at_level(logging.WARNING):
        running.stop()
    assert f"graph executions lost: {lost:,} because the buffer was full" in caplog.text


def test_stop_gives_up_in_time_and_counts_what_was_left(
    service: TraceService, recorder: Callable[..., Recorder], caplog: pytest.LogCaptureFixture
) -> None:
    service.gate.clear()
    running = recorder(interval_s=0.01)
    for sequence in range(600):
        running.record(execution(sequence))
    started = time.monotonic()
    assert not running.stop(0.2)
    assert time.monotonic() - started < 3
    running.record(execution(600))
    losses = running.losses
    assert running.exported + sum(losses.values()) == 601
    assert losses[LossReason.STOPPED] >= 1
    assert "already shutdown" not in caplog.text


@pytest.mark.parametrize("protocol", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
def test_http_is_chosen_by_the_standard_variables(
    protocol: str, monkeypatch: pytest.MonkeyPatch, recorder: Callable[..., Recorder]
) -> None:
    monkeypatch.setenv(protocol, "http/protobuf")
    with http_trace_service() as (endpoint, paths):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        running = recorder()
        running.record(execution(0))
        assert running.flush(60)
    assert paths == ["/v1/traces"]
    assert running.exported == 1


@pytest.mark.parametrize(("retry_after_s", "exported"), [(None, 0), (0.01, 1)])
def test_an_exhausted_collector_is_tried_again_only_if_it_asks_for_it(
    service: TraceService, recorder: Callable[..., Recorder], retry_after_s: float | None, exported: int
) -> None:
    service.refuse_with, service.retry_after_s = grpc.StatusCode.RESOURCE_EXHAUSTED, retry_after_s
    running = recorder()
    running.record(execution(0))
    running.start()
    _until(lambda: service.refused > exported)  # the second time it was asked for
    service.refuse_with = None
    assert running.flush(60)
    assert (running.exported, running.losses[LossReason.EXPORT_FAILED]) == (exported, 1 - exported)


def test_what_is_refused_by_partial_success_is_counted(
    service: TraceService, recorder: Callable[..., Recorder], caplog: pytest.LogCaptureFixture
) -> None:
    service.partial_success = ExportTracePartialSuccess(rejected_spans=2, error_message="2 spans: too long")
    running = recorder()
    for sequence in range(5):
        running.record(execution(sequence))
    assert running.flush(60)
    assert running.exported == 3
    assert running.losses[LossReason.REFUSED] == 2
    assert "refuses: 2 spans: too long" in caplog.text


@pytest.fixture
def over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")


@pytest.mark.usefixtures("over_http")
@pytest.mark.parametrize("is_gzip", [False, True])
def test_http_carries_headers_and_compression(
    is_gzip: bool, monkeypatch: pytest.MonkeyPatch, recorder: Callable[..., Recorder]
) -> None:
    bodies: list[tuple[Message, bytes]] = []
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip" if is_gzip else "none")
    with http_trace_service(bodies=bodies) as (endpoint, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        running = recorder()
        running.record(execution(0))
        assert running.flush(60)
    ((sent, body),) = bodies
    assert sent["authorization"] == "Bearer secret"
    assert sent["content-type"] == "application/x-protobuf"
    assert sent["content-encoding"] == ("gzip" if is_gzip else None)
    (expected,) = requests_of(ENGINE, [execution(0)])
    assert (gzip.decompress(body) if is_gzip else body) == expected.body


PARTIAL = ExportTraceServiceResponse(
    partial_success=ExportTracePartialSuccess(rejected_spans=1, error_message="1 span: too long")
).SerializeToString()


@pytest.mark.parametrize(
    ("answers", "asked", "losses"),
    [
        ([HttpAnswer(503, {"Retry-After": "0"}), HttpAnswer(429, {"Retry-After": "0"})], 3, {}),
        ([HttpAnswer(502)], 2, {}),
        ([HttpAnswer(500)], 1, {LossReason.EXPORT_FAILED: 1}),
        ([HttpAnswer(400)], 1, {LossReason.EXPORT_FAILED: 1}),
        ([HttpAnswer(307, {"Location": "http://127.0.0.1:1/"})], 1, {LossReason.EXPORT_FAILED: 1}),
        ([HttpAnswer(200, body=PARTIAL)], 1, {LossReason.REFUSED: 1}),
    ],
)
@pytest.mark.usefixtures("over_http")
def test_http_failures_by_otlps_rules(
    answers: list[HttpAnswer],
    asked: int,
    losses: dict[LossReason, int],
    monkeypatch: pytest.MonkeyPatch,
    recorder: Callable[..., Recorder],
) -> None:
    with http_trace_service(answers) as (endpoint, paths):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        running = recorder()
        running.record(execution(0))
        assert running.flush(60)
    assert len(paths) == asked
    assert {reason: count for reason, count in running.losses.items() if count} == losses
    assert running.exported == 1 - sum(losses.values())


@pytest.mark.usefixtures("over_http")
def test_http_says_what_the_collector_says(
    monkeypatch: pytest.MonkeyPatch, recorder: Callable[..., Recorder], caplog: pytest.LogCaptureFixture
) -> None:
    with http_trace_service([HttpAnswer(400, body=Status(message="bad spans").SerializeToString())]) as (endpoint, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        running = recorder()
        running.record(execution(0))
        assert running.flush(60)
    assert "HTTP 400: bad spans" in caplog.text


@pytest.mark.usefixtures("over_http")
@pytest.mark.parametrize("asked", ["3600", "Thu, 01 Jan 2099 00:00:00 GMT"])
def test_http_waits_as_long_as_it_is_asked_to(
    asked: str, monkeypatch: pytest.MonkeyPatch, recorder: Callable[..., Recorder]
) -> None:
    with http_trace_service([HttpAnswer(503, {"Retry-After": asked})]) as (endpoint, paths):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        running = recorder(interval_s=0.01)
        running.record(execution(0))
        _until(lambda: len(paths) == 1)
        assert len(paths) == 1
        assert not any(running.losses.values())
        assert running.stop()
    assert len(paths) == 2
    assert running.exported == 1


@pytest.mark.usefixtures("over_http")
def test_http_that_cannot_be_asked_at_all_is_no_outage(
    monkeypatch: pytest.MonkeyPatch, recorder: Callable[..., Recorder]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://")
    running = recorder()
    running.record(execution(0))
    assert running.flush(60)
    assert running.losses[LossReason.EXPORT_FAILED] == 1


@pytest.mark.parametrize("scheme", ["grpc", "http/protobuf"])
def test_an_exporter_of_the_sdk_goes_on_working(
    scheme: str, monkeypatch: pytest.MonkeyPatch, service: TraceService, recorder: Callable[..., Recorder]
) -> None:
    with http_trace_service() as (endpoint, paths):
        exporter = (
            GrpcSpanExporter(endpoint=service.endpoint)
            if scheme == "grpc"
            else HttpSpanExporter(endpoint=f"{endpoint}/v1/traces")
        )
        running = recorder(exporter=exporter)
        running.record(execution(0))
        assert running.flush(60)
        assert running.exported == 1
        running.stop()
    assert len(service.requests) + len(paths) == 1


# ---- in processes of their own: fork and exit

ENGINE_SCRIPT = """
import multiprocessing, os, sys, time
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.recorder.recorder import Recorder

def execution(sequence):
    return GraphExecution("decode", GraphKind.PLAIN_DECODE, sequence, 7, 8, 1_764_000_000_000_000_000, 9)

recorder = Recorder(EngineResource("script"), exit_timeout_s=60)
"""

FORK = """
for sequence in range(10):
    recorder.record(execution(sequence))
if {flush_first}:
    assert recorder.flush(60)
child = os.fork()
if child == 0:
    assert recorder.exported == 0 and not any(recorder.losses.values())
    recorder.record(execution(100))
    assert recorder.flush(60), recorder.losses
    assert recorder.exported == 1, recorder.losses
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
recorder.record(execution(10))
assert recorder.flush(60)
assert recorder.exported == 11, (recorder.exported, recorder.losses)
"""

MULTIPROCESSING = """
def engine():
    recorder.record(execution(100))

if __name__ == "__main__":
    recorder.record(execution(0))
    assert recorder.flush(60)
    process = multiprocessing.get_context("fork").Process(target=engine)
    process.start()
    process.join(60)
    assert process.exitcode == 0
"""

EXIT = """
recorder.start()
recorder.start()
for sequence in range(700):
    recorder.record(execution(sequence))
{how}
"""


@pytest.mark.parametrize("flush_first", [True, False])
def test_survives_fork(service: TraceService, flush_first: bool) -> None:
    _run(ENGINE_SCRIPT + FORK.format(flush_first=flush_first))
    assert _sequences(service) == [*range(11), 100]


def test_survives_multiprocessing(service: TraceService) -> None:
    _run(ENGINE_SCRIPT + MULTIPROCESSING)
    assert _sequences(service) == [0, 100]


@pytest.mark.parametrize("how", ["", "sys.exit(0)", "raise SystemExit"])
def test_interpreter_exit_delivers_the_rest(service: TraceService, how: str) -> None:
    _run(ENGINE_SCRIPT + EXIT.format(how=how))
    assert _sequences(service) == list(range(700))


def test_interpreter_exit_is_bounded_when_the_collector_hangs(service: TraceService) -> None:
    service.gate.clear()
    script = ENGINE_SCRIPT.replace("exit_timeout_s=60", "exit_timeout_s=0.3")
    ended_at = float(_run(script + EXIT.format(how="print(time.monotonic())")))  # its end, but for what exits do
    assert time.monotonic() - ended_at < 8


def test_the_page_of_the_contract_shows_code_that_runs(service: TraceService) -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/contract.md").read_text(), re.DOTALL)
    _run(shown)
    assert [span.name for span in service.spans] == ["execute_graph decode"]


def _run(script: str) -> str:
    """What it prints."""
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=ROOT,
        timeout=180,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def _sequences(service: TraceService) -> list[int]:
    return sorted(_attributes(span)["graph.sequence"] for span in service.spans)


def _attributes(message: Any) -> dict[str, Any]:
    return {attribute.key: _value(attribute.value) for attribute in message.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)


def _until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
