"""OTLP's rules for failures, on a connection that fails by order."""

import itertools
import math
import random
import threading
from collections import Counter
from collections.abc import Sequence

import pytest

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.errors import RecorderError, SendError
from engine_hooks.recorder import outlets, variables
from engine_hooks.recorder.client import OtlpClient
from engine_hooks.recorder.connection import Answer, Connection, NotTakenError
from engine_hooks.recorder.encoder import RequestEncoder
from engine_hooks.recorder.losses import LossReason
from engine_hooks.recorder.outlets import OtlpOutlet
from engine_hooks.recorder.recorder import Recorder
from engine_hooks.recorder.sending import endpoint_url, sender

ENGINE = EngineResource("host1:1")
FIRST = GraphExecution("decode", GraphKind.PLAIN_DECODE, 0, 7, 8, 1_764_000_000_000_000_000, 9)
TAKEN = Answer(0, "")
AWAY = NotTakenError("UNAVAILABLE", "nobody\nthere", retryable=True)
WRONG = NotTakenError("INVALID_ARGUMENT", "no request", retryable=False)


class Scripted:
    """Answers in the order given, and keeps what it was asked."""

    endpoint = "http://collector:4317"

    def __init__(self, answers: Sequence[Answer | NotTakenError]) -> None:
        self.answers = list(answers)
        self.bodies: list[bytes] = []
        self.timeouts_s: list[float] = []
        self.closed = 0

    def post(self, body: bytes, timeout_s: float) -> Answer:
        self.bodies.append(body)
        self.timeouts_s.append(timeout_s)
        answer = self.answers.pop(0)
        if isinstance(answer, NotTakenError):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


class NoWaiting(threading.Event):
    """Keeps how long it should have been waited for; its clock goes on by that."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_s: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits_s.append(timeout or 0.0)
        return self.is_set()

    def clock_s(self) -> float:
        return sum(self.waits_s)


def client(
    connection: Connection, patience_s: float = math.inf, attempts_max: float = math.inf
) -> tuple[OtlpClient, NoWaiting]:
    waiting = NoWaiting()
    made = OtlpClient(
        connection,
        10.0,
        patience_s=patience_s,
        attempts_max=attempts_max,
        random_source=random.Random(1),
        clock=waiting.clock_s,
    )
    made._woken = waiting
    return made, waiting


def test_a_failure_that_may_pass_is_tried_again_ever_later_and_without_end() -> None:
    connection = Scripted([AWAY] * 2_000 + [TAKEN])
    sending, waiting = client(connection)
    assert sending.send(b"request") == TAKEN
    assert connection.bodies == [b"request"] * 2_001
    for wait_s, backoff_s in zip(waiting.waits_s, (0.2, 0.4, 0.8, 1.6, 3.2, 6.4, *[10] * 1_994), strict=True):
        assert 0.8 * backoff_s <= wait_s <= 1.2 * backoff_s
    assert len(set(waiting.waits_s)) == 2_000
    assert set(connection.timeouts_s) == {10.0}


def test_patience_ends() -> None:
    connection = Scripted([AWAY] * 9)
    sending, waiting = client(connection, patience_s=5.0)
    with pytest.raises(NotTakenError):
        sending.send(b"request")
    assert 2.4 < waiting.clock_s() < 5
    assert len(connection.bodies) == 5
    assert connection.timeouts_s == sorted(connection.timeouts_s, reverse=True)
    assert connection.timeouts_s[0] == 5.0


def test_who_sends_may_end_it() -> None:
    connection = Scripted([AWAY] * 9)
    told: list[NotTakenError] = []
    with pytest.raises(NotTakenError):
        client(connection)[0].send(b"request", lambda error: told.append(error) or len(told) < 3)  # type: ignore[func-returns-value]
    assert told == [AWAY] * 3


def test_a_hurry_ends_the_wait_and_begins_anew() -> None:
    connection = Scripted([AWAY] * 7 + [TAKEN])
    sending, waiting = client(connection)
    failures = itertools.count(1)

    def goes_on(_: NotTakenError) -> bool:
        if next(failures) == 5:
            sending.hurry()
        return True

    assert sending.send(b"request", goes_on) == TAKEN
    for wait_s, backoff_s in zip(waiting.waits_s, (0.2, 0.4, 0.8, 1.6, 3.2, 0.2, 0.4), strict=True):
        assert 0.8 * backoff_s <= wait_s <= 1.2 * backoff_s
    assert len(connection.bodies) == 8


def test_attempts_are_bounded() -> None:
    connection = Scripted([AWAY] * 9)
    with pytest.raises(NotTakenError, match=r"^UNAVAILABLE: nobody there$"):
        client(connection, attempts_max=3)[0].send(b"request")
    assert len(connection.bodies) == 3


@pytest.mark.parametrize("certain", [(True, True), (True, False), (False, True), (False, False)])
def test_a_request_is_surely_not_taken_only_if_no_attempt_may_have_come_through(certain: tuple[bool, ...]) -> None:
    failures = [NotTakenError("UNAVAILABLE", "away", retryable=True, is_certain=one) for one in certain]
    sending, _ = client(Scripted(failures), attempts_max=2)
    with pytest.raises(NotTakenError) as told:
        sending.send(b"body")
    assert told.value.is_certain == all(certain)


def test_a_failure_for_good_is_not_tried_again() -> None:
    connection = Scripted([WRONG, TAKEN])
    with pytest.raises(NotTakenError, match="INVALID_ARGUMENT"):
        client(connection)[0].send(b"request")
    assert len(connection.bodies) == 1


@pytest.mark.parametrize(("retry_after_s", "waits_s"), [(7.5, 7.5), (0.0, 0.2), (61.0, 61.0), (3e9, 300.0)])
def test_the_collector_says_how_long_to_wait_within_reason(retry_after_s: float, waits_s: float) -> None:
    busy = NotTakenError("RESOURCE_EXHAUSTED", "busy", retryable=True, retry_after_s=retry_after_s)
    sending, waiting = client(Scripted([busy, TAKEN]))
    assert sending.send(b"request") == TAKEN
    assert waiting.waits_s == [pytest.approx(waits_s, rel=0 if waits_s > 1 else 0.2)]


def test_patience_does_not_wait_for_what_comes_after_its_end() -> None:
    busy = NotTakenError("RESOURCE_EXHAUSTED", "busy", retryable=True, retry_after_s=61.0)
    sending, waiting = client(Scripted([busy, TAKEN]), patience_s=60.0)
    with pytest.raises(NotTakenError, match="busy"):
        sending.send(b"request")
    assert not waiting.waits_s


def test_closing_ends_the_retries() -> None:
    connection = Scripted([AWAY] * 9)
    sending, _ = client(connection)
    sending.close()
    with pytest.raises(NotTakenError):
        sending.send(b"request")
    assert len(connection.bodies) == 1
    sending.close()
    assert connection.closed == 2


# ---- what the outlet makes of it


def deliver(connection: Scripted, executions: Sequence[GraphExecution]) -> Counter[LossReason]:
    return OtlpOutlet(RequestEncoder(ENGINE), client(connection)[0]).deliver(executions, lambda _: True)


def test_losses_by_reason(caplog: pytest.LogCaptureFixture) -> None:
    executions = [FIRST._replace(graph_sequence=sequence) for sequence in range(600)]
    executions[3] = FIRST._replace(cell_arm="\udcff")
    losses = deliver(Scripted([Answer(2, "2 spans: span_too_long"), WRONG]), executions)
    assert losses == {LossReason.NOT_ENCODABLE: 1, LossReason.REFUSED: 2, LossReason.EXPORT_FAILED: 599 - 512}
    assert "refuses: 2 spans: span_too_long" in caplog.text


def test_the_engine_may_run_before_every_eighth_span(monkeypatch: pytest.MonkeyPatch) -> None:
    ways_given: list[None] = []
    monkeypatch.setattr(outlets, "give_way", lambda: ways_given.append(None))
    deliver(Scripted([TAKEN]), [FIRST._replace(graph_sequence=sequence) for sequence in range(20)])
    assert len(ways_given) == 3


def test_a_collector_cannot_refuse_more_than_it_was_sent() -> None:
    assert deliver(Scripted([Answer(10, "odd")]), [FIRST]) == {LossReason.REFUSED: 1}


@pytest.mark.parametrize(
    ("closed", "error", "reason"),
    [
        (False, AWAY, LossReason.BUFFER_FULL),
        (True, AWAY, LossReason.STOPPED),
        (False, WRONG, LossReason.EXPORT_FAILED),
    ],
)
def test_why_a_request_was_given_up(closed: bool, error: NotTakenError, reason: LossReason) -> None:
    sending, _ = client(Scripted([error]))
    outlet = OtlpOutlet(RequestEncoder(ENGINE), sending)
    if closed:
        outlet.close()
    assert outlet.deliver([FIRST], lambda _: False) == {reason: 1}


def test_words_of_a_collector_are_logged_once_and_within_bounds(caplog: pytest.LogCaptureFixture) -> None:
    answers = [Answer(1, f"reason {number // 2}") for number in range(100)]
    outlet = OtlpOutlet(RequestEncoder(ENGINE), client(Scripted(answers))[0])
    for _ in range(100):
        outlet.deliver([FIRST], lambda _: True)
    assert [record.getMessage().rsplit(" ", 1)[1] for record in caplog.records] == [str(n) for n in range(32)]


def test_an_answer_that_is_none_counts_as_taken() -> None:
    assert Answer.of(b"") == Answer.of(b"\xff\xff") == TAKEN


# ---- the standard variables


@pytest.mark.parametrize(
    ("name", "value"),
    [("TIMEOUT", "soon"), ("TIMEOUT", "0"), ("TIMEOUT", "inf"), ("CERTIFICATE", "/nowhere.pem"), ("INSECURE", "maybe")],
)
def test_variables_that_cannot_be_used_are_one_line(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
    with pytest.raises(RecorderError, match=rf"^OTEL_EXPORTER_OTLP_{name}[^\n]*{value}[^\n]*$"):
        Recorder(ENGINE)


def test_http_needs_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")
    with pytest.raises(RecorderError, match=r"'collector:4318/v1/traces' is no OTLP endpoint"):
        Recorder(ENGINE)


def test_endpoints_by_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert variables.grpc_endpoint() == "http://localhost:4317"
    assert variables.http_endpoint() == "http://localhost:4318/v1/traces"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://agent:1/base/")
    assert variables.http_endpoint() == "http://agent:1/base/v1/traces"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://agent:2/as/it/is")
    assert variables.http_endpoint() == variables.grpc_endpoint() == "http://agent:2/as/it/is"


def test_a_recorder_sends_to_one_place() -> None:
    with pytest.raises(RecorderError, match="not to both"):
        Recorder(ENGINE, exporter=object(), grpc_endpoint="http://localhost:4317")  # type: ignore[arg-type]


@pytest.mark.parametrize("endpoint", ["collector", "collector:4317", "ftp://collector:4317", "http://", ""])
def test_a_sender_is_told_of_an_endpoint_that_is_none(endpoint: str) -> None:
    with (
        pytest.raises(SendError, match=f"^'{endpoint}' is no OTLP endpoint: .*TACHOGRAPH_OTLP_ENDPOINT"),
        sender(endpoint),
    ):
        pass


@pytest.mark.parametrize("endpoint", ["http://collector:4317", "https://collector:4317"])
def test_an_endpoint_is_a_url_of_either_kind(endpoint: str) -> None:
    url = endpoint_url(endpoint)
    assert (url.hostname, url.port) == ("collector", 4317)
