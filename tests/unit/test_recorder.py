"""The recorder with exporters in memory; the stock exporter is in tests/integration."""

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.contract.span import execution_of, resource_of, span_id_of, trace_id_of
from engine_hooks.errors import ContractError, RecorderError, SendError
from engine_hooks.recorder import outlets
from engine_hooks.recorder.clock import MonotonicAnchor
from engine_hooks.recorder.delivery import next_linger_s
from engine_hooks.recorder.losses import LossReason
from engine_hooks.recorder.recorder import Recorder
from engine_hooks.recorder.spans import SpanBuilder, readable_span
from engine_hooks.recorder.variables import protocol
from tests.fixtures.contract_strategies import engine_resources, graph_executions

ENGINE = EngineResource("host1:1", engine_name="own")
FIRST = GraphExecution("decode", GraphKind.PLAIN_DECODE, 0, 7, 8, 1_764_000_000_000_000_000, 9, cell_id="c1")


class MemoryExporter(SpanExporter):
    """Keeps spans, and what surrounded their export."""

    def __init__(self, results: Sequence[SpanExportResult | Exception] = ()) -> None:
        self.spans: list[ReadableSpan] = []
        self.batches: list[int] = []
        self.suppressed: list[object] = []
        self.shutdowns = 0
        self._results = list(results)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._results.pop(0) if self._results else SpanExportResult.SUCCESS
        if isinstance(result, Exception):
            raise result
        self.suppressed.append(get_value(_SUPPRESS_INSTRUMENTATION_KEY))
        self.batches.append(len(spans))
        self.spans += spans if result is SpanExportResult.SUCCESS else ()
        return result

    def shutdown(self) -> None:
        self.shutdowns += 1

    @property
    def sequences(self) -> list[object]:
        return [(span.attributes or {})["graph.sequence"] for span in self.spans]


@pytest.fixture
def recorder() -> Iterator[Callable[..., Recorder]]:
    made: list[Recorder] = []

    def make(exporter: SpanExporter, **options: float) -> Recorder:
        made.append(Recorder(ENGINE, exporter=exporter, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.stop(5)


def record(recorder: Recorder, count: int, first: int = 0) -> None:
    for sequence in range(first, first + count):
        recorder.record(FIRST._replace(graph_sequence=sequence))


def threads() -> int:
    return sum(thread.name == "tachograph-recorder" for thread in threading.enumerate())


def test_exports_in_order_and_in_batches(recorder: Callable[..., Recorder]) -> None:
    exporter = MemoryExporter()
    running = recorder(exporter, interval_s=60)
    record(running, 1_100)
    assert running.flush()
    assert exporter.sequences == list(range(1_100))
    assert exporter.batches == [512, 512, 76]
    assert running.exported == 1_100


def test_export_is_hidden_from_instrumentation(recorder: Callable[..., Recorder]) -> None:
    exporter = MemoryExporter()
    running = recorder(exporter)
    record(running, 1)
    assert running.flush()
    assert exporter.suppressed == [True]
    assert get_value(_SUPPRESS_INSTRUMENTATION_KEY) is None


def test_nothing_runs_before_the_first_record(recorder: Callable[..., Recorder]) -> None:
    running = recorder(MemoryExporter())
    assert threads() == 0
    assert running.flush()
    assert running.stop()


def test_double_start_is_harmless(recorder: Callable[..., Recorder]) -> None:
    exporter = MemoryExporter()
    running = recorder(exporter)
    running.start()
    running.start()
    record(running, 3)
    running.start()
    assert threads() == 1
    assert running.stop()
    assert exporter.sequences == [0, 1, 2]


def test_stop_delivers_then_counts(recorder: Callable[..., Recorder]) -> None:
    exporter = MemoryExporter()
    running = recorder(exporter, interval_s=60)
    record(running, 700)
    assert running.stop()
    assert running.stop()
    running.start()
    record(running, 2)
    assert threads() == 0
    assert exporter.sequences == list(range(700))
    assert exporter.shutdowns == 1
    assert running.losses[LossReason.STOPPED] == 2


@pytest.mark.parametrize(
    ("result", "said"),
    [(SpanExportResult.SUCCESS, []), (SpanExportResult.FAILURE, ["graph executions lost: 3 because sending failed"])],
)
def test_losses_are_told_at_the_end_where_there_are_any(
    recorder: Callable[..., Recorder], result: SpanExportResult, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    running = recorder(MemoryExporter([result]), interval_s=60)
    record(running, 3)
    assert running.stop()
    assert running.stop()
    assert [one for one in caplog.messages if "lost" in one] == said


def test_context_delivers_at_its_end() -> None:
    exporter = MemoryExporter()
    with Recorder(ENGINE, exporter=exporter, interval_s=60) as running:
        record(running, 5)
    assert exporter.sequences == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("capacity", [1, 10, 512, 513, 600])
def test_in_a_full_buffer_the_oldest_makes_room(recorder: Callable[..., Recorder], capacity: int) -> None:
    exporter = MemoryExporter()
    running = recorder(exporter, capacity=capacity, interval_s=60)
    record(running, capacity + 15)
    assert running.losses[LossReason.BUFFER_FULL] == 15
    assert running.flush()
    record(running, 1, first=capacity + 15)
    assert running.flush()
    assert exporter.sequences == list(range(15, capacity + 16))


@pytest.mark.parametrize("result", [SpanExportResult.FAILURE, ValueError("broken exporter")])
def test_failures_are_counted_and_outlived(recorder: Callable[..., Recorder], result: object) -> None:
    exporter = MemoryExporter([result])  # type: ignore[list-item]
    running = recorder(exporter, interval_s=60)
    record(running, 512 + 5)
    assert running.flush()
    assert running.losses[LossReason.EXPORT_FAILED] == 512
    assert exporter.sequences == list(range(512, 517))


@pytest.mark.parametrize(
    "broken",
    [
        {"started_at": -1},
        {"started_at": 2**63},
        {"duration_ns": -1},
        {"started_at": "now"},
        {"duration_ns": None},
        {"started_at": 1.5},
        {"graph_name": "P\udcff128"},
        {"graph_sequence": "x"},
    ],
)
def test_what_cannot_be_encoded_takes_nothing_down_with_it(
    recorder: Callable[..., Recorder], broken: dict[str, object]
) -> None:
    exporter = MemoryExporter()
    running = recorder(exporter, interval_s=60)
    record(running, 1)
    running.record(FIRST._replace(**broken))  # type: ignore[arg-type]
    record(running, 1, first=2)
    assert running.flush()
    assert exporter.sequences == [0, 2]
    assert len(encode_spans(exporter.spans).resource_spans[0].scope_spans[0].spans) == 2
    assert running.losses[LossReason.NOT_ENCODABLE] == 1
    with pytest.raises(ContractError):
        readable_span(FIRST._replace(**broken), ENGINE)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"capacity": 0}, {"interval_s": 0}, {"exit_timeout_s": -1}])
def test_impossible_settings_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(RecorderError):
        Recorder(ENGINE, exporter=MemoryExporter(), **options)  # type: ignore[arg-type]


def test_the_standard_variables_choose_the_protocol() -> None:
    general, traces = "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
    assert protocol({}) == "grpc"
    assert protocol({general: "http/protobuf"}) == "http/protobuf"
    assert protocol({general: "http/protobuf", traces: "grpc"}) == "grpc"
    with pytest.raises(SendError, match=general):
        protocol({general: "carrier-pigeon"})


@pytest.mark.parametrize(
    ("variable", "value"), [("OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon"), ("OTEL_EXPORTER_OTLP_COMPRESSION", "rar")]
)
def test_wrong_variables_are_one_clear_line(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(RecorderError, match=rf"^[^\n]*{variable.rsplit('_', 1)[0]}[^\n]*$"):
        Recorder(ENGINE)


def test_the_engine_may_run_between_any_two_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    ways_given: list[None] = []
    monkeypatch.setattr(outlets, "give_way", lambda: ways_given.append(None))
    spans = [readable_span(FIRST._replace(graph_sequence=sequence), ENGINE) for sequence in range(5)]
    assert encode_spans(outlets.CourteousBatch(spans)) == encode_spans(spans)
    assert len(ways_given) == 5


# ---- spans


@settings(max_examples=30, deadline=None)
@given(graph_executions(), engine_resources())
def test_a_span_carries_the_whole_record(execution: GraphExecution, resource: EngineResource) -> None:
    span = readable_span(execution, resource)
    assert span.start_time is not None
    assert span.end_time is not None
    assert execution_of(span.name, span.start_time, span.end_time, dict(span.attributes or {})) == execution
    assert resource_of(dict(span.resource.attributes)) == resource


def test_a_span_has_the_contracts_form() -> None:
    span = readable_span(FIRST, ENGINE)
    context = span.get_span_context()
    assert context is not None
    assert span.name == "execute_graph decode"
    assert span.kind is SpanKind.INTERNAL
    assert context.trace_id.to_bytes(16, "big") == trace_id_of("host1:1", "c1")
    assert context.span_id.to_bytes(8, "big") == span_id_of("host1:1", 0)
    assert context.is_valid
    assert span.parent is None


def test_resources_of_two_builders_are_one() -> None:
    ours, same = (SpanBuilder(ENGINE).build(FIRST).resource for _ in range(2))
    other = SpanBuilder(EngineResource("host2:1")).build(FIRST).resource
    assert len({ours, same, other}) == 2


# ---- clock


def test_an_anchor_keeps_distances_and_takes_the_closest_reading() -> None:
    monotonic = iter([100, 190, 200, 210, 300, 340])
    unix = iter([5_000, 5_105, 5_220])
    anchor = MonotonicAnchor.take(lambda: next(monotonic), lambda: next(unix), attempts=3)
    assert anchor == MonotonicAnchor(monotonic_ns=205, unix_ns=5_105, uncertainty_ns=10)
    assert anchor.unix_of(205) == 5_105
    assert anchor.unix_of(1_205) - anchor.unix_of(5) == 1_200


@pytest.mark.parametrize("rate", [1, 35, 500, 3_000, 60_000, 250_000])
def test_turns_are_long_at_an_engine_s_pace_and_short_where_records_pour_in(rate: int) -> None:
    """A turn takes what came while it waited; the buffer of a recorder as it comes holds all of it."""
    linger_s, turns_s = 1 / 8, []
    for _ in range(20):
        taken = int(rate * linger_s)
        assert taken <= 32_768
        linger_s = next_linger_s(linger_s, taken, 1.0)
        turns_s.append(linger_s)
    assert all(1 / 8 <= turn_s <= 1.0 for turn_s in turns_s)
    right_s = min(max(512 / rate, 1 / 8), 1.0)  # a request's fill, or the bound that is nearer
    assert turns_s[-1] == pytest.approx(right_s, rel=0.02)
