"""OTLP's doors with credentials and certificates: stock exporters get in with the right ones, and nobody else."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import httpx
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from collector.access.access import Access, Reader
from collector.access.certificate import Certificate
from collector.access.secret import given_secrets, secrets_in
from collector.http_server import ConnectionLimits
from engine_hooks.contract.execution import EngineResource, GraphExecution
from engine_hooks.contract.names import GraphKind
from engine_hooks.errors import SendError
from engine_hooks.recorder.recorder import Recorder
from engine_hooks.recorder.sending import sender
from tests.fixtures.certificates import Certificates, make_certificates
from tests.fixtures.doors import EXPORT, JSON, PROTOBUF
from tests.fixtures.guarded_doors import GuardedDoors, guarded_doors

OLD, NEW, PASSWORD = "old-token-1234", "new-token-1234", "reader-password-1234"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def tokens_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text(f"{OLD}\n{NEW}\n")
    return file


@pytest.fixture(scope="module")
def doors(certificates: Certificates, tokens_file: Path) -> Iterator[GuardedDoors]:
    access = Access(
        secrets_in(tokens_file, "X"),
        Reader("grafana", given_secrets([PASSWORD], "Y")),
        Certificate.load(certificates.certificate, certificates.key),
    )
    with guarded_doors(access) as opened:
        yield opened


def spans() -> list[ReadableSpan]:
    span = TracerProvider().get_tracer("test").start_span("execute_graph P128")
    span.end()
    assert isinstance(span, ReadableSpan)
    return [span]


def exporter(kind: str, doors: GuardedDoors, monkeypatch: pytest.MonkeyPatch, ca: Path, token: str) -> SpanExporter:
    """A stock exporter, told by the standard variables alone."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(ca))
    for outranking in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(outranking, raising=False)
    if token:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{token}")
    if kind == "grpc":
        return GrpcExporter(endpoint=doors.grpc, timeout=3)
    return HttpExporter(endpoint=doors.traces, timeout=3)


@pytest.mark.parametrize("kind", ["grpc", "http"])
@pytest.mark.parametrize("token", [OLD, NEW])
def test_the_stock_exporters_get_in(
    doors: GuardedDoors, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, kind: str, token: str
) -> None:
    sending = exporter(kind, doors, monkeypatch, certificates.ca, token)
    assert sending.export(spans()) == SpanExportResult.SUCCESS
    sending.shutdown()


@pytest.mark.parametrize("kind", ["grpc", "http"])
@pytest.mark.parametrize(("token", "reason"), [("wrong", "wrong_credentials"), ("", "no_credentials")])
def test_the_stock_exporters_are_turned_away(
    doors: GuardedDoors,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    *,
    kind: str,
    token: str,
    reason: str,
) -> None:
    sending = exporter(kind, doors, monkeypatch, certificates.ca, token)
    before = doors.not_admitted(kind, reason)
    assert sending.export(spans()) == SpanExportResult.FAILURE
    sending.shutdown()
    # Once: it is not worth sending again, and the exporters know it.
    assert doors.not_admitted(kind, reason) == before + 1


@pytest.mark.parametrize("kind", ["grpc", "http"])
def test_a_client_that_does_not_know_the_authority_sends_nothing(
    doors: GuardedDoors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    stranger = make_certificates(tmp_path)
    before = len(doors.accepting.requests)
    sending = exporter(kind, doors, monkeypatch, stranger.ca, OLD)
    logging.disable(logging.CRITICAL)
    try:
        assert sending.export(spans()) == SpanExportResult.FAILURE
    finally:
        logging.disable(logging.NOTSET)
        sending.shutdown()
    assert len(doors.accepting.requests) == before


def test_our_own_sender(doors: GuardedDoors, certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    request = encode_spans(spans()).SerializeToString()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", str(certificates.ca))
    with (
        sender(doors.grpc) as connection,
        pytest.raises(SendError, match=r"UNAUTHENTICATED.*OTEL_EXPORTER_OTLP_HEADERS"),
    ):
        connection.send(request)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", f"authorization=Bearer%20{NEW}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    with sender(doors.grpc) as connection:
        assert connection.send(request) == (0, "")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem")
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE")
    with pytest.raises(SendError, match=r"OTEL_EXPORTER_OTLP_CERTIFICATE: /nowhere.pem"), sender(doors.grpc):
        pass


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
@pytest.mark.parametrize("token", [NEW, "wrong"])
def test_the_recorder(
    doors: GuardedDoors, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, protocol: str, token: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", doors.grpc if protocol == "grpc" else doors.traces)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificates.ca))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{token}")
    recorder = Recorder(EngineResource("host1:1"))
    recorder.record(GraphExecution("decode", GraphKind.PLAIN_DECODE, 0, 7, 8, 1_764_000_000_000_000_000, 9))
    assert recorder.flush(60)
    recorder.stop()
    assert recorder.exported == (token == NEW)


def test_a_token_that_is_rotated_out_is_refused(
    doors: GuardedDoors, certificates: Certificates, tokens_file: Path
) -> None:
    with httpx.Client(verify=_verify(certificates), headers=PROTOBUF) as client:
        bearing = [{"authorization": f"Bearer {token}"} for token in (OLD, NEW)]
        assert [client.post(doors.traces, headers=one).status_code for one in bearing] == [200, 200]
        kept = tokens_file.read_text()
        tokens_file.write_text(f"{NEW}\n")
        assert [client.post(doors.traces, headers=one).status_code for one in bearing] == [401, 200]
        tokens_file.write_text(kept)


def _verify(certificates: Certificates):  # type: ignore[no-untyped-def]
    import ssl

    return ssl.create_default_context(cafile=certificates.ca)


@pytest.mark.parametrize("headers", [PROTOBUF, JSON], ids=["protobuf", "json"])
def test_a_refusal_over_http_is_a_status(
    doors: GuardedDoors, certificates: Certificates, headers: dict[str, str]
) -> None:
    large = bytes(3_000_000)
    answer = httpx.post(doors.traces, content=large, headers=headers, verify=_verify(certificates))
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.headers["content-type"] == headers["content-type"]
    if headers is PROTOBUF:
        assert (Status.FromString(answer.content).code, answer.content.count(b"token")) == (16, 1)
    else:
        assert answer.json()["code"] == 16
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_who_may_see_what(doors: GuardedDoors, certificates: Certificates) -> None:
    bearer, reader = {"authorization": f"Bearer {OLD}"}, ("grafana", PASSWORD)
    with httpx.Client(base_url=doors.http, verify=_verify(certificates)) as client:
        assert [client.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers=bearer).status_code == 401
        page = client.get("/metrics", auth=reader)
        assert page.status_code == 200
        assert all(secret not in page.text for secret in (OLD, NEW, PASSWORD))
        assert client.post("/v1/rows/replays").status_code == 401
        assert client.post("/v1/rows/replays", auth=reader).status_code == 401
        assert client.post("/v1/rows/replays", headers=bearer).status_code == 404  # Past the guard.
        assert client.options("/v1/traces", headers={"origin": "http://evil.example"}).status_code == 401


def test_a_kept_connection_does_not_hold_up_the_end(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    """Over TLS a close waits for the client, and uvicorn then says that it waited in vain."""
    access = Access(certificate=Certificate.load(certificates.certificate, certificates.key))
    with httpx.Client(verify=_verify(certificates)) as keeping:
        with guarded_doors(access) as doors:
            assert keeping.get(f"{doors.http}/healthz").status_code == 200
        assert caplog.records == []


@pytest.mark.parametrize("spare", [0, 1], ids=["at once", "with a request that never comes"])
def test_who_is_turned_away_takes_no_place_for_long(certificates: Certificates, spare: int) -> None:
    """Over TLS a close waits for the client, which may never agree to it; left alone, for half a minute."""
    access = Access(certificate=Certificate.load(certificates.certificate, certificates.key))
    bounds = ConnectionLimits(connections=1, spare=spare, spare_head_s=0.1, spare_s=600, turned_away_s=0.1)
    context = _verify(certificates)

    def connected(doors: GuardedDoors) -> socket.socket:
        plain = socket.create_connection(("localhost", doors.http_port))
        return opened.enter_context(context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False))

    with guarded_doors(access, connections=bounds) as doors, ExitStack() as opened:
        connected(doors)
        turned_away = connected(doors)
        assert turned_away.recv(65536).startswith(b"HTTP/1.1 503 ")
        assert turned_away.recv(1) == b""  # TLS is at its end; whether the connection is, TCP tells.
        below = opened.enter_context(socket.socket(fileno=os.dup(turned_away.fileno())))
        below.settimeout(20)
        assert below.recv(1) == b""


def test_plain_text_is_not_answered(doors: GuardedDoors) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://localhost:{doors.http_port}/healthz")
    with (
        grpc.insecure_channel(f"localhost:{doors.grpc_port}") as channel,
        pytest.raises(grpc.RpcError) as refused,
    ):
        channel.unary_unary(EXPORT)(b"", timeout=5)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("version", ["TLSv1", "TLSv1_1"])
def test_old_tls_is_refused(doors: GuardedDoors, certificates: Certificates, version: str) -> None:
    import ssl
    import warnings

    context = ssl.create_default_context(cafile=certificates.ca)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    for port in (doors.http_port, doors.grpc_port):
        with socket.create_connection(("localhost", port)) as plain, pytest.raises((ssl.SSLError, OSError)):
            context.wrap_socket(plain, server_hostname="localhost")


def test_without_credentials_a_page_of_another_site_stays_out() -> None:
    with guarded_doors() as doors:
        for path in ("/v1/traces", "/metrics"):
            answer = httpx.get(f"{doors.http}{path}", headers={"host": "rebound.example"})
            assert (answer.status_code, answer.json()["code"]) == (403, 7)
        assert doors.not_admitted("http", "foreign_host") == 2
        assert httpx.post(doors.traces, headers=PROTOBUF).status_code == 200
        preflight = httpx.options(doors.traces, headers={"origin": doors.http})
        assert preflight.status_code == 405
        assert not [name for name in preflight.headers if name.startswith("access-control")]
