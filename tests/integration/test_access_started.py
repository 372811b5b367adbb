"""The product itself beyond loopback: refused without credentials, and with them the whole of it works over TLS."""

import base64
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import clickhouse_connect
import httpx
import pytest
from clickhouse_connect.driver.exceptions import ClickHouseError
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from queries.client import connect
from queries.errors import RefusedError, UnreachableError
from tests.fixtures.certificates import Certificates, make_certificates
from tests.fixtures.running import ROOT, Addresses, free_addresses
from tests.integration.test_access_doors import spans

TOKEN, PASSWORD = "token-of-the-tests-1234", "pass word/@:of the tests"
EVERYWHERE = "0.0.0.0"  # noqa: S104


class Secured(NamedTuple):
    """A run of `tachograph up` that listens everywhere, with every credential set."""

    addresses: Addresses
    certificates: Certificates
    environment: dict[str, str]
    process: "subprocess.Popen[str]"

    def run(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """One command, run to its end with the same settings."""
        return subprocess.run(
            [sys.executable, "-m", "tachograph", *arguments],
            cwd=ROOT,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    @property
    def sql(self) -> str:
        return f"https://localhost:{self.addresses.clickhouse_port}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    place = tmp_path_factory.mktemp("secured")
    addresses, certificates = free_addresses(place / "data"), make_certificates(place)
    (place / "password").write_text(f"{PASSWORD}\n")
    environment = addresses.environment() | {
        "TACHOGRAPH_LISTEN_ADDRESS": EVERYWHERE,
        "TACHOGRAPH_REACHABLE_AS": "localhost",
        "TACHOGRAPH_INGEST_TOKENS": f"{TOKEN},another",
        "TACHOGRAPH_SQL_USER": "grafana",
        "TACHOGRAPH_SQL_PASSWORD_FILE": str(place / "password"),
        "TACHOGRAPH_TLS_CERTIFICATE": str(certificates.certificate),
        "TACHOGRAPH_TLS_KEY": str(certificates.key),
        "TACHOGRAPH_TLS_CA": str(certificates.ca),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tachograph", "up"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    running = Secured(addresses, certificates, environment, process)
    try:
        wait_for_executions(running)
        yield running
    finally:
        process.terminate()
        process.communicate(timeout=60)


def wait_for_executions(running: Secured) -> None:
    """Until the demo engines' executions are there: they came in by TLS, with the token."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        assert running.process.poll() is None, running.process.communicate()[0]
        answer = running.run("query", "engines", "--format", "json")
        if answer.returncode == 0 and len(json.loads(answer.stdout)) == 2:
            return
    raise AssertionError(f"no executions: {answer.stderr}")


@pytest.mark.parametrize("command", ["collect", "up"])
def test_beyond_loopback_without_credentials_it_does_not_start(tmp_path: Path, command: str) -> None:
    addresses = free_addresses(tmp_path / "data")
    environment = addresses.environment() | {"TACHOGRAPH_LISTEN_ADDRESS": EVERYWHERE}
    outcome = subprocess.run(
        [sys.executable, "-m", "tachograph", command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("tachograph: listening on 0.0.0.0 lets other machines in")
    assert outcome.stderr.count("\n") == 1
    assert {"TACHOGRAPH_INGEST_TOKENS", "TACHOGRAPH_SQL_PASSWORD"} <= set(outcome.stderr.replace("(", " ").split())
    assert not addresses.data_dir.exists()


def test_clickhouse_connect_over_https(secured: Secured) -> None:
    settings = {"host": "localhost", "port": secured.addresses.clickhouse_port, "interface": "https"}
    trusting = settings | {"ca_cert": str(secured.certificates.ca)}
    with clickhouse_connect.get_client(username="grafana", password=PASSWORD, **trusting) as client:
        assert int(client.query("SELECT count() FROM tachograph.graph_executions").first_row[0]) > 0
    for user, password in (("grafana", "wrong"), ("default", PASSWORD), ("default", "")):
        with pytest.raises(ClickHouseError, match=r"516|AUTHENTICATION_FAILED"):
            clickhouse_connect.get_client(username=user, password=password, **trusting)
    with pytest.raises(ClickHouseError, match=r"(?i)certificate"):
        clickhouse_connect.get_client(username="grafana", password=PASSWORD, **settings)


@pytest.mark.parametrize("way", ["basic", "headers", "parameters"])
@pytest.mark.parametrize(("password", "status"), [(PASSWORD, 200), ("wrong", 403), ("", 403)])
def test_each_of_clickhouses_ways_to_name_a_user(secured: Secured, way: str, password: str, status: int) -> None:
    import ssl

    basic = base64.b64encode(f"grafana:{password}".encode()).decode()
    ways: dict[str, dict[str, dict[str, str]]] = {
        "basic": {"headers": {"Authorization": f"Basic {basic}"}},
        "headers": {"headers": {"X-ClickHouse-User": "grafana", "X-ClickHouse-Key": password}},
        "parameters": {"params": {"user": "grafana", "password": password}},
    }
    trusting = ssl.create_default_context(cafile=secured.certificates.ca)
    asked = {"params": {"query": "SELECT 1"}, "headers": {}}
    for kind, values in ways[way].items():
        asked[kind] |= values
    answer = httpx.get(secured.sql, verify=trusting, params=asked["params"], headers=asked["headers"])
    assert answer.status_code == status
    assert answer.text == "1\n" or answer.text.startswith("Code: 516. DB::Exception: grafana: Authentication failed")
    assert PASSWORD not in str(answer.headers)


def test_our_own_client(secured: Secured) -> None:
    from urllib.parse import quote

    at, ca = f"localhost:{secured.addresses.clickhouse_port}/tachograph", f"?ca_cert={secured.certificates.ca}"
    good = f"https://grafana:{quote(PASSWORD, safe='')}@{at}"
    assert connect(f"{good}{ca}").query("SELECT 1").first_row == (1,)
    with pytest.raises(RefusedError, match="516") as refused:
        connect(f"https://grafana:wrong-password@{at}{ca}")
    assert "wrong-password" not in str(refused.value)
    with pytest.raises(UnreachableError) as unverified:
        connect(good)
    assert quote(PASSWORD, safe="") not in str(unverified.value)


def test_a_url_may_leave_its_password_to_the_settings(secured: Secured) -> None:
    url = f"https://grafana@localhost:{secured.addresses.clickhouse_port}/tachograph"
    outcome = secured.run("query", "engines", "--format", "json", "--clickhouse-url", url)
    assert outcome.returncode == 0, outcome.stderr
    assert len(json.loads(outcome.stdout)) == 2


def test_a_stock_exporter_sends_to_it(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(secured.certificates.ca))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20another")
    exporter = OTLPSpanExporter(endpoint=f"https://localhost:{secured.addresses.otlp_grpc_port}")
    assert exporter.export(spans()) == SpanExportResult.SUCCESS
    exporter.shutdown()


def test_simulated_executions_are_sent_with_the_token(secured: Secured) -> None:
    outcome = secured.run("simulate", "live", "--seconds", "3", "--host", "third")
    assert outcome.returncode == 0, outcome.stderr
    # On a busy machine the last ones are given up at the end.
    assert re.search(r"^[1-9][\d,]* executions sent", outcome.stdout, re.MULTILINE), outcome.stdout


def test_no_secret_is_seen_anywhere(secured: Secured) -> None:
    """Logs, the page of metrics, what commands say, and the command lines of every process."""
    wrong = secured.run("query", "engines", TACHOGRAPH_CLICKHOUSE_URL=f"{secured.sql}/nowhere")
    logs = [file.read_text() for file in (secured.addresses.data_dir / "logs").iterdir()]
    lines = [
        path.joinpath("cmdline").read_bytes().decode(errors="replace")
        for path in Path("/proc").iterdir()
        if path.name.isdecimal() and _is_readable(path)
    ]
    assert len(logs) == 5, "collector, dashboards, alerts and two engines"
    assert any("tachograph\0collect" in line for line in lines)
    for text in (*logs, *lines, wrong.stdout, wrong.stderr):
        assert TOKEN not in text
        assert PASSWORD not in text


def _is_readable(process: Path) -> bool:
    return os.access(process / "cmdline", os.R_OK)
