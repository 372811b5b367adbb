"""Credentials, certificates and host names: who is admitted, and that nothing shows a secret."""

import base64
import contextlib
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pydantic import SecretStr

from collector.acceptance import MalformedRequestError
from collector.access.access import Access, Reader, Refusal, basic_credentials, is_loopback
from collector.access.certificate import Certificate, trusting
from collector.access.presenting import sending_variables, with_credentials
from collector.access.secret import AccessError, given_secrets, secrets_in
from collector.access.settings import access_of
from collector.receivers.answers import RequestTooLargeError
from collector.receivers.span_count import check_spans
from collector.store.clickhouse import StoreError, split_url
from queries.client import parsed, shown, trusted
from queries.errors import CallError
from tachograph import Settings, settings_options
from tests.fixtures.certificates import make_certificates

SECRET = "s3cret-of-the-tests"  # noqa: S105
TOKENS = Access(tokens=given_secrets([SECRET, "another"], "X"))
READER = Access(reader=Reader("grafana", given_secrets([SECRET], "X")))


def settings(**values: Any) -> Any:
    nothing = {
        "listen_address": "127.0.0.1",
        "reachable_as": "",
        "ingest_tokens": SecretStr(""),
        "ingest_tokens_file": None,
        "sql_user": "default",
        "sql_password": SecretStr(""),
        "sql_password_file": None,
        "tls_certificate": None,
        "tls_key": None,
        "tls_ca": None,
        "otlp_endpoint": "",
        "rows_url": "",
    }
    return SimpleNamespace(**nothing | values)


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    ("header", "refusal"),
    [
        (f"Bearer {SECRET}", None),
        ("bearer another", None),
        ("Bearer wrong", Refusal.WRONG_CREDENTIALS),
        ("Bearer", Refusal.WRONG_CREDENTIALS),
        (f"Bearer {SECRET}x", Refusal.WRONG_CREDENTIALS),
        (f"Bearer {SECRET[:-1]}", Refusal.WRONG_CREDENTIALS),
        (SECRET, Refusal.NO_CREDENTIALS),
        (f"Basic {SECRET}", Refusal.NO_CREDENTIALS),
        (None, Refusal.NO_CREDENTIALS),
    ],
)
def test_a_sender_bears_one_of_the_tokens(header: str | None, refusal: Refusal | None) -> None:
    assert TOKENS.refusal_of_sender({"authorization": header} if header else {}) == refusal


def test_a_reader_has_the_user_and_the_password() -> None:
    assert READER.refusal_of_reader(basic("grafana", SECRET)) is None
    for wrong in (basic("grafana", "x"), basic("default", SECRET), basic("", SECRET), basic("grafana", "")):
        assert READER.refusal_of_reader(wrong) == Refusal.WRONG_CREDENTIALS
    for missing in ({}, {"authorization": f"Bearer {SECRET}"}, {"authorization": "Basic §"}, basic("", "")):
        assert READER.refusal_of_reader(missing) == Refusal.NO_CREDENTIALS


@given(st.text(), st.text(alphabet=st.characters(exclude_characters=":")))
def test_basic_credentials_come_back(password: str, user: str) -> None:
    encoded = base64.b64encode(f"{user}:{password}".encode(errors="replace")).decode()
    assert basic_credentials(f"Basic {encoded}") == (
        user.encode(errors="replace").decode(),
        password.encode(errors="replace").decode(),
    )


@given(st.text(max_size=40))
def test_whatever_a_header_holds_is_an_answer(header: str) -> None:
    assert TOKENS.refusal_of_sender({"authorization": header}) is not None
    assert READER.refusal_of_reader({"authorization": header}) is not None


@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({}, False),
        ({"host": "localhost:8123"}, False),
        ({"host": "127.0.0.1"}, False),
        ({"host": "[::1]:8123"}, False),
        ({"host": "LOCALHOST"}, False),
        ({"host": "evil.example:8123"}, True),
        ({"host": "127.0.0.1.evil.example"}, True),
        ({"host": "localhost@evil.example"}, True),
        ({"host": "[::1"}, True),
        ({"host": ""}, True),
        ({"host": "localhost", "origin": "http://localhost:8501"}, False),
        ({"host": "localhost", "origin": "https://evil.example"}, True),
        ({"host": "localhost", "origin": "null"}, True),
        ({"host": "localhost", "sec-fetch-site": "cross-site"}, True),
        ({"host": "localhost", "sec-fetch-site": "none"}, False),
    ],
    ids=str,
)
def test_without_credentials_other_sites_pages_stay_out(headers: dict[str, str], is_foreign: bool) -> None:
    for refusal in (Access().refusal_of_sender(headers), Access().refusal_of_reader(headers)):
        assert refusal == (Refusal.FOREIGN_HOST if is_foreign else None)


def test_with_credentials_any_host_name_will_do() -> None:
    assert TOKENS.refusal_of_sender({"host": "tacho.example", "authorization": "Bearer another"}) is None


@pytest.mark.parametrize(("address", "is_local"), [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False), ("192.0.2.1", False), ("host.example", False)])  # fmt: skip  # noqa: S104
def test_what_is_loopback(address: str, is_local: bool) -> None:
    assert is_loopback(address) == is_local


@pytest.mark.parametrize(
    ("access", "missing"),
    [(Access(), ("TOKENS", "PASSWORD")), (TOKENS, ("PASSWORD",)), (READER, ("TOKENS",))],
    ids=["none", "tokens", "reader"],
)
def test_beyond_loopback_both_credentials_are_needed(access: Access, missing: tuple[str, ...]) -> None:
    access.check_address("127.0.0.1")
    with pytest.raises(AccessError) as refused:
        access.check_address("0.0.0.0")  # noqa: S104
    assert {name for name in ("TOKENS", "PASSWORD") if name in str(refused.value)} == set(missing)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 2


def test_tokens_in_a_file_are_rotated_without_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("first\n")
    tokens = secrets_in(file, "X")
    assert (tokens.admits("first"), tokens.admits("second")) == (True, False)
    file.write_text("first\n\n  second  \n")
    assert (tokens.admits("first"), tokens.admits("second"), tokens.admits("")) == (True, True, False)
    file.write_text("second\n")
    assert (tokens.admits("first"), tokens.admits("second")) == (False, True)
    assert tokens.first() == "second"


@pytest.mark.parametrize("spoil", [Path.unlink, lambda file: file.write_text("\n"), lambda file: file.write_bytes(b"\xff")])  # fmt: skip
def test_a_file_that_is_spoilt_changes_nothing(tmp_path: Path, spoil: Any) -> None:
    file = tmp_path / "tokens"
    file.write_text("first")
    tokens = secrets_in(file, "X")
    spoil(file)
    assert (tokens.admits("first"), tokens.admits("")) == (True, False)
    file.write_text("another one")
    assert (tokens.admits("first"), tokens.admits("another one")) == (False, True)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"ingest_tokens": SecretStr(" , ")}, "TACHOGRAPH_INGEST_TOKENS holds nothing"),
        ({"ingest_tokens": SecretStr(f"{SECRET}\t")}, ""),
        ({"ingest_tokens": SecretStr(f"{SECRET}ü")}, "TACHOGRAPH_INGEST_TOKENS holds what no header can carry"),
        ({"ingest_tokens": SecretStr(SECRET), "ingest_tokens_file": Path("x")}, "are both set"),
        ({"sql_password_file": Path("/nowhere/x")}, "TACHOGRAPH_SQL_PASSWORD_FILE: /nowhere/x cannot be read"),
        ({"tls_certificate": Path("c.pem")}, "TACHOGRAPH_TLS_CERTIFICATE and TACHOGRAPH_TLS_KEY go together"),
        ({"tls_certificate": Path("/nowhere/c"), "tls_key": Path("/nowhere/k")}, "No such file"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_used_is_one_line_without_its_secret(values: dict[str, Any], said: str) -> None:
    if not said:
        assert access_of(settings(**values)).tokens is not None
        return
    with pytest.raises(AccessError, match=said) as refused:
        access_of(settings(**values))
    assert SECRET not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_certificate_and_key_belong_together(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    ours, other = make_certificates(tmp_path), make_certificates(tmp_path / "other")
    context = Certificate.load(ours.certificate, ours.key).server_context()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    with pytest.raises(AccessError, match="do not belong together"):
        Certificate.load(ours.certificate, other.key)
    with pytest.raises(AccessError, match="in PEM"):
        Certificate.load(ours.certificate, ours.ca)
    with pytest.raises(AccessError, match="TACHOGRAPH_TLS_CA"):
        trusting(tmp_path / "nothing")


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACHOGRAPH_INGEST_TOKENS", SECRET)
    monkeypatch.setenv("TACHOGRAPH_SQL_PASSWORD", SECRET)
    monkeypatch.setenv("TACHOGRAPH_LISTEN_ADDRESS", "::")
    given_settings = Settings()
    filled = given_settings.for_readers()
    assert SECRET in filled.clickhouse_url
    for value in (given_settings, filled, access_of(given_settings), TOKENS, READER):
        assert SECRET not in f"{value!r} {value!s}"
    assert SECRET not in shown(filled.clickhouse_url)
    assert filled.otlp_endpoint == "http://[::1]:4317"


def test_no_secret_has_a_flag() -> None:
    flags = {option.name for option in settings_options()}
    assert flags & {"ingest_tokens", "sql_password"} == set()
    assert {"ingest_tokens_file", "sql_password_file", "tls_key"} <= flags


def test_what_our_own_commands_present(tmp_path: Path) -> None:
    ours = settings(ingest_tokens=SecretStr("a b,c"), sql_password=SecretStr("p@/"), tls_ca=tmp_path / "ca")
    assert sending_variables(ours) == {
        "TACHOGRAPH_TLS_CA": str(tmp_path / "ca"),
        "TACHOGRAPH_INGEST_TOKEN": "a b",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer a%20b",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": str(tmp_path / "ca"),
    }
    assert "OTEL_EXPORTER_OTLP_HEADERS" not in sending_variables(settings(**vars(ours) | {"otlp_endpoint": "http://o"}))
    url = with_credentials("https://h:1/d", ours, is_own=True)
    assert url.startswith("https://default:p%40%2F@h:1/d?ca_cert=")
    assert with_credentials("http://h:1/d", ours, is_own=False) == "http://h:1/d"
    assert with_credentials("http://default@h:1/d", ours, is_own=False) == "http://default:p%40%2F@h:1/d"
    assert with_credentials("http://default:own@h:1/d", ours, is_own=False) == "http://default:own@h:1/d"
    assert with_credentials("http://other@h:1/d", ours, is_own=False) == "http://other@h:1/d"
    assert with_credentials("http://[h", ours, is_own=False) == "http://[h"


def test_a_clickhouse_url_names_whom_to_trust(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    for url, file in ((f"https://h/d?ca_cert={tmp_path}/ca.pem", f"{tmp_path}/ca.pem"), ("https://h/d", None)):
        assert trusted(parsed(url), url) == file
    for url in ("https://u:secret@h/d?ca_cert=/nowhere", "https://u:secret@h/d?verify=false"):
        with pytest.raises(CallError) as refused:
            trusted(parsed(url), url)
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["htp://u:s3cret@h/d", "u:s3cret@h", "http://u:s3cret@h:99999/d", "http://u:s3cret@[::1/d", "http://u:s3cret@/d"])  # fmt: skip
def test_a_url_that_is_none_is_told_without_its_password(url: str) -> None:
    for wrong, read in ((CallError, parsed), (StoreError, split_url)):
        with pytest.raises(wrong) as refused:
            read(url)
        assert "s3cret" not in str(refused.value)


def request_of_spans(*counts: int) -> bytes:
    request = ExportTraceServiceRequest()
    for count in counts:
        scope = request.resource_spans.add().scope_spans.add()
        for number in range(count):
            scope.spans.add(name="x" * (number % 200))
    return request.SerializeToString()


@given(st.lists(st.integers(0, 30), max_size=4), st.integers(0, 60))
def test_spans_are_counted_as_protobuf_does(counts: list[int], limit: int) -> None:
    request = request_of_spans(*counts)
    if sum(counts) > limit:
        with pytest.raises(RequestTooLargeError, match=f"more than {limit} spans"):
            check_spans(request, limit)
    else:
        check_spans(request, limit)


@given(st.binary(max_size=60))
def test_any_bytes_are_counted_or_refused(data: bytes) -> None:
    with contextlib.suppress(RequestTooLargeError, MalformedRequestError):
        check_spans(data, 1)


def test_tiny_spans_are_refused_before_they_are_parsed() -> None:
    scope = b"\x12\x00" * 300_000
    scope = b"\x12" + bytes([len(scope) & 0x7F | 0x80, len(scope) >> 7 & 0x7F | 0x80, len(scope) >> 14]) + scope
    request = b"\x0a" + bytes([len(scope) & 0x7F | 0x80, len(scope) >> 7 & 0x7F | 0x80, len(scope) >> 14]) + scope
    with pytest.raises(RequestTooLargeError):
        check_spans(request, 100_000)
    check_spans(request, 300_000)


def test_spans_whose_tags_are_written_longer_than_needed_are_counted_too() -> None:
    scope = b"\x92\x00\x00" * 10
    request = b"\x0a" + bytes([len(scope) + 2]) + b"\x12" + bytes([len(scope)]) + scope
    assert len(ExportTraceServiceRequest.FromString(request).resource_spans[0].scope_spans[0].spans) == 10
    check_spans(request, 10)
    with pytest.raises(RequestTooLargeError):
        check_spans(request, 9)
