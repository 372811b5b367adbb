"""The collector's own doors for OTLP, with the examiner behind them in place of the store."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import NamedTuple

from collector.acceptance import MalformedRequestError, Outcome
from collector.access.access import Access
from collector.conformance.examiner import Examiner
from collector.http_server import HttpServer
from collector.ports import PortTakenError, bind, host_and_port, port_of
from collector.receivers.guard import GuardedHttp
from collector.receivers.otlp_grpc import GrpcReceiver
from collector.receivers.otlp_http import HttpReceiver
from collector.telemetry.metrics import CollectorMetrics

LOOPBACK = "127.0.0.1"
_ANSWERED = ("OK", "200")


class Doors(NamedTuple):
    """Where an engine may send to."""

    grpc_url: str
    http_url: str


class _Examining:
    """Takes requests as the collector's writer does, and answers at once."""

    def __init__(self, examiner: Examiner, on_request: Callable[[], object]) -> None:
        self._examiner = examiner
        self._on_request = on_request
        self.malformed: Counter[str] = Counter()
        """Requests that the examiner counted itself, by door."""

    def accept(self, request: bytes, door: str) -> "Future[Outcome]":
        answer: Future[Outcome] = Future()
        try:
            answer.set_result(self._examiner.take(request))
        except MalformedRequestError as error:
            self.malformed[door] += 1
            answer.set_exception(error)
        self._on_request()
        return answer


@contextmanager
def listening(examiner: Examiner, grpc_port: int, http_port: int, on_request: Callable[[], object]) -> Iterator[Doors]:
    """Doors on loopback; port 0 is any free one. `on_request` is called after each request, from any thread.

    What a door turned away is told to the examiner at the end.

    Raises:
        PortTakenError: a port cannot be had.
    """
    metrics, acceptor = CollectorMetrics(), _Examining(examiner, on_request)
    http_socket = bind(LOOPBACK, http_port, "--http-port")
    http = HttpServer(
        GuardedHttp(HttpReceiver(acceptor, metrics).app, Access(), lambda _door, _reason: None),
        http_socket,
        "otlp-http",
    )
    grpc = GrpcReceiver(acceptor, metrics)
    try:
        bind(LOOPBACK, grpc_port, "--grpc-port").close()
        grpc_bound = _start(grpc, grpc_port)
    except PortTakenError:
        http_socket.close()
        raise
    try:
        http.start()
        yield Doors(
            f"http://{host_and_port(LOOPBACK, grpc_bound)}", f"http://{host_and_port(LOOPBACK, port_of(http_socket))}"
        )
    finally:
        http.stop()
        grpc.stop()
        _tell_turned_away(examiner, metrics, acceptor.malformed)


def _start(grpc: GrpcReceiver, port: int) -> int:
    try:
        return grpc.start(LOOPBACK, port)
    except RuntimeError as error:  # Somebody took it since it was tried.
        raise PortTakenError(f"port {port} is taken: set --grpc-port to another port") from error


def _tell_turned_away(examiner: Examiner, metrics: CollectorMetrics, told: Counter[str]) -> None:
    """Requests that no acceptor saw: of a wrong content type, too large, not JSON."""
    for metric in metrics.requests.collect():
        for sample in metric.samples:
            door, status = sample.labels.get("door", ""), sample.labels.get("status", "")
            if not sample.name.endswith("_total") or status in _ANSWERED:
                continue
            seen = min(told[door], int(sample.value))
            told[door] -= seen
            for _ in range(int(sample.value) - seen):
                examiner.unreadable(f"answered {status}", f"over {door}")
