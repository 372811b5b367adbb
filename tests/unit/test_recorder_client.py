"""OTLP's rules for failures, on a connection that fails by order."""

import random
import threading
from collections import Counter
from collections.abc import Sequence

import pytest

from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.errors import RecorderError, SendError
from engine_hooks.recorder import variables
from engine_hooks.recorder.client import OtlpClient
from engine_hooks.recorder.connection import Answer, NotTakenError
from engine_hooks.recorder.encoder import RequestEncoder
from engine_hooks.recorder.losses import LossReason
from engine_hooks.recorder.outlets import OtlpOutlet
from engine_hooks.recorder.recorder import Recorder

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
    """Keeps how long it should have been waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_s: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits_s.append(timeout or 0.0)
        return self.is_set()


def client(connection: Scripted, timeout_s: float = 60.0, attempts_max: int = 8) -> tuple[OtlpClient, NoWaiting]:
    made = OtlpClient(connection, timeout_s, attempts_max=attempts_max, random_source=random.Random(1))
    waiting = made._closed = NoWaiting()
    return made, waiting


def test_a_failure_that_may_pass_is_tried_again_ever_later() -> None:
    connection = Scripted([AWAY] * 7 + [TAKEN])
    sending, waiting = client(connection)
    assert sending.send(b"request") == TAKEN
    assert connection.bodies == [b"request"] * 8
    for wait_s, backoff_s in zip(waiting.waits_s, (0.2, 0.4, 0.8, 1.6, 3.2, 5, 5), strict=True):
        assert 0.8 * backoff_s <= wait_s <= 1.2 * backoff_s
    assert max(connection.timeouts_s) <= 60


def test_attempts_are_bounded() -> None:
    connection = Scripted([AWAY] * 9)
    with pytest.raises(NotTakenError, match=r"^UNAVAILABLE: nobody there$"):
        client(connection, attempts_max=3)[0].send(b"request")
    assert len(connection.bodies) == 3


def test_a_failure_for_good_is_not_tried_again() -> None:
    connection = Scripted([WRONG, TAKEN])
    with pytest.raises(NotTakenError, match="INVALID_ARGUMENT"):
        client(connection)[0].send(b"request")
    assert len(connection.bodies) == 1


@pytest.mark.parametrize(("retry_after_s", "attempts"), [(7.5, 2), (0.0, 2), (61.0, 1)])
def test_the_collector_says_how_long_to_wait_and_the_timeout_how_long_at_most(
    retry_after_s: float, attempts: int
) -> None:
    busy = NotTakenError("RESOURCE_EXHAUSTED", "busy", retryable=True, retry_after_s=retry_after_s)
    connection = Scripted([busy, TAKEN])
    sending, waiting = client(connection)
    if attempts == 1:
        with pytest.raises(NotTakenError, match="busy"):
            sending.send(b"request")
    else:
        assert sending.send(b"request") == TAKEN
    assert waiting.waits_s == [retry_after_s] * (attempts - 1)


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
    return OtlpOutlet(RequestEncoder(ENGINE), client(connection)[0]).deliver(executions)


def test_losses_by_reason(caplog: pytest.LogCaptureFixture) -> None:
    executions = [FIRST._replace(graph_sequence=sequence) for sequence in range(600)]
    executions[3] = FIRST._replace(cell_arm="\udcff")
    losses = deliver(Scripted([Answer(2, "2 spans: span_too_long"), WRONG]), executions)
    assert losses == {LossReason.NOT_ENCODABLE: 1, LossReason.REFUSED: 2, LossReason.EXPORT_FAILED: 599 - 512}
    assert "refuses: 2 spans: span_too_long" in caplog.text
    assert "do not reach http://collector:4317: INVALID_ARGUMENT: no request" in caplog.text


def test_a_collector_cannot_refuse_more_than_it_was_sent() -> None:
    assert deliver(Scripted([Answer(10, "odd")]), [FIRST]) == {LossReason.REFUSED: 1}


def test_an_outage_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    outlet = OtlpOutlet(RequestEncoder(ENGINE), client(Scripted([WRONG, WRONG, TAKEN, TAKEN, WRONG]))[0])
    for _ in range(5):
        outlet.deliver([FIRST])
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "graph executions do not reach http://collector:4317: INVALID_ARGUMENT: no request",
        "graph executions reach http://collector:4317 again",
        "graph executions do not reach http://collector:4317: INVALID_ARGUMENT: no request",
    ]


def test_words_of_a_collector_are_logged_once_and_within_bounds(caplog: pytest.LogCaptureFixture) -> None:
    answers = [Answer(1, f"reason {number // 2}") for number in range(100)]
    outlet = OtlpOutlet(RequestEncoder(ENGINE), client(Scripted(answers))[0])
    for _ in range(100):
        outlet.deliver([FIRST])
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


def test_a_sender_is_told_of_an_endpoint_that_is_none() -> None:
    from engine_hooks.recorder.sending import sender

    with pytest.raises(SendError, match="TACHOGRAPH_OTLP_ENDPOINT"), sender("collector"):
        pass
