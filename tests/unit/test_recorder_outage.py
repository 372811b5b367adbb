"""A collector that is away, on a clock that is wound by hand: what waits, what goes, and what is told."""

import random
import threading
from collections import deque
from collections.abc import Callable

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.recorder.client import OtlpClient
from engine_hooks.recorder.connection import Answer, NotTakenError
from engine_hooks.recorder.delivery import Delivery
from engine_hooks.recorder.encoder import RequestEncoder
from engine_hooks.recorder.losses import LossReason
from engine_hooks.recorder.outage import Outage
from engine_hooks.recorder.outlets import OtlpOutlet

FIRST = GraphExecution("decode", GraphKind.PLAIN_DECODE, 0, 7, 8, 1_764_000_000_000_000_000, 9)
RATE_HZ = 40
AWAY = NotTakenError("UNAVAILABLE", "connection refused", retryable=True)


class Engine:
    """One engine at 40 executions a second and one collector, in virtual time. Waiting for an attempt is what lets
    time pass, so that the whole runs in the delivery's own thread."""

    where = "http://collector:4317"

    def __init__(self, capacity: int, away_s: float, fails: Callable[[bytes], bool] = lambda _: False) -> None:
        self.now_s = 0.0
        self.recorded = 0
        self.received: list[int] = []
        self.attempts_s: list[float] = []
        self.endpoint = self.where
        self._away_s = away_s
        self._fails = fails
        self._buffer: deque[GraphExecution] = deque()
        client = OtlpClient(self, 10.0, random_source=random.Random(1), clock=lambda: self.now_s)
        client._woken = Waiting(self.lets_pass)
        outlet = OtlpOutlet(RequestEncoder(EngineResource("host1:1")), client)
        self.delivery = Delivery(self._buffer, lambda: outlet, 1.0, capacity, clock=lambda: self.now_s)

    def lets_pass(self, seconds: float) -> None:
        self.now_s += seconds
        while self.recorded < self.now_s * RATE_HZ:
            self.delivery.take_in(FIRST._replace(graph_sequence=self.recorded))
            self.recorded += 1

    def post(self, body: bytes, timeout_s: float) -> Answer:  # noqa: ARG002
        self.attempts_s.append(self.now_s)
        if self.now_s < self._away_s or self._fails(body):
            raise AWAY
        (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
        for span in resource.scope_spans[0].spans:
            self.received += [one.value.int_value for one in span.attributes if one.key == "graph.sequence"]
        return Answer(0, "")

    def close(self) -> None:
        pass

    def runs(self) -> None:
        """One second of records, then all that follows until nothing waits."""
        self.lets_pass(1.0)
        self.delivery.start()
        assert self.delivery.flush(30)
        while self._buffer:  # what came while a batch was under way
            assert self.delivery.flush(30)
        assert self.delivery.stop(30)


class Waiting(threading.Event):
    """An event that is waited for in virtual time."""

    def __init__(self, lets_pass: Callable[[float], None]) -> None:
        super().__init__()
        self._lets_pass = lets_pass

    def wait(self, timeout: float | None = None) -> bool:
        self._lets_pass(timeout or 0.0)
        return False


def test_two_minutes_away_cost_nothing(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(capacity=32_768, away_s=127)
    engine.runs()
    assert engine.received == list(range(engine.recorded))
    assert engine.delivery.exported == engine.recorded > 127 * RATE_HZ
    assert not any(engine.delivery.losses.values())
    waits_s = [after - before for before, after in zip(engine.attempts_s, engine.attempts_s[1:], strict=False)]
    assert max(waits_s) <= 12
    assert engine.now_s < 127 + 12
    away_s = engine.now_s - 1
    assert [record.getMessage() for record in caplog.records] == [
        "graph executions do not reach http://collector:4317: UNAVAILABLE: connection refused",
        f"graph executions reach http://collector:4317 again, after {away_s:.1f} s: "
        f"{engine.recorded} waited and are sent, 0 were lost",
    ]


def test_an_outage_beyond_the_buffer_costs_the_oldest(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(capacity=2_000, away_s=300)
    engine.runs()
    lost = engine.delivery.losses[LossReason.BUFFER_FULL]
    assert 2_000 - 512 <= len(engine.received) <= 2_000
    newest = engine.received[512:]  # before them the batch that was under way, a few seconds older
    assert newest == list(range(newest[0], engine.recorded))
    assert engine.received[:512] == list(range(engine.received[0], engine.received[0] + 512))
    assert newest[0] - engine.received[511] <= 12 * RATE_HZ
    assert engine.delivery.exported + lost == engine.recorded
    assert f"{len(engine.received)} waited and are sent, {lost} were lost" in caplog.text


@pytest.mark.parametrize("capacity", [1, 100, 512, 700])
def test_records_under_way_count_toward_the_bound(capacity: int) -> None:
    engine = Engine(capacity=capacity, away_s=60)
    engine.runs()
    assert len(engine.received) <= capacity
    assert engine.received == sorted(set(engine.received))
    assert engine.delivery.exported + engine.delivery.losses[LossReason.BUFFER_FULL] == engine.recorded


def test_a_batch_that_is_never_taken_does_not_stop_the_rest_for_good() -> None:
    engine = Engine(capacity=2_000, away_s=0, fails=lambda body: FIRST_SPAN in body)
    engine.runs()
    assert engine.received
    assert engine.received == list(range(engine.recorded - len(engine.received), engine.recorded))


(FIRST_SPAN,) = [RequestEncoder(EngineResource("host1:1")).span(FIRST)]


def test_the_end_of_an_outage_is_told_once_its_backlog_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    now_s = iter([10.0, 30.0, 50.0])
    outage = Outage(lambda: next(now_s))
    outage.reached("there", 5, 0, 0)
    outage.fails("there", AWAY, lost=3)
    outage.reached("there", sent=100, waiting=200, lost=3)
    outage.fails("there", AWAY, lost=3)
    assert len(caplog.records) == 1
    outage.reached("there", sent=100, waiting=100, lost=13)
    assert len(caplog.records) == 1
    outage.reached("there", sent=120, waiting=0, lost=13)
    assert caplog.records[-1].getMessage() == (
        "graph executions reach there again, after 40.0 s: 200 waited and are sent, 10 were lost"
    )
    outage.reached("there", sent=5, waiting=0, lost=13)
    assert len(caplog.records) == 2
