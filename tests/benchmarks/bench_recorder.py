"""What recording costs, beside what the OpenTelemetry SDK costs for the same attributes, in one run.

`make bench ARGS="--only recorder"`. Every figure is the median of repeats, ours and the reference by turns. On the hot
path the SDK's side has no processor and no exporter: its own cost alone.
"""

import statistics
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

import grpc
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from engine_hooks.contract import names
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import FeedbackReason, GpuTimeSource, GraphKind, Purpose
from engine_hooks.contract.span import resource_attributes, span_attributes
from engine_hooks.recorder.encoder import BATCH_SPANS_MAX
from engine_hooks.recorder.recorder import Recorder
from tests.benchmarks.report import Result, show, table_of

ENGINE: Final = EngineResource(
    "host1:1", host_name="host1", engine_name="own", engine_recipe="latency", gpu_ids=("0", "1")
)
STARTED_AT: Final = 1_764_000_000_000_000_000
PACKAGES: Final = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-grpc", "protobuf", "grpcio")
SPAN_NAME: Final = "execute_graph P128"
SERVICE: Final = "opentelemetry.proto.collector.trace.v1.TraceService"
ROUNDS_A_SECOND: Final = 35
NAP_S: Final = 0.001
WAITING: Final = 400
"""Records whose memory is measured as they wait: fewer than what makes either side begin to deliver."""
CANDIDATES: Final = ("P128", "P64", "decode")


class Discard(SpanExporter):
    """Takes everything and keeps nothing."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002 # the interface's
        return SpanExportResult.SUCCESS


def execution(sequence: int) -> GraphExecution:
    """A speculative round with everything recorded, as an engine makes it: times and estimates differ each round."""
    jitter_ns, accepted = sequence * 7_919 % 100_003, 60 + sequence % 17
    expected, estimate_ns = 80 + sequence // 4 % 512 / 64, 29_100_000 + jitter_ns // 16
    return GraphExecution(
        "P128",
        GraphKind.SPECULATIVE,
        sequence,
        28_500_000 + jitter_ns,
        29_000_000 + jitter_ns,
        STARTED_AT + 29_000_000 * sequence,
        31_000_000 + jitter_ns,
        Purpose.ORDINARY,
        1_200_000 + jitter_ns,
        GpuTimeSource.CUDA_EVENT,
        1,
        False,
        True,
        FeedbackReason.GRAMMAR,
        16,
        112,
        accepted,
        accepted + 16,
        128,
        "drained_share",
        estimate_ns,
        estimate_ns - 500_000,
        500_000,
        expected,
        CANDIDATES,
        (estimate_ns, 21_000_000, 7_200_000),
        (expected, 60.25, 16.0),
        "bench-7",
        "corrected",
        3,
        16,
    )


def attributes(sequence: int) -> dict[str, Any]:
    """The same as the SDK takes it."""
    jitter_ns, accepted = sequence * 7_919 % 100_003, 60 + sequence % 17
    expected, estimate_ns = 80 + sequence // 4 % 512 / 64, 29_100_000 + jitter_ns // 16
    return {
        names.GRAPH_NAME: "P128",
        names.GRAPH_KIND: "speculative",
        names.GRAPH_PURPOSE: "ordinary",
        names.GRAPH_SEQUENCE: sequence,
        names.GRAPH_GPU_TIME_NS: 28_500_000 + jitter_ns,
        names.GRAPH_WALL_TIME_NS: 29_000_000 + jitter_ns,
        names.GRAPH_GPU_START_OFFSET_NS: 1_200_000 + jitter_ns,
        names.GRAPH_GPU_TIME_SOURCE: "cuda_event",
        names.GRAPH_QUEUE_DEPTH: 1,
        names.GRAPH_COMPLETION_FEEDBACK: True,
        names.GRAPH_COMPLETION_FEEDBACK_REASON: "grammar",
        names.BATCH_LANES: 16,
        names.BATCH_TOKENS_DRAFTED: 112,
        names.BATCH_TOKENS_ACCEPTED: accepted,
        names.BATCH_TOKENS_EMITTED: accepted + 16,
        names.BATCH_VERIFICATION_BUDGET: 128,
        names.SCHEDULER_COST_MODEL: "drained_share",
        names.SCHEDULER_ESTIMATE_NS: estimate_ns,
        names.SCHEDULER_ESTIMATE_GPU_NS: estimate_ns - 500_000,
        names.SCHEDULER_ESTIMATE_HANDOFF_NS: 500_000,
        names.SCHEDULER_EXPECTED_TOKENS: expected,
        names.SCHEDULER_CANDIDATE_GRAPHS: CANDIDATES,
        names.SCHEDULER_CANDIDATE_ESTIMATES_NS: (estimate_ns, 21_000_000, 7_200_000),
        names.SCHEDULER_CANDIDATE_EXPECTED_TOKENS: (expected, 60.25, 16.0),
        names.CELL_ID: "bench-7",
        names.CELL_ARM: "corrected",
        names.CELL_POSITION: 3,
        names.CELL_CONCURRENCY: 16,
    }


def measure(n: int = 1_000, repeats: int = 15) -> list[Result]:
    """The hot path, with `n` executions in each of `repeats`."""
    if span_attributes(execution(7)) != attributes(7):
        raise AssertionError("the two sides must carry the same attributes")
    tracer = _provider().get_tracer("bench")
    recorder = Recorder(ENGINE, exporter=Discard(), capacity=n, interval_s=3_600)
    executions = [execution(sequence) for sequence in range(n)]
    ready = [attributes(sequence) for sequence in range(n)]
    record, start_span = recorder.record, tracer.start_span

    def record_ready() -> None:
        for one in executions:
            record(one)

    def span_ready() -> None:
        for one in ready:
            start_span(SPAN_NAME, attributes=one).end()

    def record_made() -> None:
        for sequence in range(n):
            record(execution(sequence))

    def span_made() -> None:
        for sequence in range(n):
            start_span(SPAN_NAME, attributes=attributes(sequence)).end()

    compared = partial(_compared, between=recorder.flush, n=n, repeats=repeats)
    record(executions[0])  # starts it
    try:
        return [
            compared("record(), against SDK start_span + end", record_ready, span_ready),
            compared("construct + record(), against dict + start_span + end", record_made, span_made),
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
    return Result.of(f"recorder: {name}", *map(statistics.median, times), "ns", n, *PACKAGES)


# ---- the background


class Spent(NamedTuple):
    """CPU time of this process for one execution, and memory."""

    background_ns: float
    """Of everything but the loop that records."""
    whole_ns: float
    waiting_bytes: float
    """What a record takes while it waits."""
    late_ns: float
    """By how much a thread that sleeps for a millisecond wakes late while records are delivered, the median."""


def measure_delivery(n: int, repeats: int) -> list[Result]:
    """Both sides deliver `n` executions to a collector that keeps nothing, in another process, over gRPC."""
    spent: tuple[list[Spent], list[Spent]] = ([], [])
    with sink() as endpoint:
        for _ in range(repeats):
            for open_side, figures in zip((_our_side, _sdk_side), spent, strict=True):
                with open_side(endpoint, n) as side:
                    figures.append(_spent(side, n))
    against = "against SDK + BatchSpanProcessor + OTLP exporter"
    names_and_units = (
        ("background CPU", "ns"),
        ("all CPU", "ns"),
        ("a waiting record", "bytes"),
        ("another thread wakes late meanwhile", "ns"),
    )
    medians = [[statistics.median(column) for column in zip(*side, strict=True)] for side in spent]
    return [
        Result.of(f"recorder: {name}, {against}", ours, reference, unit, n, *PACKAGES)
        for (name, unit), ours, reference in zip(names_and_units, *medians, strict=True)
    ]


class AtPace(NamedTuple):
    """CPU time for one execution, at an engine's pace."""

    background_ns: float
    """Of everything but the loop that records."""
    whole_ns: float
    """Less what the loop's waiting costs."""


def measure_at_pace(seconds: float) -> list[Result]:
    """Where requests are small: ours hold a second, the SDK's five."""
    rounds = int(seconds * ROUNDS_A_SECOND)
    with sink() as endpoint:
        waiting, ours, reference = (
            _at_pace(record, rounds) for record in (None, _our_side(endpoint, rounds), _sdk_side(endpoint, rounds))
        )
    against = f"at {ROUNDS_A_SECOND} rounds a second, against SDK + BatchSpanProcessor + OTLP exporter"
    return [
        Result.of(f"recorder: background CPU {against}", ours[0], reference[0], "ns", rounds, *PACKAGES),
        Result.of(
            f"recorder: all CPU {against}", ours[1] - waiting[1], reference[1] - waiting[1], "ns", rounds, *PACKAGES
        ),
    ]


def _at_pace(side: "AbstractContextManager[Side] | None", rounds: int) -> AtPace:
    """With `None`, what the waiting alone costs."""
    with side or nullcontext(Side(lambda _: None, lambda: None)) as (record, finish):
        began_ns, thread_began_ns = time.process_time_ns(), time.thread_time_ns()
        for sequence in range(1, rounds + 1):
            record(sequence)
            time.sleep(1 / ROUNDS_A_SECOND)
        loop_ns = time.thread_time_ns() - thread_began_ns
        finish()  # of either side all is in: what its last, fuller or emptier request costs
        whole_ns = time.process_time_ns() - began_ns
        return AtPace((whole_ns - loop_ns) / rounds, whole_ns / rounds)


class Side(NamedTuple):
    """One of the two, connected."""

    record: Callable[[int], object]
    finish: Callable[[], None]
    """Waits until everything was delivered."""


@contextmanager
def _our_side(endpoint: str, n: int) -> Iterator[Side]:
    recorder = Recorder(ENGINE, grpc_endpoint=endpoint, capacity=max(n, WAITING))

    def finish() -> None:
        if not recorder.flush(120) or any(recorder.losses.values()):
            raise AssertionError(f"not everything was delivered: {recorder.losses}")

    try:
        recorder.record(execution(0))
        finish()
        yield Side(lambda sequence: recorder.record(execution(sequence)), finish)
    finally:
        recorder.stop()


@contextmanager
def _sdk_side(endpoint: str, n: int) -> Iterator[Side]:
    provider = _provider()
    size = max(n, 2 * BATCH_SPANS_MAX)
    processor = BatchSpanProcessor(
        OTLPSpanExporter(endpoint=endpoint), max_queue_size=size, max_export_batch_size=BATCH_SPANS_MAX
    )
    provider.add_span_processor(processor)
    start_span = provider.get_tracer("bench").start_span

    def finish() -> None:
        if not provider.force_flush(120_000):
            raise AssertionError("the SDK did not deliver in time")

    try:
        start_span(SPAN_NAME, attributes=attributes(0)).end()
        finish()
        yield Side(lambda sequence: start_span(SPAN_NAME, attributes=attributes(sequence)).end(), finish)
    finally:
        provider.shutdown()


def _spent(side: Side, n: int) -> Spent:
    record, finish = side
    began_ns, thread_began_ns = time.process_time_ns(), time.thread_time_ns()
    for sequence in range(n):
        record(sequence)
    loop_ns = time.thread_time_ns() - thread_began_ns
    late_ns = _lateness_ns(finish)
    whole_ns = time.process_time_ns() - began_ns
    tracemalloc.start()
    for sequence in range(WAITING):
        record(sequence)
    waiting_bytes = tracemalloc.get_traced_memory()[0] / WAITING
    tracemalloc.stop()
    return Spent((whole_ns - loop_ns) / n, whole_ns / n, waiting_bytes, late_ns)


def _lateness_ns(deliver: Callable[[], None]) -> float:
    """The engine's thread, as it comes back from the device while records are delivered."""
    late_ns: list[int] = []
    is_over = threading.Event()

    def wake() -> None:
        while not is_over.is_set():
            began_ns = time.perf_counter_ns()
            time.sleep(NAP_S)
            late_ns.append(time.perf_counter_ns() - began_ns - int(NAP_S * 1e9))

    thread = threading.Thread(target=wake)
    thread.start()
    deliver()
    is_over.set()
    thread.join()
    return statistics.median(late_ns)


@contextmanager
def sink() -> Iterator[str]:
    """The endpoint of a gRPC server in a process of its own that takes requests and keeps nothing."""
    context = get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(sending,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{receiving.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(port: Connection) -> None:
    handler = grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")
    service = grpc.method_handlers_generic_handler(SERVICE, {"Export": handler})
    server = grpc.server(ThreadPoolExecutor(2), [service])
    port.send(server.add_insecure_port("127.0.0.1:0"))
    server.start()
    server.wait_for_termination()


def _provider() -> TracerProvider:
    return TracerProvider(resource=Resource(resource_attributes(ENGINE)), sampler=ALWAYS_ON, shutdown_on_exit=False)


def results(quick: bool) -> list[Result]:
    """As `tests.benchmarks.report` asks for."""
    if quick:
        return [*measure(500, 5), *measure_delivery(4_000, 2), *measure_at_pace(10)]
    return [*measure(), *measure_delivery(20_000, 5), *measure_at_pace(30)]


if __name__ == "__main__":
    show(table_of(results(quick=False), "What recording costs"))
