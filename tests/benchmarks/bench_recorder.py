"""What recording costs, beside what the OpenTelemetry SDK costs for the same attributes, in one run.

`make bench ARGS="--only recorder"`. Every figure is the median of repeats, ours and the
reference by turns. The SDK's side has no processor and no exporter: its own cost alone.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from engine_hooks.contract import names
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import FeedbackReason, GpuTimeSource, GraphKind, Purpose
from engine_hooks.contract.span import resource_attributes, span_attributes
from engine_hooks.recorder.recorder import Recorder
from engine_hooks.recorder.spans import SpanBuilder
from tests.benchmarks.report import Result

ENGINE = EngineResource("host1:1", host_name="host1", engine_name="own", engine_recipe="latency", gpu_ids=("0", "1"))
STARTED_AT = 1_764_000_000_000_000_000
PACKAGES: Final = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-common", "protobuf")
CANDIDATES = ("P128", "P64", "decode")


class Discard(SpanExporter):
    """Takes everything and keeps nothing."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002 # the interface's
        return SpanExportResult.SUCCESS


def execution(sequence: int) -> GraphExecution:
    """A speculative round with everything recorded, as an engine makes it."""
    return GraphExecution(
        "P128",
        GraphKind.SPECULATIVE,
        sequence,
        28_500_000,
        29_000_000,
        STARTED_AT + sequence,
        31_000_000,
        Purpose.ORDINARY,
        1_200_000,
        GpuTimeSource.CUDA_EVENT,
        1,
        False,
        True,
        FeedbackReason.GRAMMAR,
        16,
        112,
        70,
        86,
        128,
        "drained_share",
        29_100_000,
        28_600_000,
        500_000,
        85.5,
        CANDIDATES,
        (29_100_000, 21_000_000, 7_200_000),
        (85.5, 60.25, 16.0),
        "bench-7",
        "corrected",
        3,
        16,
    )


def attributes(sequence: int) -> dict[str, Any]:
    """The same as the SDK takes it."""
    return {
        names.GRAPH_NAME: "P128",
        names.GRAPH_KIND: "speculative",
        names.GRAPH_PURPOSE: "ordinary",
        names.GRAPH_SEQUENCE: sequence,
        names.GRAPH_GPU_TIME_NS: 28_500_000,
        names.GRAPH_WALL_TIME_NS: 29_000_000,
        names.GRAPH_GPU_START_OFFSET_NS: 1_200_000,
        names.GRAPH_GPU_TIME_SOURCE: "cuda_event",
        names.GRAPH_QUEUE_DEPTH: 1,
        names.GRAPH_COMPLETION_FEEDBACK: True,
        names.GRAPH_COMPLETION_FEEDBACK_REASON: "grammar",
        names.BATCH_LANES: 16,
        names.BATCH_TOKENS_DRAFTED: 112,
        names.BATCH_TOKENS_ACCEPTED: 70,
        names.BATCH_TOKENS_EMITTED: 86,
        names.BATCH_VERIFICATION_BUDGET: 128,
        names.SCHEDULER_COST_MODEL: "drained_share",
        names.SCHEDULER_ESTIMATE_NS: 29_100_000,
        names.SCHEDULER_ESTIMATE_GPU_NS: 28_600_000,
        names.SCHEDULER_ESTIMATE_HANDOFF_NS: 500_000,
        names.SCHEDULER_EXPECTED_TOKENS: 85.5,
        names.SCHEDULER_CANDIDATE_GRAPHS: CANDIDATES,
        names.SCHEDULER_CANDIDATE_ESTIMATES_NS: (29_100_000, 21_000_000, 7_200_000),
        names.SCHEDULER_CANDIDATE_EXPECTED_TOKENS: (85.5, 60.25, 16.0),
        names.CELL_ID: "bench-7",
        names.CELL_ARM: "corrected",
        names.CELL_POSITION: 3,
        names.CELL_CONCURRENCY: 16,
    }


def measure(n: int = 1_000, repeats: int = 15) -> list[Result]:
    """Every comparison, with `n` executions in each of `repeats`."""
    if span_attributes(execution(7)) != attributes(7):
        raise AssertionError("the two sides must carry the same attributes")
    resource = Resource(resource_attributes(ENGINE))
    tracer = TracerProvider(resource=resource, sampler=ALWAYS_ON, shutdown_on_exit=False).get_tracer("bench")
    recorder = Recorder(ENGINE, exporter=Discard(), capacity=n, interval_s=3_600)
    builder = SpanBuilder(ENGINE)
    executions = [execution(sequence) for sequence in range(n)]
    ready = [attributes(sequence) for sequence in range(n)]
    record, start_span = recorder.record, tracer.start_span

    def record_ready() -> None:
        for one in executions:
            record(one)

    def span_ready() -> None:
        for one in ready:
            start_span("execute_graph P128", attributes=one).end()

    def record_made() -> None:
        for sequence in range(n):
            record(execution(sequence))

    def span_made() -> None:
        for sequence in range(n):
            start_span("execute_graph P128", attributes=attributes(sequence)).end()

    def deliver() -> None:
        encode_spans([builder.build(one) for one in executions]).SerializeToString()

    def span_and_encode() -> None:
        spans = [start_span("execute_graph P128", attributes=one) for one in ready]
        for span in spans:
            span.end()
        encode_spans(spans).SerializeToString()  # type: ignore[arg-type] # they are ReadableSpans

    compared = partial(_compared, between=recorder.flush, n=n, repeats=repeats)
    record(executions[0])  # starts it
    try:
        return [
            compared("record(), against start_span + end", record_ready, span_ready),
            compared("construct + record(), against dict + start_span + end", record_made, span_made),
            compared("background: build + encode, against SDK + encode", deliver, span_and_encode),
        ]
    finally:
        recorder.stop()


def _compared(
    name: str,
    ours: Callable[[], None],
    reference: Callable[[], None],
    *,
    between: Callable[[], object],
    n: int,
    repeats: int,
) -> Result:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for spent, side in zip(times, (ours, reference), strict=True):
            between()
            started = time.perf_counter_ns()
            side()
            spent.append((time.perf_counter_ns() - started) / n)
    ours_ns, reference_ns = map(statistics.median, times)
    return Result.of(f"recorder: {name}", ours_ns, reference_ns, "ns", n, *PACKAGES)


def results(quick: bool) -> list[Result]:
    """As `tests.benchmarks.report` asks for."""
    return measure(n=500, repeats=5) if quick else measure()
