"""Every bound of OTLP's doors: what exceeds it is refused or cut off, told and counted, and others still get in."""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator

import grpc
import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.http_server import ConnectionLimits
from collector.receivers.limits import DoorLimits
from tests.fixtures.doors import EXPORT, GZIP, PROTOBUF
from tests.fixtures.guarded_doors import GuardedDoors, guarded_doors

NARROW = DoorLimits(
    request_bytes=10_000, request_spans=20, requests_at_once=2, waiting_calls=8, wait_s=0.3, body_s=0.5, head_bytes=4096
)
FEW = ConnectionLimits(connections=6, head_bytes=4096, head_s=0.4, idle_s=1)
HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"


@pytest.fixture
def doors() -> Iterator[GuardedDoors]:
    with guarded_doors(limits=NARROW, connections=FEW) as opened:
        yield opened


def eventually(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def request_of(spans: int) -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for _ in range(spans):
        scope.spans.add(name="execute_graph P128")
    return request.SerializeToString()


def over_grpc(doors: GuardedDoors, request: bytes, **options: object) -> grpc.StatusCode:
    metadata = options.pop("metadata", ())
    with grpc.insecure_channel(f"localhost:{doors.grpc_port}") as channel:
        try:
            channel.unary_unary(EXPORT)(request, timeout=60, metadata=metadata, **options)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


def over_http(doors: GuardedDoors, request: bytes, **headers: str) -> int:
    return httpx.post(doors.traces, content=request, headers={**PROTOBUF, **headers}, timeout=60).status_code


def closed_by_the_server(connection: socket.socket) -> bytes:
    """What it still says before it ends the connection; a connection that stays open fails the test."""
    connection.settimeout(60)
    said = b""
    try:
        while chunk := connection.recv(65536):
            said += chunk
    except ConnectionResetError:
        pass
    return said


def test_bytes_of_a_request(doors: GuardedDoors) -> None:
    assert over_http(doors, b" " * 10_001) == 413
    assert over_http(doors, gzip.compress(bytes(50_000_000)), **GZIP) == 413
    assert over_grpc(doors, b" " * 10_001) == grpc.StatusCode.RESOURCE_EXHAUSTED
    bomb = {"compression": grpc.Compression.Gzip}
    assert over_grpc(doors, bytes(50_000_000), **bomb) == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert doors.accepting.requests == []


def test_spans_of_a_request(doors: GuardedDoors) -> None:
    assert (over_http(doors, request_of(20)), over_grpc(doors, request_of(20))) == (200, grpc.StatusCode.OK)
    answer = httpx.post(doors.traces, content=request_of(21), headers=PROTOBUF)
    assert (answer.status_code, b"more than 20 spans" in answer.content) == (413, True)
    assert b"RetryInfo" not in answer.content
    assert over_grpc(doors, request_of(21)) == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(doors.accepting.requests) == 2
    assert doors.metrics.registry.get_sample_value(
        "tachograph_otlp_requests_total", {"door": "grpc", "status": "RESOURCE_EXHAUSTED"}
    )


def test_a_slow_body_over_http_is_told_and_cut_off(doors: GuardedDoors) -> None:
    with socket.create_connection(("localhost", doors.http_port)) as slow:
        slow.sendall(HEAD + b"Content-Length: 100\r\n\r\nabc")
        began = time.monotonic()
        answer = slow.recv(65536)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert 0.4 < time.monotonic() - began < 5
        slow.sendall(b"d")  # It still dribbles; that does not keep the connection open.
        closed_by_the_server(slow)
    assert over_http(doors, b"") == 200


def test_slow_bodies_do_not_keep_others_out(doors: GuardedDoors) -> None:
    slow = [socket.create_connection(("localhost", doors.http_port)) for _ in range(2)]
    for connection in slow:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\nabc")
    statuses = set()

    def got_in() -> bool:
        statuses.add(status := over_http(doors, b""))
        return status == 200

    eventually(got_in)
    assert statuses <= {200, 429}
    for connection in slow:
        connection.close()


def test_a_slow_head_is_cut_off(doors: GuardedDoors) -> None:
    silent, dribbling = (socket.create_connection(("localhost", doors.http_port)) for _ in range(2))
    dribbling.sendall(HEAD)
    assert closed_by_the_server(silent) == b""
    assert closed_by_the_server(dribbling) == b""
    eventually(lambda: doors.not_admitted("http", "slow_head") == 2)
    for connection in (silent, dribbling):
        connection.close()
    assert over_http(doors, b"") == 200


def test_a_second_request_has_no_longer_for_its_head(doors: GuardedDoors) -> None:
    with socket.create_connection(("localhost", doors.http_port)) as kept:
        kept.sendall(HEAD + b"Content-Length: 0\r\n\r\n")
        assert kept.recv(65536).startswith(b"HTTP/1.1 200 ")
        kept.sendall(HEAD)
        assert closed_by_the_server(kept) == b""
    eventually(lambda: doors.not_admitted("http", "slow_head") == 1)


def test_an_idle_connection_is_closed(doors: GuardedDoors) -> None:
    with socket.create_connection(("localhost", doors.http_port)) as idle:
        idle.sendall(HEAD + b"Content-Length: 0\r\n\r\n")
        assert idle.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert closed_by_the_server(idle) == b""


def test_headers_have_a_size(doors: GuardedDoors) -> None:
    with socket.create_connection(("localhost", doors.http_port)) as large:
        large.sendall(HEAD + b"X-Large: " + b"x" * 5000)
        assert closed_by_the_server(large).startswith(b"HTTP/1.1 400 ")
    assert over_grpc(doors, b"", metadata=(("x-large", "x" * 5000),)) == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (over_http(doors, b""), over_grpc(doors, b"")) == (200, grpc.StatusCode.OK)


def test_connections_have_a_number(doors: GuardedDoors) -> None:
    held = [socket.create_connection(("localhost", doors.http_port)) for _ in range(6)]
    with socket.create_connection(("localhost", doors.http_port)) as one_more:
        assert closed_by_the_server(one_more).startswith(b"HTTP/1.1 503 ")
    eventually(lambda: doors.not_admitted("http", "connections") == 1)
    for connection in held:
        connection.close()
    eventually(lambda: over_http(doors, b"") == 200)


def test_health_is_told_however_many_connections_there_are() -> None:
    """A supervisor restarts what does not answer: not a collector whose senders keep many connections."""
    with guarded_doors(connections=FEW._replace(head_s=60.0, spare=3)) as doors:
        held = [socket.create_connection(("localhost", doors.http_port)) for _ in range(6)]
        for path in ("/healthz", "/readyz", "/metrics"):
            answer = httpx.get(f"{doors.http}{path}", timeout=60)
            assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        refused = httpx.post(doors.traces, content=b"", headers=PROTOBUF, timeout=60)
        assert (refused.status_code, refused.headers["retry-after"], refused.headers["connection"]) == (
            503,
            "1",
            "close",
        )
        assert httpx.post(f"{doors.http}/healthz", timeout=60).status_code == 503
        assert doors.not_admitted("http", "connections") == 2
        assert doors.accepting.requests == []
        assert httpx.get(f"{doors.http}/healthz", timeout=60).status_code == 200
        for connection in held:
            connection.close()
        eventually(lambda: over_http(doors, b"") == 200)


def test_spare_connections_have_a_number_and_an_end() -> None:
    with guarded_doors(connections=FEW._replace(head_s=60.0, spare=3, spare_head_s=60.0, spare_s=0.4)) as doors:
        held = [socket.create_connection(("localhost", doors.http_port)) for _ in range(6)]
        spare = [socket.create_connection(("localhost", doors.http_port)) for _ in range(3)]
        assert [closed_by_the_server(connection) for connection in spare] == [b""] * 3
        for connection in (*held, *spare):
            connection.close()
    with guarded_doors(connections=FEW._replace(head_s=60.0, spare=3, spare_head_s=60.0, spare_s=60.0)) as doors:
        held = [socket.create_connection(("localhost", doors.http_port)) for _ in range(9)]
        with socket.create_connection(("localhost", doors.http_port)) as one_more:
            assert closed_by_the_server(one_more).startswith(b"HTTP/1.1 503 ")
        for connection in held:
            connection.close()


def test_requests_at_once_over_http(doors: GuardedDoors) -> None:
    """Those whose bodies are read; who waits for an acknowledgement holds no place."""
    refused: list[httpx.Response] = []

    def asked_beside_two() -> bool:
        """Their heads may not have been read yet, or their bodies be overdue already: then it gets in."""
        held = [socket.create_connection(("localhost", doors.http_port)) for _ in range(2)]
        for connection in held:
            connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n")
        time.sleep(0.05)
        answer = httpx.post(doors.traces, headers=PROTOBUF, timeout=30)
        for connection in held:
            connection.close()
        refused.extend([answer] if answer.status_code == 429 else [])
        return bool(refused)

    eventually(asked_beside_two)
    assert refused[0].headers["retry-after"] == "1"
    eventually(lambda: over_http(doors, b"") == 200)


def test_calls_at_once_over_grpc(doors: GuardedDoors) -> None:
    doors.accepting.may_answer.clear()
    codes: list[grpc.StatusCode] = []
    calls = [threading.Thread(target=lambda: codes.append(over_grpc(doors, request_of(1)))) for _ in range(9)]
    for call in calls:
        call.start()
    # Two are under way and six wait; the ninth is refused, whichever it is.
    eventually(lambda: codes == [grpc.StatusCode.RESOURCE_EXHAUSTED])
    eventually(lambda: len(doors.accepting.requests) == 2)
    doors.accepting.answer_all()
    for call in calls:
        call.join()
    assert sorted(code.name for code in codes) == ["OK"] * 8 + ["RESOURCE_EXHAUSTED"]


def test_a_grpc_call_without_a_message_is_ended(doors: GuardedDoors) -> None:
    """Else two of them would hold the door for ever."""
    released = threading.Event()

    def nothing() -> Iterator[bytes]:
        released.wait(120)
        yield from ()

    with grpc.insecure_channel(f"localhost:{doors.grpc_port}") as channel:
        silent = [channel.stream_unary(EXPORT).future(nothing()) for _ in range(2)]
        try:
            assert over_grpc(doors, b"") == grpc.StatusCode.OK
            for call in silent:
                assert call.exception(60).code() == grpc.StatusCode.CANCELLED
        finally:
            released.set()


def test_a_grpc_connection_that_never_speaks_is_closed() -> None:
    with (
        guarded_doors(limits=NARROW._replace(idle_s=0.5)) as doors,
        socket.create_connection(("localhost", doors.grpc_port)) as silent,
        grpc.insecure_channel(f"localhost:{doors.grpc_port}") as channel,
    ):
        channel.unary_unary(EXPORT)(b"", timeout=60)
        states: list[grpc.ChannelConnectivity] = []
        channel.subscribe(states.append)
        eventually(lambda: grpc.ChannelConnectivity.IDLE in states)
        silent.settimeout(60)
        assert closed_by_the_server(silent) is not None
